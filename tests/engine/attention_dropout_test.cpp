// Attention that drops weights: its kernels draw what its body draws, forward and backward, and keep no weights.
#include <gtest/gtest.h>

#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/compiler.h"
#include "sinter/engine/profile.h"
#include "sinter/engine/report.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/nn/attention.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/philox.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/engine/programs.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

using testing::is_close;
using testing::values;

constexpr uint64_t kSeed = 41;

// Names of what ran while f did.
template <class F>
std::string ops_of(F&& f) {
  Profile profile;
  f();
  std::string out;
  for (auto& [name, row] : profile.rows()) out += name + " ";
  return out;
}

struct Case {
  const char* name;
  TensorList inputs;
  bool causal = false, gqa = false;

  Tensor attend(const TensorList& x, double p) const {
    return scaled_dot_product_attention(x[0], x[1], x[2], x.size() > 3 ? x[3] : Tensor(), p, causal, {}, gqa);
  }
};

std::vector<Case> cases() {
  Tensor q = values({2, 4, 37, 8}), k = values({2, 4, 45, 8}, 1), v = values({2, 4, 45, 5}, 2);
  Tensor few = values({2, 2, 45, 8}, 3), few_values = values({2, 2, 45, 6}, 4);
  return {
      {"plain", {q, k, v}},
      {"causal", {q, k, v}, true},
      {"grouped", {q, few, few_values}, false, true},
      {"grouped_few_queries", {q.slice(2, 0, 3), few, few_values}, true, true},
      {"matrices", {q[0][0], k[0][0], v[0][0]}},
      {"heads_broadcast", {q, k.slice(1, 0, 1), v.slice(1, 1, 2)}},
      {"batch_broadcast", {q[0], k[0], v}},
      {"many_keys", {values({1, 1, 3, 8}), values({1, 1, 1301, 8}, 1), values({1, 1, 1301, 8}, 2)}},
      {"mask_of_bool", {q, k, v, values({2, 1, 37, 45}) > 0.0}},
      {"mask_of_numbers", {q, k, v, values({37, 45}, 5)}},
      {"bf16", {q.to(kBFloat16), k.to(kBFloat16), v.to(kBFloat16)}},
      {"f16_masked", {q.to(kFloat16), k.to(kFloat16), v.to(kFloat16), values({37, 45}).to(kFloat16)}},
      {"f64", {q.to(kFloat64), k.to(kFloat64), v.to(kFloat64)}},
  };
}

TEST(AttentionDropout, AgreesWithTheInterpreter) {
  for (auto& c : cases())
    for (double p : {0.1, 0.7}) {
      SCOPED_TRACE(c.name);
      std::vector<Type> types;
      std::vector<Array> arrays;
      for (auto& t : c.inputs) {
        types.push_back({t.dtype(), t.sizes(), t.device()});
        arrays.push_back(to_array(t));
      }
      manual_seed(kSeed);
      Graph graph = trace([&](const TensorList& x) { return TensorList{c.attend(x, p)}; }, types);
      Tensor want = to_tensor(interpret(graph, arrays)[0]), got;
      manual_seed(kSeed);
      std::string ran = ops_of([&] { got = c.attend(c.inputs, p); });
      const bool half = item_size(want.dtype()) == 2;
      EXPECT_TRUE(is_close(got.to(kFloat32), want.to(kFloat32), half ? 2e-2 : 2e-5));
      if (want.dtype() != kFloat64) {
        EXPECT_EQ(ran, "scaled_dot_product_attention ");
      }
      // A program that has the numbers of its draw in itself.
      auto compiled = compile([&](const TensorList& x) { return c.attend(x, p); });
      manual_seed(kSeed);
      EXPECT_TRUE(is_close(compiled(c.inputs).to(kFloat32), want.to(kFloat32), half ? 2e-2 : 2e-5));
    }
}

// Equal scores and a unit matrix of values: the result is the weights.
TEST(AttentionDropout, DrawsByCounters) {
  const int64_t rows = 6, keys = 21;
  const double p = 0.3;
  for (DType dtype : {kFloat32, kFloat64}) {
    Tensor q = zeros({2, rows / 2, 4}, dtype), k = zeros({2, keys, 4}, dtype), v = eye(keys, dtype).expand({2, keys, keys});
    manual_seed(kSeed);
    Tensor got = (scaled_dot_product_attention(q, k, v, {}, p) * double(keys)).to(kFloat32).reshape({rows, keys});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < keys; ++j) {
        const bool kept = (philox(i * 6 + j / 4, kSeed, 0)[size_t(j % 4)] >> 8) * 0x1p-24 >= double(float(p));
        EXPECT_NEAR(got[i][j].item<float>(), kept ? 1 / (1 - p) : 0, 1e-5) << i << " " << j;
      }
  }
}

TensorList gradients(const std::function<Tensor(const TensorList&)>& loss, const TensorList& leaves) {
  manual_seed(kSeed);
  return autograd::grad({loss(leaves)}, leaves);
}

