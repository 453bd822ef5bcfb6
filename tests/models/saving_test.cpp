#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sinter/io/checkpoint.h"
#include "sinter/models/models.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::models {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(SINTER_TEST_DATA) / "models";

std::vector<std::string> decoders_and_classifiers() {
  std::vector<std::string> names;
  for (auto& entry : fs::directory_iterator(kData)) {
    std::string name = entry.path().filename().string();
    if (name.find("bert") == std::string::npos) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Saved : public ::testing::TestWithParam<std::string> {};

// What transformers wrote, by the same names, in the same shapes, with the same numbers.
TEST_P(Saved, IsWhatWasLoaded) {
  OwnDirectory own;
  std::string from = (kData / GetParam()).string(), to = own.file("saved");
  save_pretrained(*from_pretrained(from), to);
  std::map<std::string, Tensor> written;
  for (auto& [name, tensor] : load_safetensors(to + "/model.safetensors")) written.emplace(name, tensor);
  size_t found = 0;
  for (auto& [name, tensor] : load_safetensors(from + "/model.safetensors")) {
    auto ours = written.find(name);
    // A checkpoint may hold what no model computes with: a pooler, a second copy of tied weights.
    if (ours == written.end()) continue;
    ++found;
    ASSERT_TRUE(ours->second.sizes().same_as(tensor.sizes())) << name;
    EXPECT_EQ(ours->second.to(kFloat64).to_vector<double>(), tensor.to(kFloat64).to_vector<double>()) << name;
  }
  EXPECT_EQ(found, written.size()) << "a name that the checkpoint does not have";
  EXPECT_NO_THROW(from_pretrained(to));
}

INSTANTIATE_TEST_SUITE_P(Models, Saved, ::testing::ValuesIn(decoders_and_classifiers()), [](auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Saving, ATypeIsToldInTheConfig) {
  OwnDirectory own;
  save_pretrained(*from_pretrained((kData / "llama-gqa").string()), own.file("half"), kBFloat16);
  auto config = nlohmann::json::parse(std::ifstream(own.file("half") + "/config.json"));
  EXPECT_EQ(config["dtype"], "bfloat16");
  EXPECT_EQ(from_pretrained(own.file("half"))->parameters()[0].dtype(), kBFloat16);
}

TEST(Saving, AnEncoderIsRefused) {
  OwnDirectory own;
  auto model = from_pretrained((kData / "bert").string());
  EXPECT_NE(message_of([&] { save_pretrained(*model, own.file("bert")); }).find("heads"), std::string::npos);
}

}  // namespace
}  // namespace sinter::models
