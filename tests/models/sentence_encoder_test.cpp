// A tiny checkpoint in sentence-transformers' layout: see tools/make_embedding_fixtures.py.
#include "sinter/models/sentence_encoder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "sinter/capture/compiler.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/reduce.h"
#include "tests/support/distance.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::models {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = SINTER_TEST_DATA "/sentence";

class Sentences : public ::testing::Test {
 protected:
  // A copy of the folder, whose steps behind the encoder are these.
  std::string folder_with(const std::string& modules, const std::string& pooling = "") {
    fs::path folder = own_.path() / "model";
    fs::remove_all(folder);
    fs::copy(kFolder, folder, fs::copy_options::recursive);
    std::ofstream(folder / "modules.json") << modules;
    if (!pooling.empty()) std::ofstream(folder / "1_Pooling" / "config.json") << pooling;
    return folder.string();
  }
  std::string error_with(const std::string& modules, const std::string& pooling = "") {
    return message_of([&] { sentence_encoder(folder_with(modules, pooling)); });
  }
  Tensor golden(const std::string& name) const { return SafeTensorsFile(kFolder + "/golden.safetensors").tensor(name); }

  static std::vector<std::string> texts() {
    std::ifstream file(kFolder + "/texts.txt");
    std::vector<std::string> out;
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }

  const std::string kPooled = R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
                                  {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])";
  OwnDirectory own_;
  Tokenizer tokenizer_ = Tokenizer::from_pretrained(kFolder);
};

TEST_F(Sentences, EmbeddingsAreThoseRecorded) {
  auto model = sentence_encoder(kFolder);
  EXPECT_EQ(model->max_tokens(), 12);
  Tensor want = golden("embeddings");
  EXPECT_LT(distance(model->encode(texts(), tokenizer_), want), 1e-5);
  auto inputs = texts();
  // Padding changes nothing.
  for (int64_t multiple : {1, 16}) {
    auto [ids, mask] = model->tokenize(inputs, tokenizer_, multiple);
    EXPECT_LT(distance(model->run({{"input_ids", ids}, {"attention_mask", mask}})[0].second, want), 1e-5);
    for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead}) {
      auto fast = compile([model](const Tensor& ids, const Tensor& mask) { return model->forward(ids, mask); },
                          {.mode = mode, .fullgraph = true});
      EXPECT_LT(distance(fast(ids, mask), want), 1e-5) << to_string(mode);
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LT(distance(model->encode({inputs[i]}, tokenizer_)[0], want[int64_t(i)]), 1e-5) << "alone";
}

TEST_F(Sentences, EveryKindOfPooling) {
  const std::map<std::string, std::string> older = {{"cls", "pooling_mode_cls_token"},
                                                    {"max", "pooling_mode_max_tokens"},
                                                    {"mean", "pooling_mode_mean_tokens"},
                                                    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
                                                    {"weightedmean", "pooling_mode_weightedmean_tokens"},
                                                    {"lasttoken", "pooling_mode_lasttoken"}};
  auto embed = [&](const std::string& pooling) {
    return sentence_encoder(folder_with(kPooled, pooling))->encode(texts(), tokenizer_);
  };
  for (auto& [name, key] : older) {
    EXPECT_LT(distance(embed("{\"pooling_mode\": \"" + name + "\"}"), golden(name)), 1e-5) << name;
    EXPECT_LT(distance(embed("{\"word_embedding_dimension\": 16, \"" + key + "\": true}"), golden(name)), 1e-5) << key;
  }
  Tensor two = embed(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  EXPECT_LT(distance(two, cat({golden("cls"), golden("mean")}, -1)), 1e-5);
  // Without a list of modules, the mean.
  std::string folder = folder_with("");
  fs::remove(fs::path(folder) / "modules.json");
  EXPECT_LT(distance(sentence_encoder(folder)->encode(texts(), tokenizer_), golden("mean")), 1e-5);
}

TEST_F(Sentences, SaysWhatDoesNotFit) {
  auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(error_with("{}"), "no list of modules");
  expect(error_with(R"([{"path": ""}])"), "without type and path");
  expect(error_with(R"([{"path": "", "type": "a.Pooling"}])"), "does not begin with a Transformer");
  expect(error_with(R"([{"path": "", "type": "a.Transformer"}, {"path": "../x", "type": "a.Pooling"}])"),
         "no folder of it");
  expect(error_with(R"([{"path": "", "type": "a.Transformer"}, {"path": "1", "type": "a.CNN"}])"), "type 'CNN'");
  expect(error_with(kPooled, R"({"pooling_mode": "median"})"), "known are cls, max, mean");
  std::string folder =
      folder_with(R"([{"path": "", "type": "a.Transformer"}, {"path": "2_Dense", "type": "a.Dense"}])");
  std::ofstream(fs::path(folder) / "2_Dense" / "config.json") << R"({"in_features": 16, "out_features": 9})";
  expect(message_of([&] { sentence_encoder(folder); }), "its config.json says [9, 16]");
  expect(message_of([&] { sentence_encoder(SINTER_TEST_DATA "/models/llama-gqa"); }),
         "no encoder of texts");
}

}  // namespace
}  // namespace sinter::models