TEST(AttentionDropout, GradientsAreThoseOfDoublePrecision) {
  for (auto& c : cases()) {
    SCOPED_TRACE(c.name);
    if (c.inputs[0].dtype() == kFloat64) continue;
    const bool half = item_size(c.inputs[0].dtype()) == 2;
    auto loss = [&](const TensorList& x) {
      Tensor y = c.attend(x, 0.3);
      return (y * values(y.sizes(), 7).to(y.dtype())).to(kFloat64).sum();
    };
    TensorList leaves, exact;
    for (auto& t : c.inputs) {
      const bool differentiable = is_floating(t.dtype());
      leaves.push_back(differentiable ? t.detach().clone().requires_grad_() : t);
      exact.push_back(differentiable ? t.detach().to(kFloat64).requires_grad_() : t);
    }
    if (c.inputs.size() > 3 && !is_floating(c.inputs[3].dtype())) {
      Tensor mask = c.inputs[3];
      leaves.pop_back(), exact.pop_back();
      auto masked = [loss, mask](TensorList x) {
        x.push_back(mask);
        return loss(x);
      };
      TensorList want = gradients(masked, exact), got = gradients(masked, leaves);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(is_close(got[i].to(kFloat64), want[i], 1e-4)) << i;
      continue;
    }
    TensorList want = gradients(loss, exact);
    auto expect_close = [&](const TensorList& got) {
      for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(is_close(got[i].to(kFloat64), want[i], half ? 6e-2 : 1e-4)) << i;
    };
    expect_close(gradients(loss, leaves));
    expect_close(gradients(compile(loss), leaves));
  }
}

// As large as all weights together are they nowhere, nor are their draws.
TEST(AttentionDropout, KeepsNoWeights) {
  const int64_t heads = 2, length = 512;
  TensorList x;
  for (int i = 0; i < 3; ++i) x.push_back(values({1, heads, length, 8}, i).requires_grad_());
  auto loss = [](const TensorList& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.2).square().sum(); };
  auto step = [&](const TensorList& x) { return autograd::grad({loss(x)}, x); };
  manual_seed(kSeed);
  TensorList want = step(x);
  auto compiled = compile(step);
  manual_seed(kSeed);
  TensorList got = compiled(x);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_close(got[i], want[i], 1e-4));
  auto programs = compiler::explain(step, x).programs;
  EXPECT_LT(programs.at(0).reports.at(0)->peak_bytes(), heads * length * length / 2);
}

TEST(AttentionDropout, CheckpointsDrawTheSame) {
  TensorList x;
  for (int i = 0; i < 3; ++i) x.push_back(values({2, 2, 33, 8}, i).requires_grad_());
  auto attend = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention(q, k, v, {}, 0.4, true).tanh();
  };
  auto plain = [&](const TensorList& x) { return attend(x[0], x[1], x[2]).square().sum(); };
  auto again = [&](const TensorList& x) { return checkpoint(attend, x[0], x[1], x[2]).square().sum(); };
  TensorList want = gradients(plain, x), eager = gradients(again, x);
  auto step = compile([&](const TensorList& x) { return autograd::grad({again(x)}, x); });
  manual_seed(kSeed);
  TensorList compiled = step(x);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_close(eager[i], want[i], 1e-6));
    EXPECT_TRUE(is_close(compiled[i], want[i], 1e-5));
  }
}

TEST(AttentionDropout, OfNothingAndOfEverything) {
  TensorList x;
  for (int i = 0; i < 3; ++i) x.push_back(values({2, 5, 8}, i).requires_grad_());
  auto attend = [&](double p) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, p); };
  manual_seed(kSeed);
  Tensor none = attend(0), drawn = rand({3});
  manual_seed(kSeed);
  EXPECT_TRUE(is_close(rand({3}), drawn, 0));
  EXPECT_TRUE(is_close(none, scaled_dot_product_attention(x[0], x[1], x[2]), 0));
  Tensor all = attend(1);
  EXPECT_EQ(all.abs().sum().item<float>(), 0);
  for (auto& grad : autograd::grad({all.sum()}, x)) EXPECT_EQ(grad.abs().sum().item<float>(), 0);
  EXPECT_NE(error_of([&] { attend(1.5); }).find("dropout_p"), std::string::npos);
}

TEST(AttentionDropout, StaysWholeForAnyLength) {
  auto attend = [](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {}, 0.2, true) * 2; };
  auto compiled = compile(attend);
  std::string ran;
  for (int64_t length : {33, 40, 57}) {
    Tensor x = values({2, length, 8}), got;
    manual_seed(kSeed);
    Tensor want = attend(x);
    manual_seed(kSeed);
    ran = ops_of([&] { got = compiled(x); });
    EXPECT_TRUE(is_close(got, want, 1e-6)) << length;
  }
  EXPECT_NE(ran.find("scaled_dot_product_attention"), ran.npos) << ran;
  EXPECT_EQ(ran.find("bmm"), ran.npos) << ran;
}

TEST(AttentionDropout, LayersUseIt) {
  nn::MultiheadAttention layer(nn::MultiheadAttentionOptions(16, 2).dropout(0.5).batch_first(true));
  Tensor x = values({2, 9, 16});
  auto run = [&] { return std::get<0>(layer->forward(x, x, x, nn::AttentionArgs().need_weights(false))); };
  std::string ran = ops_of(run);
  EXPECT_NE(ran.find("attention_forward"), ran.npos) << ran;
  EXPECT_EQ(ran.find("bmm"), ran.npos) << ran;
}

}  // namespace
}  // namespace sinter
