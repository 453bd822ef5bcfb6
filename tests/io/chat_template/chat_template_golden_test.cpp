// Every case of tests/data/chat_templates: what is rendered is what Jinja rendered.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/chat_template.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

TEST(ChatTemplateGolden, EveryCaseIsWhatJinjaRendered) {
  fs::path folder = fs::path(SINTER_TEST_DATA) / "chat_templates";
  ordered_json golden = ordered_json::parse(std::ifstream(folder / "golden.json"));
  ASSERT_GT(golden.size(), 20u);
  for (auto& entry : golden) {
    std::string name = entry["template"];
    std::ostringstream source;
    source << std::ifstream(folder / (name + ".jinja"), std::ios::binary).rdbuf();
    SCOPED_TRACE(name + " with " + entry["context"].get<std::string>());
    ordered_json context =
        ordered_json::parse(std::ifstream(folder / "contexts.json"))[entry["context"].get<std::string>()];
    ChatTemplate chat(source.str());
    if (entry.contains("error")) {
      EXPECT_THROW(chat.render(context.dump()), Error);
    } else {
      EXPECT_EQ(chat.render(context.dump()), entry["output"].get<std::string>());
    }
  }
}

}  // namespace
}  // namespace sinter
