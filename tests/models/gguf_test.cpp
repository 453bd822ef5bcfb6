// Models in GGUF files (tools/record_gguf.py): their weights are the numbers that the gguf package unpacks, and those
// of the checkpoints that they were converted from.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/io/gguf/gguf.h"
#include "sinter/models/models.h"
#include "sinter/nn/quantize.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter::models {
namespace {

namespace fs = std::filesystem;

std::string recorded(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/gguf/" + name; }
double difference(const Tensor& a, const Tensor& b) { return ((a - b).abs().max() / b.abs().max()).item<float>(); }

// What the module calls a matrix of types.gguf.
nn::LinearImpl* layer_of(Model& model, const std::string& name) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_gate", "mlp.gate_proj"},  {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  for (auto& [from, to] : kNames)
    if (name.find(from) != std::string::npos)
      return (*model.named_modules().find("layers." + name.substr(4, 1) + "." + to))->as<nn::Linear>();
  return nullptr;
}

// Rows of query and key, of heads of eight, half a head apart instead of in pairs; the recorded ones are every fifth of
// the file.
std::vector<int64_t> recorded_rows(const std::string& name, int64_t rows) {
  const bool turned = name.find("attn_q") != std::string::npos || name.find("attn_k") != std::string::npos;
  std::vector<int64_t> out;
  for (int64_t row = 0; row < rows; row += 5) out.push_back(turned ? row / 8 * 8 + row % 2 * 4 + row % 8 / 2 : row);
  return out;
}

TEST(GgufModels, EveryTypeIsReadWithoutLoss) {
  const GgufFile file(recorded("types.gguf"));
  auto model = from_pretrained(recorded("types.gguf"), {.dtype = kFloat32});
  std::set<std::string> types;
  for (auto& [name, want] : load_safetensors(recorded("types.safetensors"))) {
    SCOPED_TRACE(name);
    const GgufTensor& stored = *file.find(name);
    types.insert(stored.type.name);
    const std::string type = stored.type.name;
    Tensor got;
    if (nn::LinearImpl* layer = layer_of(*model, name)) {
      const bool plain = type == "F32" || type == "F16" || type == "BF16";
      ASSERT_EQ(layer->quantized == nullptr, plain) << type;
      got = plain ? layer->weight : layer->quantized->dequantize(kFloat32);
    } else {
      got = *model->state_dict().find("embed_tokens.weight");
      // The head has the codes of the embedding.
      auto* head = (*model->named_modules().find("lm_head"))->as<nn::Linear>();
      EXPECT_EQ(head->quantized->dequantize(kFloat32).to_vector<float>(), got.to_vector<float>());
    }
    const Tensor rows = got.index_select(0, tensor(recorded_rows(name, got.size(0).number())));
    EXPECT_EQ(rows.to_vector<float>(), want.to_vector<float>()) << type;
  }
  EXPECT_EQ(types.size(), 16u);
}

TEST(GgufModels, ProductsReadTheBlocks) {
  NoGradGuard no_grad;
  const Tensor ids = tensor({5, 17, 3, 50}).view({1, 4});
  for (DType dtype : {kFloat32, kBFloat16}) {
    auto model = causal_lm(from_pretrained(recorded("types.gguf"), {.dtype = dtype}));
    const Tensor want = model->forward(ids).to(kFloat32);
    auto compiled = compile([&](const Tensor& given) { return model->forward(given); });
    EXPECT_LT(difference(compiled(ids).to(kFloat32), want), dtype == kFloat32 ? 1e-4 : 5e-2);
    // It is made again from its state, as packages do.
    auto again = from_state(ConfigFile::parse(model->origin(), "config.json"), model->state_dict());
    EXPECT_EQ(difference(causal_lm(again)->forward(ids).to(kFloat32), want), 0);
  }
  // Each weight as a matrix gives the same numbers.
  auto encoded = from_pretrained(recorded("types.gguf"), {.dtype = kFloat32}),
       plain = from_pretrained(recorded("types.gguf"), {.dtype = kFloat32});
  for (auto& [name, module] : plain->named_modules())
    if (auto* layer = module->as<nn::Linear>(); layer && layer->quantized) {
      const Tensor weight = layer->quantized->dequantize(kFloat32);
      layer->quantized = nullptr;
      layer->weight = weight;
    }
  EXPECT_LT(difference(causal_lm(encoded)->forward(ids), causal_lm(plain)->forward(ids)), 1e-5);
}

TEST(GgufModels, AreComputedInBf16WhereTheyAreEncoded) {
  auto model = from_pretrained(recorded("types.gguf"));
  EXPECT_EQ(model->state_dict().find("norm.weight")->dtype(), kBFloat16);
  EXPECT_EQ(from_pretrained(recorded("qwen3.gguf"))->state_dict().find("norm.weight")->dtype(), kFloat32);
  EXPECT_NE(
      message_of([&] { from_pretrained(recorded("types.gguf"), {.quantize = "int8"}); }).find("quantised already"),
      std::string::npos);
  EXPECT_GT(quantize_(*from_pretrained(recorded("qwen3.gguf")), "int8"), 8);
  auto narrower = from_pretrained(recorded("qwen3.gguf"), {.quantize = "int8"});
  EXPECT_TRUE(narrower->state_dict().contains("layers.0.self_attn.q_proj.codes"));
}

class GgufFamilies : public ::testing::TestWithParam<std::string> {};

// Converted and read again, a checkpoint has the same parameters and computes the same.
TEST_P(GgufFamilies, AreTheirCheckpoints) {
  NoGradGuard no_grad;
  auto got = from_pretrained(recorded(GetParam() + ".gguf")),
       want = from_pretrained(std::string(SINTER_TEST_DATA) + "/models/" + GetParam());
  EXPECT_EQ(got->config().architecture, want->config().architecture);
  auto state = got->state_dict();
  for (auto& [name, tensor] : want->state_dict()) {
    ASSERT_TRUE(state.contains(name)) << name;
    // Norms of Gemma are stored with a 1 added to them.
    if (want->config().norm == NormKind::kUnitOffsetRms) {
      EXPECT_LT((*state.find(name) - tensor).abs().max().item<float>(), 1e-7f) << name;
    } else {
      EXPECT_EQ(state.find(name)->to_vector<float>(), tensor.to_vector<float>()) << name;
    }
  }
  EXPECT_EQ(state.size(), want->state_dict().size());
  if (GetParam() == "qwen2-window") return;  // the window is not in the file
  // More tokens than some of them see at once; query scales of Gemma are not in the files, which the fixture changes.
  if (GetParam() == "gemma2" || GetParam() == "gemma3") return;
  const int64_t length = GetParam() == "starcoder2" ? 6 : 40;
  const Tensor ids = (arange(length, TensorOptions(kInt64)) * 7 % 90).view({1, length});
  EXPECT_LT(difference(causal_lm(got)->forward(ids), causal_lm(want)->forward(ids)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, GgufFamilies,
                         ::testing::Values("llama-linear", "llama-yarn", "llama-biased", "qwen2-window", "qwen3",
                                           "gemma", "gemma2", "gemma3", "phi3", "phi3-longrope", "phi4",
                                           "granite", "olmo2", "starcoder2", "stablelm"),
                         [](auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Made for the converter: positions stretched as Llama 3.1's, and the sizes that files of Phi cannot tell.
TEST(GgufModels, ComputeWhatTransformersDoes) {
  NoGradGuard no_grad;
  for (const std::string name : {"llama3-rope", "phi2"}) {
    NamedTensors golden = load_safetensors(recorded(name + ".safetensors"));
    auto model = causal_lm(from_pretrained(recorded(name + ".gguf")));
    EXPECT_LT(difference(model->forward(*golden.find("ids")), *golden.find("logits")), 1e-4) << name;
    EXPECT_EQ(model->config().tie_embeddings, name == "llama3-rope");
  }
}

// A tensor missing, of another shape or unknown: an error that names it.
TEST(GgufModels, DamagedFiles) {
  OwnDirectory own;
  std::ifstream file(recorded("qwen3.gguf"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  auto error_with = [&](const std::string& what, const std::string& other) {
    std::string changed = whole;
    const size_t at = changed.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    changed.replace(at, what.size(), other);
    std::ofstream(own.file("x.gguf"), std::ios::binary) << changed;
    return message_of([&] { from_pretrained(own.file("x.gguf")); });
  };
  const std::string renamed = error_with("blk.1.attn_k.weight", "blk.1.attn_z.weight");
  EXPECT_NE(renamed.find("blk.1.attn_z.weight"), std::string::npos) << renamed;
  EXPECT_NE(renamed.find("layers.1.self_attn.k_proj.weight"), std::string::npos) << renamed;
  EXPECT_NE(error_with("blk.1.attn_k.weight", "blk.0.attn_k.weight").find("named 'blk.0.attn_k.weight'"),
            std::string::npos);
  EXPECT_NE(error_with("qwen3.block_count", "qwen3.block_sixty").find("lacks 'qwen3.block_count'"), std::string::npos);
  EXPECT_NE(error_with("token_embd.weight", "token_embt.weight").find("token_embd.weight"), std::string::npos);
}

}  // namespace
}  // namespace sinter::models
