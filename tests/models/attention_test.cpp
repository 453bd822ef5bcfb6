// The implementations of attention that models can be told to use.
#include <gtest/gtest.h>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/models/models.h"
#include "sinter/models/parts/attention.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::models {
namespace {

// The choice is the process's: put back whatever a test does.
struct Chosen {
  explicit Chosen(Attention implementation) { set_attention(implementation); }
  ~Chosen() { set_attention(Attention::kSdpa); }
};

std::shared_ptr<Model> load(const std::string& name) {
  return from_pretrained(format("{}/models/{}", SINTER_TEST_DATA, name));
}

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item().to_double(); }

TEST(Attention, ImplementationsAgree) {
  NoGradGuard no_grad;
  // Grouped heads, a window shorter than the text, an encoder.
  for (auto name : {"llama-gqa", "mistral", "bert"}) {
    auto model = load(name);
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < 24; ++i) ids.push_back(3 + (i * 37) % 90);
    NamedTensors inputs = {{"input_ids", tensor(ids).view({2, 12})}};
    Tensor whole = model->run(inputs).at(0).second, parts;
    {
      Chosen chosen(Attention::kDecomposed);
      parts = model->run(inputs).at(0).second;
    }
    double apart = difference(whole, parts);
    EXPECT_LT(apart, 1e-4) << name;
    EXPECT_GT(apart, 0) << name << ": the switch had no effect";
  }
}

TEST(Attention, ImplementationsAgreeOverACache) {
  NoGradGuard no_grad;
  auto model = causal_lm(load("llama-gqa"));
  auto last_logits = [&] {
    KvCache cache = model->make_cache(1, 16);
    cache.begins = true;
    model->forward(tensor(std::vector<int64_t>{4, 8, 15}).unsqueeze(0), arange(3), {}, &cache);
    cache.begins = false;
    return model->forward(tensor(std::vector<int64_t>{16}).unsqueeze(0), tensor(std::vector<int64_t>{3}), {}, &cache);
  };
  Tensor whole = last_logits();
  Chosen chosen(Attention::kDecomposed);
  EXPECT_LT(difference(whole, last_logits()), 1e-4);
}

// Rows of keys and values as codes: nearly the same logits, of a sequence's beginning and of each step, even and not, compiled too.
TEST(Attention, OverACacheOfCodes) {
  NoGradGuard no_grad;
  for (const char* name : {"llama-gqa", "mistral", "gpt2"}) {
    auto model = causal_lm(load(name));
    auto step = [&](const Tensor& ids, const Tensor& positions, KvCache cache) {
      return model->forward(ids, positions, {}, &cache);
    };
    auto compiled = compile(step);
    auto logits = [&](std::optional<DType> dtype, bool compile, bool even) {
      KvCache cache = model->make_cache(2, 16, dtype);
      auto run = [&](const Tensor& ids, const Tensor& positions) {
        return compile ? compiled(ids, positions, cache) : step(ids, positions, cache);
      };
      const Tensor ids = tensor({4, 8, 15, 16, 23, 42}).view({2, 3});
      TensorList all = {run(ids, even ? arange(3) : tensor({0, 1, 2, 2, 3, 4}).view({2, 3}))};
      all.push_back(run(ids.slice(1, 0, 1), even ? tensor({3}) : tensor({3, 5}).view({2, 1})));
      return cat(all, 1);
    };
    for (bool even : {true, false}) {
      const Tensor want = logits({}, false, even), got = logits(kInt8, false, even);
      EXPECT_LT(difference(got, want), 5e-2) << name;
      EXPECT_GT(difference(got, want), 0) << name;
      EXPECT_LT(difference(logits(kInt8, true, even), got), 1e-4) << name;
    }
    EXPECT_EQ(model->make_cache(1, 4, kInt8).keys[0].dtype(), kInt8);
    EXPECT_TRUE(model->make_cache(1, 4).key_scales.empty());
    EXPECT_THROW(model->make_cache(1, 4, kInt32), Error);
  }
}

TEST(Attention, UnknownNamesAreErrors) {
  EXPECT_EQ(parse_attention("sdpa"), Attention::kSdpa);
  EXPECT_EQ(parse_attention("decomposed"), Attention::kDecomposed);
  EXPECT_THROW(parse_attention("flash"), Error);
}

}  // namespace
}  // namespace sinter::models
