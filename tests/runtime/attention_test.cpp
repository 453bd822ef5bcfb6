// The blocked kernels of every instruction set against the op's own body in double precision.
#include "sinter/runtime/cpu/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sinter/autograd/autograd.h"
#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cpu/attention/backward.h"

namespace sinter::runtime {
namespace {

struct Case {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  bool causal = false;
  AttentionMaskType mask = AttentionMaskType::kNone;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << format("batch {} heads {}/{} queries {} keys {} sizes {}/{} causal {} mask {}", c.batch, c.heads,
                       c.key_heads, c.queries, c.keys, c.size, c.value_size, c.causal, int(c.mask));
}

GemmType type_of(DType dtype) {
  return dtype == kFloat32 ? GemmType::f32 : dtype == kBFloat16 ? GemmType::bf16 : GemmType::f16;
}
DType mask_dtype(AttentionMaskType type) {
  return type == AttentionMaskType::kFloat32 ? kFloat32 : type == AttentionMaskType::kBFloat16 ? kBFloat16 : kFloat16;
}

AttentionOperand operand(const Tensor& t) { return {t.data_ptr(), t.stride(0), t.stride(1), t.stride(2)}; }

// [batch, heads, rows, size] views of memory that lies as [batch, rows, heads, size], as a projection leaves it.
struct Operands {
  Tensor query, key, value, mask;

  Operands(const Case& c, DType dtype) {
    manual_seed(7);
    auto make = [&](int64_t heads, int64_t rows, int64_t size) {
      return randn({c.batch, rows, heads, size}).to(dtype).transpose(1, 2);
    };
    query = make(c.heads, c.queries, c.size);
    key = make(c.key_heads, c.keys, c.size);
    value = make(c.key_heads, c.keys, c.value_size);
    if (c.mask == AttentionMaskType::kNone) return;
    Tensor numbers = randn({c.batch, 1, c.queries, c.keys});
    mask = c.mask == AttentionMaskType::kBool ? numbers > 0.3 : numbers.to(mask_dtype(c.mask));
  }
};

AttentionProblem problem_of(const Case& c, const Operands& x, CpuIsa isa) {
  AttentionProblem p{.batch = c.batch, .heads = c.heads, .queries = c.queries, .keys = c.keys, .size = c.size,
                     .value_size = c.value_size, .group = c.heads / c.key_heads, .type = type_of(x.query.dtype()),
                     .query = operand(x.query), .key = operand(x.key), .value = operand(x.value), .causal = c.causal,
                     .scale = float(1 / std::sqrt(double(c.size))), .isa = isa};
  if (x.mask.defined()) p.mask = {c.mask, x.mask.data_ptr(), x.mask.stride(0), 0, x.mask.stride(2), x.mask.stride(3)};
  return p;
}

Tensor run(const Case& c, const Operands& x, CpuIsa isa, const Tensor& log_sums = {}) {
  Tensor out = empty({c.batch, c.heads, c.queries, c.value_size}, TensorOptions(x.query.dtype()));
  AttentionProblem p = problem_of(c, x, isa);
  p.out = out.data_ptr();
  if (log_sums.defined()) p.log_sums = log_sums.data_ptr<float>();
  attention(p);
  return out;
}

// Of query, key and value, by the kernels.
TensorList gradients(const Case& c, const Operands& x, const Tensor& grad, CpuIsa isa) {
  Tensor log_sums = empty({c.batch, c.heads, c.queries});
  Tensor out = run(c, x, isa, log_sums);
  TensorOptions options(x.query.dtype());
  TensorList grads{empty({c.batch, c.heads, c.queries, c.size}, options),
                   empty({c.batch, c.key_heads, c.keys, c.size}, options),
                   empty({c.batch, c.key_heads, c.keys, c.value_size}, options)};
  Tensor means = (out.to(kFloat32) * grad.to(kFloat32)).sum({-1});
  attention_backward({problem_of(c, x, isa), operand(grad), log_sums.data_ptr<float>(), means.data_ptr<float>(),
                      grads[0].data_ptr(), grads[1].data_ptr(), grads[2].data_ptr()});
  return grads;
}

double error_of(const Case& c, const Operands& x, CpuIsa isa) {
  Tensor mask = x.mask.defined() && x.mask.dtype() != kBool ? x.mask.to(kFloat64) : x.mask;
  Tensor want = scaled_dot_product_attention(x.query.to(kFloat64), x.key.to(kFloat64), x.value.to(kFloat64), mask, 0,
                                             c.causal, {}, c.heads != c.key_heads);
  Tensor difference = (run(c, x, isa).to(kFloat64) - want).abs();
  return difference.amax().item<double>();
}

const Case kCases[] = {
    {1, 1, 1, 1, 1, 1, 1},
    {2, 3, 3, 5, 7, 8, 6},
    {1, 2, 2, 130, 300, 64, 64},
    {1, 2, 2, 33, 33, 17, 35, true},
    {1, 1, 1, 300, 600, 16, 16, true},
    {1, 1, 1, 40, 9, 16, 16, true},
    {2, 6, 2, 20, 45, 24, 24},
    {1, 8, 2, 3, 70, 32, 48, true},
    {1, 4, 1, 9, 700, 33, 31},
    {2, 4, 2, 12, 50, 16, 16, false, AttentionMaskType::kBool},
    {1, 2, 2, 60, 300, 16, 20, false, AttentionMaskType::kFloat32},
    {2, 2, 2, 5, 40, 16, 20, false, AttentionMaskType::kBFloat16},
    {1, 2, 1, 17, 40, 16, 20, false, AttentionMaskType::kFloat16},
    {1, 2, 2, 1, 2048, 64, 64},
    {1, 4, 2, 1, 1500, 40, 40, false, AttentionMaskType::kBool},
    {1, 1, 1, 2, 1500, 16, 16, true},
};

TEST(AttentionKernels, AgreeWithTheBodyInDoublePrecision) {
  for (DType dtype : {kFloat32, kBFloat16, kFloat16}) {
    double tolerance = dtype == kFloat32 ? 4e-6 : dtype == kBFloat16 ? 2e-2 : 2e-3;
    for (auto& c : kCases) {
      Operands x(c, dtype);
      for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kNeon, CpuIsa::kAvx2, CpuIsa::kAvx512})
        if (cpu_supports(isa)) {
          EXPECT_LT(error_of(c, x, isa), tolerance) << c << " isa " << int(isa) << " " << to_string(dtype);
        }
    }
  }
}

