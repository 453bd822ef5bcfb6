// Packages of whole models, exported and loaded.
#include "sinter/package/package.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/pointwise.h"
#include "sinter/package/package_file.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

std::string model_folder(const char* name) { return (fs::path(SINTER_TEST_DATA) / "models" / name).string(); }

class PackageTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return directory_.file(name); }

  // The package again with another manifest.
  void change_manifest(const std::string& from, const std::string& to, const std::string& what, const std::string& by) {
    PackageFile old(from);
    PackageWriter writer(to);
    for (auto& section : old.sections()) {
      std::string bytes = old.read(section.name);
      if (section.name == "manifest") {
        size_t at = bytes.find(what);
        ASSERT_NE(at, std::string::npos) << bytes;
        bytes.replace(at, what.size(), by);
      }
      writer.add(section.name, bytes);
    }
    writer.finish();
  }

  OwnDirectory directory_;
};

std::string error_of(const std::string& path, bool verify = false) {
  try {
    Package::load(path, {.verify = verify});
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

constexpr int64_t kTokens = 5;
std::vector<int64_t> tokens(TextGenerator& generator) {
  return generator.generate({5, 17, 3, 11}, {.max_new_tokens = kTokens}).ids;
}

ExportOptions small() { return {.cache_length = 32, .buckets = {8}}; }

// Other norms, rotations, projections, orders, and experts.
TEST_F(PackageTest, HoldsEveryKindOfDecoder) {
  for (const char* name : {"phi", "olmo2", "cohere2", "falcon-grouped", "glm4", "stablelm-parallel", "qwen2_moe"}) {
    std::string folder = model_folder(name);
    TextGenerator plain(models::causal_lm(models::from_pretrained(folder)), {.eager = true, .cache_length = 32, .buckets = {8}});
    export_package(folder, file("a.sinter"), small());
    Package package = Package::load(file("a.sinter"), {.verify = true});
    EXPECT_EQ(tokens(package.generator()), tokens(plain)) << name;
    for (auto& explanation : package.generator().explanations())
      for (auto& program : explanation.programs) EXPECT_EQ(program.note, "found in the store, not traced") << name;
  }
  try {
    export_package(model_folder("t5"), file("t5.sinter"), small());
    FAIL() << "a model that reads first";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("reads a text or a sound"), std::string::npos) << error.message();
  }
}

TEST_F(PackageTest, GeneratesWhatTheCheckpointDoes) {
  std::string folder = model_folder("llama-gqa");
  TextGenerator plain(models::causal_lm(models::from_pretrained(folder)), {.eager = true, .cache_length = 32, .buckets = {8}});
  auto expected = tokens(plain);
  for (bool inside : {true, false}) {
    auto options = small();
    options.weights_inside = inside;
    export_package(folder, file("a.sinter"), options);
    EXPECT_EQ(fs::exists(file("a.sinter.safetensors")), !inside);
    Package package = Package::load(file("a.sinter"), {.verify = true});
    EXPECT_EQ(tokens(package.generator()), expected);
    EXPECT_EQ(package.info().architecture, "LlamaForCausalLM");
    EXPECT_EQ(package.info().cache_length, 32);
    EXPECT_EQ(package.info().buckets, (std::vector<int64_t>{8, 32}));
    for (auto& explanation : package.generator().explanations())
      for (auto& program : explanation.programs) EXPECT_EQ(program.note, "found in the store, not traced");
    EXPECT_THROW(package.tokenizer(), Error);
  }
  // Weights beside it are looked for and compared by their size, with `verify` by their bytes.
  std::string weights = file("a.sinter.safetensors");
  std::fstream(weights, std::ios::in | std::ios::out | std::ios::binary).seekp(-5, std::ios::end).put(77);
  EXPECT_EQ(error_of(file("a.sinter")), "");
  EXPECT_NE(error_of(file("a.sinter"), true).find("damaged"), std::string::npos);
  fs::resize_file(weights, fs::file_size(weights) - 1);
  EXPECT_NE(error_of(file("a.sinter")).find("bytes"), std::string::npos);
  fs::remove(weights);
  EXPECT_NE(error_of(file("a.sinter")).find("should lie beside it"), std::string::npos);
}

TEST_F(PackageTest, EncodersAndImageModels) {
  NoGradGuard no_grad;
  struct Case {
    const char *model, *input, *output;
  };
  for (auto& c : {Case{"bert", "input_ids", "last_hidden_state"}, Case{"resnet", "pixel_values", "logits"}}) {
    export_package(model_folder(c.model), file("a.sinter"), {.buckets = {16}});
    Package package = Package::load(file("a.sinter"));
    SafeTensorsFile golden(model_folder(c.model) + "/golden.safetensors");
    auto model = models::from_pretrained(model_folder(c.model));
    NamedTensors in;
    for (auto& name : golden.names())
      if (name == c.input) in.emplace_back(c.input, golden.tensor(name));
    ASSERT_EQ(in.size(), 1u) << c.model;
    auto expected = model->run(in), got = package.run(in);
    EXPECT_EQ(got[0].first, c.output);
    EXPECT_TRUE(allclose(got[0].second, expected[0].second, 1e-4, 1e-4)) << c.model;
    EXPECT_THROW(package.generator(), Error);
  }
}

TEST_F(PackageTest, AnotherMachineIsCompiledAnew) {
  export_package(model_folder("llama-gqa"), file("a.sinter"), small());
  Package package = Package::load(file("a.sinter"));
  auto expected = tokens(package.generator());
  std::string cpu = package.info().cpu;
  change_manifest(file("a.sinter"), file("b.sinter"), cpu, cpu + "+amx");
  Package other = Package::load(file("b.sinter"));
  EXPECT_EQ(tokens(other.generator()), expected);
  change_manifest(file("a.sinter"), file("c.sinter"), "\"device\": \"cpu\"", "\"device\": \"cuda\"");
  std::string error = error_of(file("c.sinter"));
  EXPECT_TRUE(error.empty() || error.find("GPU") != std::string::npos) << error;
}

// Of everything but the weights, which nobody reads again: `verify` is for them.
TEST_F(PackageTest, AThousandFlippedBytes) {
  auto options = small();
  options.weights_inside = false;
  export_package(model_folder("llama-gqa"), file("a.sinter"), options);
  Package package = Package::load(file("a.sinter"));
  auto expected = tokens(package.generator());
  std::ifstream in(file("a.sinter"), std::ios::binary);
  std::string all{std::istreambuf_iterator<char>(in), {}};
  std::mt19937 draw(3);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string changed = all;
    size_t at = draw() % all.size();
    changed[at] = char(changed[at] ^ (1 + draw() % 255));
    std::ofstream(file("a.sinter"), std::ios::binary | std::ios::trunc) << changed;
    try {
      Package damaged = Package::load(file("a.sinter"));
      EXPECT_EQ(tokens(damaged.generator()), expected) << at;
    } catch (const Error& error) {
      ++refused;
      EXPECT_NE(error.message().find("package"), std::string::npos) << error.message();
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace sinter
