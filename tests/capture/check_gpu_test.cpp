// {"check", N} and bisect() on a GPU: right programs are left alone, and a planted fault is named.
#include "common.h"
#include "sinter/capture/bisect.h"
#include "sinter/base/planted.h"
#include "sinter/graph/rewrite.h"
#include "sinter/passes/pipeline.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {
namespace {

class GpuCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
    manual_seed(1);
  }
  static CompileOptions throwing(Mode mode = Mode::kDefault) {
    return {.mode = mode, .options = {{"check", int64_t(1)}, {"throw", true}}};
  }
};

TEST_F(GpuCheck, LeavesRightProgramsAlone) {
  for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead})
    for (DType dtype : {kFloat32, kBFloat16, kFloat16}) {
      auto f = compile(
          [](const Tensor& x, const Tensor& w, const Tensor& ids, Tensor cache) {
            Tensor h = layer_norm(x, {64}).mm(w);
            Tensor p = softmax(where(h > 0, gelu(h), h * 0.01), -1);
            cache.index_copy_(0, ids, p);
            return std::tuple(dropout(p, 0.5) + h, (h + x).argmax(-1), cumsum(p, 0), var(x.to(kFloat32), {0}));
          },
          throwing(mode));
      Tensor x = randn({40, 64}).to(dtype).to(cuda()), w = randn({64, 64}).to(dtype).to(cuda());
      Tensor ids = arange(40).to(cuda()), cache = zeros({48, 64}).to(dtype).to(cuda());
      for (int call = 0; call < 4; ++call) f(x, w, ids, cache);
    }
}

TEST_F(GpuCheck, LeavesAttentionConvolutionsAndGradientsAlone) {
  auto f = compile(
      [](const Tensor& q, const Tensor& image, const Tensor& filter) {
        Tensor a = scaled_dot_product_attention(q, q, q, {}, 0, true);
        return a.sum() + relu(conv2d(image, filter)).mean();
      },
      throwing());
  Tensor q = randn({2, 4, 33, 32}).to(cuda()).requires_grad_();
  Tensor image = randn({2, 3, 17, 17}).to(cuda()).requires_grad_(), filter = randn({8, 3, 3, 3}).to(cuda()).requires_grad_();
  for (int call = 0; call < 2; ++call) f(q, image, filter).backward();
}

TEST_F(GpuCheck, TakesLargeProducts) {
  auto f = compile([](const Tensor& x, const Tensor& w) { return silu(x.mm(w)) + x.mm(w).sum(); }, throwing());
  for (DType dtype : {kFloat32, kBFloat16}) {
    f(randn({300, 512}).to(dtype).to(cuda()), randn({512, 1000}).to(dtype).to(cuda()));
    f(randn({1, 512}).to(dtype).to(cuda()), randn({512, 1000}).to(dtype).to(cuda()));
  }
}

TEST_F(GpuCheck, FindsAWrongPass) {
  PlantedFault<PassOutcome> fault([](PassOutcome& outcome) {
    if (outcome.pass != "simplify") return;
    outcome.graph = rewrite(outcome.graph, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
      if (node.op->name != "exp") return {};
      return std::vector<Value>{context(node.inputs[0])};
    });
  });
  auto f = [](const Tensor& x) { return exp(x) * 3.0 + x; };
  Tensor x = randn({8, 8}).to(cuda());
  EXPECT_TRUE(has(error_of([&] { compile(f, throwing())(x); }), "not those of the graph as captured"));
  Bisection found = compiler::bisect(f, x);
  EXPECT_EQ(found.fault, Bisection::Fault::kPass) << found.text();
  EXPECT_EQ(found.culprit, "simplify");
  EXPECT_TRUE(has(found.source, ".to(cuda(0))")) << found.source;
}

TEST_F(GpuCheck, BisectSaysWhenNothingIsWrong) {
  auto f = [](const Tensor& x) { return softmax(exp(x) * 3.0 + x, -1).sum({0}); };
  EXPECT_EQ(compiler::bisect(f, randn({8, 300}).to(cuda())).fault, Bisection::Fault::kNone);
}

}  // namespace
}  // namespace sinter
