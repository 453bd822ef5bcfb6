// `sinter cache`, run as a user runs it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "sinter/capture/compiler.h"
#include "sinter/runtime/code_store.h"
#include "tests/cli/command.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using runtime::CodeStore;
using testing::run_command;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class CliCache : public ::testing::Test {
 protected:
  auto run(const std::string& arguments, const std::string& cache = "cache") const {
    return run_command("cache " + arguments, "SINTER_CACHE_DIR=" + (directory_ / cache).string());
  }
  std::string file(const char* name) const { return (directory_ / name).string(); }
  static std::string key(const std::string& source, const std::string& compiler) {
    return runtime::make_key({{"kind", "cpu-code"}, {"source", source}, {"compiler", compiler}});
  }

  OwnDirectory own_;
  const fs::path directory_ = own_.path();
};

TEST_F(CliCache, ListsCountsTravelsAndClears) {
  CodeStore store(file("cache"));
  store.save(key("a", "clang 19"), std::string(3000, 'x'), "k1_add");
  store.save(runtime::make_key({{"kind", "autotune"}}), "winners", "winners of 2 threads");
  std::ofstream(file("cache") + "/junk.code") << "junk";

  auto listing = run("ls");
  EXPECT_EQ(listing.code, 0) << listing.err;
  for (auto part : {"cpu-code", "k1_add", "autotune", "winners of 2 threads", "unusable: truncated"})
    EXPECT_TRUE(contains(listing.out, part)) << part << " in\n" << listing.out;
  auto code = json::parse(run("ls --json --kind cpu-code").out);
  ASSERT_EQ(code.size(), 1u);
  EXPECT_EQ(code[0]["name"], "k1_add");
  EXPECT_EQ(code[0]["key"], key("a", "clang 19"));
  EXPECT_GT(code[0]["bytes"], 3000);

  auto stats = json::parse(run("stats --json").out);
  EXPECT_EQ(stats["entries"], 3);
  EXPECT_EQ(stats["kinds"]["autotune"]["entries"], 1);
  EXPECT_EQ(stats["limit_bytes"], int64_t(4096) << 20);
  EXPECT_TRUE(contains(run("stats").out, "limit")) << run("stats").out;

  EXPECT_EQ(run("export " + file("archive")).out, "wrote 2 entries\n");
  EXPECT_EQ(run("import " + file("archive"), "other").out, "added 2 entries\n");
  EXPECT_EQ(CodeStore(file("other")).load(key("a", "clang 19")), std::string(3000, 'x'));
  EXPECT_EQ(json::parse(run("export --json --kind autotune " + file("archive")).out)["entries"], 1);
  fs::resize_file(file("archive"), fs::file_size(file("archive")) - 1);
  auto refused = run("import " + file("archive"), "third");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.err, "truncated")) << refused.err;

  EXPECT_EQ(run("clear --kind autotune").out, "removed 1 entry\n");
  EXPECT_EQ(run("clear").out, "removed 2 entries\n");
  EXPECT_EQ(run("ls").out, "the cache is empty\n");
  EXPECT_EQ(run("fly").code, 2);
  EXPECT_EQ(run("").code, 2);
}

TEST_F(CliCache, SaysWhySomethingWasMissed) {
  CodeStore store(file("cache"));
  EXPECT_TRUE(contains(run("why").out, "no run has missed anything"));
  store.save(key("a", "clang 18"), "code", "k1_add");
  store.note_miss(key("a", "clang 19"), "k1_add");
  store.save(key("a", "clang 19"), "code", "k1_add");
  auto last = run("why");
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_TRUE(contains(last.out,
                       "k1_add: it differs from the nearest entry (k1_add) in compiler: clang 19, there "
                       "clang 18"))
      << last.out;
  EXPECT_EQ(json::parse(run("why --json").out)[0]["name"], "k1_add");
  EXPECT_EQ(run("why 'kind=cpu-code; source=a; compiler=clang 19'").out, "it is in the cache\n");
  EXPECT_TRUE(contains(run("why 'kind=cpu-code; source=b; compiler=clang 19'").out, "in source: b, there a"));
  auto wrong = run("why nonsense");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(contains(wrong.err, "is no key")) << wrong.err;
}

TEST_F(CliCache, ARunFillsItAndTheNextOneMissesNothing) {
  std::string environment = "SINTER_LOGS=cache SINTER_CACHE_DIR=" + file("cache");
  std::string arguments = "generate --prompt 'Call me' --max-new-tokens 2";
  auto cold = run_command(arguments, environment);
  ASSERT_EQ(cold.code, 0) << cold.err;
  EXPECT_TRUE(contains(cold.err, "is not in the cache")) << cold.err;
  auto misses = json::parse(run("why --json").out);
  EXPECT_GT(misses.size(), 1u);
  for (auto& entry : json::parse(run("ls --json").out)) {
    // Nothing of this machine's files may be in a key.
    EXPECT_FALSE(contains(entry["key"], "/")) << entry["key"];
    EXPECT_NE(entry["name"], "");
  }
  EXPECT_EQ(run("export " + file("archive")).code, 0);
  EXPECT_EQ(run("import " + file("archive"), "moved").code, 0);
  auto warm = run_command(arguments, "SINTER_LOGS=cache SINTER_CACHE_DIR=" + file("moved"));
  EXPECT_EQ(warm.code, 0) << warm.err;
  EXPECT_FALSE(contains(warm.err, "is not in the cache")) << warm.err;
  EXPECT_EQ(warm.out, cold.out);
}

TEST_F(CliCache, ArtifactsOfTheLibraryAreTheSame) {
  std::string before = std::getenv("SINTER_CACHE_DIR") ? std::getenv("SINTER_CACHE_DIR") : "";
  setenv("SINTER_CACHE_DIR", file("cache").c_str(), 1);
  CodeStore(file("cache")).save(key("a", "clang 19"), "code", "k1_add");
  EXPECT_EQ(compiler::save_artifacts(file("archive")), 1u);
  setenv("SINTER_CACHE_DIR", file("other").c_str(), 1);
  EXPECT_EQ(compiler::load_artifacts(file("archive")), 1u);
  EXPECT_EQ(CodeStore(file("other")).load(key("a", "clang 19")), "code");
  EXPECT_THROW(compiler::load_artifacts(file("nothing")), Error);
  before.empty() ? unsetenv("SINTER_CACHE_DIR") : setenv("SINTER_CACHE_DIR", before.c_str(), 1);
}

}  // namespace
}  // namespace sinter