TEST(AttentionKernels, DoNotDependOnTheNumberOfThreads) {
  int before = num_threads();
  for (auto& c : kCases) {
    Operands x(c, kFloat32);
    set_num_threads(1);
    Tensor alone = run(c, x, best_cpu_isa());
    for (int threads : {2, 3, 7}) {
      set_num_threads(threads);
      Tensor together = run(c, x, best_cpu_isa());
      EXPECT_EQ(std::memcmp(alone.data_ptr(), together.data_ptr(), size_t(alone.numel()) * 4), 0) << c;
    }
  }
  set_num_threads(before);
}

TEST(AttentionKernels, GradientsAgreeWithTheBodyInDoublePrecision) {
  for (DType dtype : {kFloat32, kBFloat16, kFloat16}) {
    double tolerance = dtype == kFloat32 ? 2e-5 : dtype == kBFloat16 ? 4e-2 : 6e-3;
    for (auto& c : kCases) {
      Operands x(c, dtype);
      Tensor grad = randn({c.batch, c.queries, c.heads, c.value_size}).to(dtype).transpose(1, 2);
      if (c.mask == AttentionMaskType::kBool) x.mask.select(2, 0).zero_();  // a row that sees nothing
      Tensor mask = x.mask.defined() && x.mask.dtype() != kBool ? x.mask.to(kFloat64) : x.mask;
      TensorList exact;
      for (auto* t : {&x.query, &x.key, &x.value}) exact.push_back(t->to(kFloat64).detach().requires_grad_());
      Tensor y = scaled_dot_product_attention(exact[0], exact[1], exact[2], mask, 0, c.causal, {}, c.heads != c.key_heads);
      TensorList want = autograd::grad({y}, exact, {grad.to(kFloat64)});
      for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kNeon, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
        if (!cpu_supports(isa)) continue;
        TensorList got = gradients(c, x, grad, isa);
        for (size_t i = 0; i < 3; ++i) {
          double largest = std::max(1.0, want[i].abs().amax().item<double>());
          EXPECT_LT((got[i].to(kFloat64) - want[i]).abs().amax().item<double>(), tolerance * largest)
              << c << " isa " << int(isa) << " " << to_string(dtype) << " operand " << i;
        }
      }
    }
  }
}

TEST(AttentionKernels, GradientsDoNotDependOnTheNumberOfThreads) {
  int before = num_threads();
  for (auto& c : kCases) {
    Operands x(c, kFloat32);
    Tensor grad = randn({c.batch, c.heads, c.queries, c.value_size});
    set_num_threads(1);
    TensorList alone = gradients(c, x, grad, best_cpu_isa());
    for (int threads : {2, 7}) {
      set_num_threads(threads);
      TensorList together = gradients(c, x, grad, best_cpu_isa());
      for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(std::memcmp(alone[i].data_ptr(), together[i].data_ptr(), size_t(alone[i].numel().to_int()) * 4), 0) << c;
    }
  }
  set_num_threads(before);
}

// Scores far beyond what e^x can hold, growing along the keys so that every block raises the maximum.
TEST(AttentionKernels, LargeScoresNeitherOverflowNorVanish) {
  Case c{1, 1, 1, 20, 1000, 4, 4};
  Operands x(c, kFloat32);
  x.query = x.query.abs() * 100.0;
  x.key = x.key.abs() * (arange(1000).to(kFloat32).unsqueeze(1) - 500.0);
  for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kNeon, CpuIsa::kAvx2, CpuIsa::kAvx512})
    if (cpu_supports(isa)) {
      EXPECT_LT(error_of(c, x, isa), 1e-4) << int(isa);
    }
}

// A static cache: what lies behind the last position is whatever was there before.
TEST(AttentionKernels, KeysBehindTheLastShownOneAreNotRead) {
  for (auto& sizes : {Case{1, 4, 2, 1, 1500, 16, 16}, Case{1, 2, 2, 40, 700, 16, 16}}) {
    Case c = sizes;
    c.mask = AttentionMaskType::kBool;
    Operands x(c, kFloat32);
    x.mask = (arange(c.keys) <= arange(c.queries).unsqueeze(1) + 260).view({1, 1, c.queries, c.keys}).contiguous();
    Tensor want = run(c, x, best_cpu_isa());
    int64_t shown = 260 + c.queries;
    for (Tensor* t : {&x.key, &x.value}) t->slice(2, shown).fill_(std::nan(""));
    Tensor got = run(c, x, best_cpu_isa());
    EXPECT_EQ(std::memcmp(want.data_ptr(), got.data_ptr(), size_t(want.numel()) * 4), 0) << c;
    EXPECT_LT(error_of({c.batch, c.heads, c.key_heads, c.queries, c.keys, c.size, c.value_size, false, c.mask},
                       Operands(c, kFloat32), best_cpu_isa()), 4e-6);
  }
}

}  // namespace
}  // namespace sinter::runtime
