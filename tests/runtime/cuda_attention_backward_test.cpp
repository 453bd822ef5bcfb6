// Gradients of attention on the GPU: the texts compile, and give what the formulas do, on the host and on a GPU.
#include "sinter/runtime/cuda/attention/attention_backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "tests/runtime/attention_gradients.h"
#include "tests/runtime/attention_on_host.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter::runtime {
namespace {

constexpr auto kNone = AttentionMaskType::kNone;
constexpr auto kShown = AttentionMaskType::kBool;
constexpr auto kAdded = AttentionMaskType::kFloat32;
constexpr AttentionMaskType kMasks[] = {kNone, kShown, kAdded, AttentionMaskType::kBFloat16,
                                        AttentionMaskType::kFloat16};

CudaAttentionBackward shape_of(DType dtype, int64_t size, int64_t value_size, bool causal = false,
                               AttentionMaskType mask = kNone) {
  CudaAttentionBackward p{.batch = 2,
                          .heads = 4,
                          .queries = 100,
                          .keys = 100,
                          .size = size,
                          .value_size = value_size,
                          .group = 2,
                          .dtype = dtype};
  p.causal = causal;
  p.mask.type = mask;
  return p;
}

TEST(CudaAttentionBackward, TextsCompileForEveryArchitecture) {
  if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  // Rows of 24 suit the tensor cores, those of 17 do not; small ones compile fast. Half of all for each architecture.
  for (auto [dtype, size] : {std::pair(kFloat32, 17), {kBFloat16, 17}, {kBFloat16, 24}, {kFloat16, 24}}) {
    std::string programs[2];
    for (bool causal : {false, true})
      for (AttentionMaskType mask : kMasks) {
        if (mask > kAdded && (dtype != kBFloat16 || size != 24)) continue;  // numbers of another width, nothing else
        for (auto& source : cuda_attention_backward_sources(shape_of(dtype, size, size, causal, mask)))
          programs[(int(mask) + causal) % 2] += source.text;
      }
    CudaAttentionBackward dropped = shape_of(dtype, size, size, true);
    dropped.dropout.set_probability(0.1);
    for (auto& source : cuda_attention_backward_sources(dropped)) programs[0] += source.text;
    EXPECT_FALSE(compile_cuda(programs[0], "attention_backward", "sm_80").empty());
    EXPECT_FALSE(compile_cuda(programs[1], "attention_backward", "sm_90").empty());
  }
}

TEST(CudaAttentionBackward, ChoosesItsKernelsByTheShape) {
  const auto names = [](const CudaAttentionBackward& p) {
    auto sources = cuda_attention_backward_sources(p);
    return sources[0].name + " " + sources[1].name;
  };
  EXPECT_EQ(names(shape_of(kBFloat16, 64, 64, true)),
            "attention_backward_queries_bf16_64_causal attention_backward_keys_bf16_64_causal");
  EXPECT_EQ(names(shape_of(kFloat16, 80, 24, false, kShown)),
            "attention_backward_queries_f16_96_32_mask_bool attention_backward_keys_f16_96_32_mask_bool");
  EXPECT_EQ(names(shape_of(kFloat32, 80, 80)),
            "attention_backward_plain_queries_f32_128 attention_backward_plain_keys_f32_128");
  CudaAttentionBackward dropped = shape_of(kFloat16, 64, 64);
  dropped.dropout.set_probability(0.1);
  EXPECT_EQ(names(dropped), "attention_backward_queries_f16_64_dropout attention_backward_keys_f16_64_dropout");
  // Rows that are no whole vectors.
  const std::string plain = "attention_backward_plain_queries_bf16_64 attention_backward_plain_keys_bf16_64";
  EXPECT_EQ(names(shape_of(kBFloat16, 60, 64)), plain);
  CudaAttentionBackward shifted = shape_of(kBFloat16, 64, 64);
  shifted.grad_value.row_stride = 65;
  EXPECT_EQ(names(shifted), plain);
  shifted = shape_of(kBFloat16, 64, 64);
  shifted.grad_out.head_stride = 4;
  EXPECT_EQ(names(shifted), plain);
  shifted = shape_of(kBFloat16, 64, 64);
  shifted.key.data = reinterpret_cast<void*>(8);
  EXPECT_EQ(names(shifted), plain);
  shifted.indirect = kIndirectKey;  // leads to a multiple of 16
  EXPECT_NE(names(shifted), plain);
}

TEST(CudaAttentionBackward, TakesWhatItHasKernelsFor) {
  EXPECT_TRUE(takes_cuda_attention_backward(shape_of(kFloat32, 128, 1)));
  EXPECT_FALSE(takes_cuda_attention_backward(shape_of(kFloat32, 129, 64)));
  EXPECT_FALSE(takes_cuda_attention_backward(shape_of(kFloat32, 64, 0)));
  EXPECT_FALSE(takes_cuda_attention_backward(shape_of(kFloat64, 64, 64)));
  CudaAttentionBackward p = shape_of(kFloat32, 64, 64);
  p.group = 3;
  EXPECT_FALSE(takes_cuda_attention_backward(p));
}

TEST(CudaAttentionBackward, SharedMemoryFitsTheSmallestArchitecture) {
  for (DType dtype : {kFloat32, kBFloat16})
    for (int64_t size = 32; size <= 128; size += 32)
      for (int64_t value_size = 32; value_size <= 128; value_size += 32)
        for (auto& source : cuda_attention_backward_sources(shape_of(dtype, size, value_size)))
          EXPECT_LE(source.shared_bytes, 99 * 1024) << source.name;
}

// Errors of 16-bit types are those of the result, its gradient's sum, the weights and their gradients, rounded once each;
// those of f32 grow with the scores, whose last digits are those of a weight.
double tolerance(const GradientProblem& x) {
  double score = 0;
  for (double l : x.lse)
    if (std::isfinite(l)) score = std::max(score, std::abs(l));
  return (x.dtype == kFloat32 ? 2e-6 : x.dtype == kBFloat16 ? 6e-3 : 8e-4) + 1.2e-7 * score;
}
constexpr double kWorst = 6;  // how much farther off one element of many may be

void expect_near(HostRows& got, const Expected& want, const GradientProblem& x, const char* what) {
  got.read();
  const Distance d = distance(got.values, want.values, want.magnitude);
  EXPECT_LT(d.all, tolerance(x)) << what << ": " << x.c << " " << to_string(x.dtype);
  EXPECT_LT(d.worst, kWorst * tolerance(x)) << what << ": " << x.c << " " << to_string(x.dtype);
  EXPECT_TRUE(got.gaps_are_untouched()) << what << ": " << x.c << " " << to_string(x.dtype);
}

using Layout = GradientCase;

// What leads to the result that `b` starts from.
CudaAttention forward_of(const CudaAttentionBackward& b, const HostRows& rows, void* out, float* lse) {
  CudaAttention p{.batch = b.batch, .heads = b.heads, .queries = b.queries, .keys = b.keys};
  p.size = b.size, p.value_size = b.value_size, p.group = b.group, p.dtype = b.dtype;
  p.query = b.query, p.key = b.key, p.value = b.value, p.mask = b.mask;
  p.causal = b.causal, p.scale = b.scale, p.dropout = b.dropout;
  p.out = out, p.lse = lse;
  p.out_batch_stride = rows.operand.batch_stride, p.out_head_stride = rows.operand.head_stride;
  p.out_row_stride = rows.operand.row_stride;
  return p;
}

// What the forward kernels give.
void expect_sums(const GradientProblem& x, HostRows& out, const std::vector<float>& lse) {
  out.read();
  EXPECT_LT(distance(out.values, x.out.values, x.out.values).all, 2 * tolerance(x)) << x.c;
  EXPECT_TRUE(out.gaps_are_untouched()) << x.c;
  for (size_t i = 0; i < lse.size(); ++i) {
    if (std::isinf(x.lse[i]))
      EXPECT_EQ(lse[i], INFINITY) << x.c << " row " << i;
    else
      EXPECT_NEAR(lse[i], x.lse[i], 3e-5 * (1 + std::abs(x.lse[i]))) << x.c << " row " << i;
  }
}

using AttentionOnHostTest = sinter::testing::WithoutThreadSanitizer;

// The forward kernels, with the logarithms of their sums.
TEST_F(AttentionOnHostTest, GivesTheLogarithmsOfItsSums) {
  const std::pair<GradientCase, DType> problems[] = {
      {{1, 2, 1, 130, 70, 64, 64, true}, kBFloat16},  // two groups of warps
      {{1, 2, 1, 5, 70, 24, 40, false, kShown, Layout::kHeadsOutside, true, true, {3}}, kFloat16},
      {{2, 2, 2, 40, 33, 17, 24, true, kAdded, Layout::kHeadsInside, false, true, {0, 39}}, kFloat32},
      // With dropout: two groups of warps, one, and plain arithmetic.
      {{1, 2, 1, 130, 70, 64, 64, true, kNone, Layout::kHeadsInside, false, true, {}, 0, 0.3}, kBFloat16},
      {{2, 2, 1, 70, 131, 24, 40, false, kShown, Layout::kHeadsOutside, true, true, {3}, 0, 0.5}, kFloat16},
      {{2, 4, 2, 40, 75, 17, 24, false, kAdded, Layout::kHeadsInside, false, true, {0, 39}, 0, 0.1}, kFloat32},
      {{1, 2, 2, 40, 33, 17, 24, true, kNone, Layout::kHeadsInside, false, true, {}, 0, 1}, kFloat32},
  };
  CudaDeviceInfo device;
  device.major = 9, device.multiprocessors = 132;
  for (auto& [c, dtype] : problems) {
    GradientProblem x(c, dtype);
    const CudaAttentionBackward b = x.shape();
    HostRows out(c, dtype, c.heads, c.queries, c.value_size);
    std::vector<float> lse(x.lse.size(), NAN);
    CudaAttention p = forward_of(b, out, out.data(), lse.data());
    p.query.data = x.query.data(), p.key.data = x.key.data(), p.value.data = x.value.data(), p.mask.data = x.mask.data();
    const CudaAttentionLaunch launch = cuda_attention_launch(p, device);
    const AttentionOnHost kernel(cuda_attention_sources(p, device));
    EXPECT_EQ(kernel.run(0, launch.grid, launch.params, AttentionOnHost::Order::kLateCopies), "");
    expect_sums(x, out, lse);
  }
}

// In the order of the bits of `indirect`.
std::vector<const void*> pointers_of(const CudaAttentionBackward& p) {
  return {p.query.data,    p.key.data,        p.value.data,    p.mask.data,       p.means, p.lse,
          p.grad_out.data, p.grad_query.data, p.grad_key.data, p.grad_value.data,
          reinterpret_cast<const void*>(p.dropout.seed), reinterpret_cast<const void*>(p.dropout.offset)};
}
// The same problem with pointers that are read from there.
CudaAttentionBackward with_pointers_at(CudaAttentionBackward p, const void* cells) {
  const auto cell = [&](int i) {
    return const_cast<void*>(static_cast<const void*>(static_cast<void* const*>(cells) + i));
  };
  p.query.data = cell(0), p.key.data = cell(1), p.value.data = cell(2), p.mask.data = cell(3);
  p.means = static_cast<float*>(cell(4)), p.lse = static_cast<float*>(cell(5)), p.grad_out.data = cell(6);
  p.grad_query.data = cell(7);
  p.grad_key.data = cell(8), p.grad_value.data = cell(9);
  p.dropout.seed = reinterpret_cast<int64_t>(cell(10)), p.dropout.offset = reinterpret_cast<int64_t>(cell(11));
  p.indirect = (1u << pointers_of(p).size()) - 1;
  return p;
}

class AttentionBackwardOnHost : public sinter::testing::WithoutThreadSanitizer {
 protected:
  static void compare(const GradientCase& c, DType dtype) {
    GradientProblem x(c, dtype);
    std::vector<float> lse(x.lse.begin(), x.lse.end()), means(x.means.begin(), x.means.end());
    CudaAttentionBackward p = x.shape();
    p.query.data = x.query.data(), p.key.data = x.key.data(), p.value.data = x.value.data();
    p.grad_out.data = x.grad_out.data(), p.mask.data = x.mask.data();
    p.lse = lse.data(), p.means = means.data();
    const AttentionOnHost kernels(cuda_attention_backward_sources(p));
    for (auto order : {AttentionOnHost::Order::kLateCopies, AttentionOnHost::Order::kEarlyCopies}) {
      HostRows grad_query = x.empty_grad_query(), grad_key = x.empty_grad_key(), grad_value = x.empty_grad_value();
      p.grad_query.data = grad_query.data(), p.grad_key.data = grad_key.data(), p.grad_value.data = grad_value.data();
      const std::vector<const void*> cells = pointers_of(p);
      const CudaAttentionBackwardLaunch launch = cuda_attention_backward_launch(
          order == AttentionOnHost::Order::kEarlyCopies ? with_pointers_at(p, cells.data()) : p);
      for (size_t i = 0; i < 2; ++i) ASSERT_EQ(kernels.run(i, launch.grids[i], launch.params, order), "") << c;
      expect_near(grad_query, x.grad_query, x, "queries");
      expect_near(grad_key, x.grad_key, x, "keys");
      expect_near(grad_value, x.grad_value, x, "values");
    }
  }
};

TEST_F(AttentionBackwardOnHost, TensorCoresWithRowsInRegisters) {
  compare({1, 2, 1, 130, 70, 64, 64, true}, kBFloat16);
  compare({2, 1, 1, 17, 130, 24, 40, false, kShown, Layout::kHeadsOutside, true, true, {3}}, kFloat16);
}
TEST_F(AttentionBackwardOnHost, TensorCoresWithRowsInSharedMemory) {
  compare({1, 2, 2, 70, 100, 80, 128, true, kAdded, Layout::kHeadsInside, false, true, {0, 69}}, kBFloat16);
  compare({1, 3, 1, 65, 40, 128, 32}, kFloat16);
}
TEST_F(AttentionBackwardOnHost, PlainArithmetic) {
  compare({1, 4, 2, 40, 33, 64, 24, true}, kFloat32);
  compare({2, 2, 1, 33, 70, 17, 80, false, kShown, Layout::kOddRows, false, true, {5}}, kFloat32);
  compare({1, 2, 1, 5, 40, 24, 24, false, AttentionMaskType::kFloat16, Layout::kOddRows, true, false}, kBFloat16);
}

TEST_F(AttentionBackwardOnHost, DropsTheWeightsThatTheForwardDropped) {
  const auto with = [](double p, GradientCase c) {
    c.dropout = p;
    return c;
  };
  compare(with(0.3, {1, 2, 1, 130, 70, 64, 64, true}), kBFloat16);
  compare(with(0.5, {2, 1, 1, 17, 131, 24, 40, false, kShown, Layout::kHeadsOutside, true, true, {3}}), kFloat16);
  compare(with(0.1, {1, 2, 2, 70, 101, 80, 128, true, kAdded, Layout::kHeadsInside, false, true, {0, 69}}), kBFloat16);
  compare(with(0.4, {2, 4, 2, 40, 75, 64, 24, true}), kFloat32);
  compare(with(0.2, {2, 2, 1, 33, 70, 17, 80, false, kShown, Layout::kOddRows, false, true, {5}}), kFloat32);
  compare(with(1, {1, 1, 1, 5, 40, 24, 24}), kFloat32);
}

// Scores so low that the exponential of what lies beside the rows, zero, is infinite.
const GradientCase kLowScores[] = {
    {1, 1, 1, 33, 1, 64, 64, false, kNone, Layout::kHeadsInside, false, true, {}, 20},
    {1, 1, 1, 40, 2, 24, 128, true, kNone, Layout::kHeadsInside, false, true, {}, -40},
};
TEST_F(AttentionBackwardOnHost, ScoresFarBelowZero) {
  for (auto& c : kLowScores)
    for (DType dtype : {kFloat32, kBFloat16}) compare(c, dtype);
}

class DeviceCopy {
 public:
  DeviceCopy(const void* data, size_t bytes) : bytes_(bytes), data_(cuda_allocator(0).allocate(bytes)) {
    cuda_copy(data_, cuda(), data, cpu(), bytes_);
  }
  explicit DeviceCopy(const HostRows& x) : DeviceCopy(x.memory.data(), x.memory.size()) {}
  explicit DeviceCopy(const std::vector<float>& x) : DeviceCopy(x.data(), x.size() * sizeof(float)) {}
  DeviceCopy(const DeviceCopy&) = delete;
  ~DeviceCopy() { cuda_allocator(0).release(data_, bytes_); }
  template <class T = uint8_t>
  T* data() const {
    return static_cast<T*>(data_);
  }
  void* rows() const { return data<>() + HostRows::kMargin; }
  void copy_to(void* to) const { cuda_copy(to, cpu(), data_, cuda(), bytes_); }

 private:
  size_t bytes_;
  void* data_;
};

// All of a problem in device memory.
struct OnDevice {
  GradientProblem& x;
  std::vector<float> lse;
  HostRows grad_query, grad_key, grad_value;
  DeviceCopy query, key, value, grad_out, mask, lse_copy, means_copy, grad_query_copy, grad_key_copy, grad_value_copy;

  explicit OnDevice(GradientProblem& of)
      : x(of),
        lse(of.lse.begin(), of.lse.end()),
        grad_query(of.empty_grad_query()),
        grad_key(of.empty_grad_key()),
        grad_value(of.empty_grad_value()),
        query(x.query),
        key(x.key),
        value(x.value),
        grad_out(x.grad_out),
        mask(x.mask.empty() ? x.query.memory.data() : x.mask.data(), x.mask.empty() ? 1 : x.mask.size()),
        lse_copy(lse),
        means_copy(std::vector<float>(of.means.begin(), of.means.end())),
        grad_query_copy(grad_query),
        grad_key_copy(grad_key),
        grad_value_copy(grad_value) {}

  CudaAttentionBackward problem() const {
    CudaAttentionBackward p = x.shape();
    p.query.data = query.rows(), p.key.data = key.rows(), p.value.data = value.rows();
    p.grad_out.data = grad_out.rows(), p.mask.data = mask.data();
    p.lse = lse_copy.data<float>(), p.means = means_copy.data<float>();
    p.grad_query.data = grad_query_copy.rows(), p.grad_key.data = grad_key_copy.rows();
    p.grad_value.data = grad_value_copy.rows();
    return p;
  }
  void compare() {
    grad_query_copy.copy_to(grad_query.memory.data());
    grad_key_copy.copy_to(grad_key.memory.data());
    grad_value_copy.copy_to(grad_value.memory.data());
    cuda_synchronize(0);
    expect_near(grad_query, x.grad_query, x, "queries");
    expect_near(grad_key, x.grad_key, x, "keys");
    expect_near(grad_value, x.grad_value, x, "values");
  }
};

class GpuAttentionBackward : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << cuda_problem();
  }
  static void compare(const GradientCase& c, std::initializer_list<DType> dtypes = {kFloat32, kBFloat16, kFloat16}) {
    for (DType dtype : dtypes) {
      GradientProblem x(c, dtype);
      compare_sums(x);
      OnDevice device(x);
      cuda_attention_backward(0, device.problem());
      device.compare();
    }
  }
  // The forward kernels' logarithms, and that their result is the same beside them.
  static void compare_sums(GradientProblem& x) {
    OnDevice device(x);
    const CudaAttentionBackward b = device.problem();
    HostRows out(x.c, x.dtype, x.c.heads, x.c.queries, x.c.value_size);
    std::vector<float> lse(x.lse.size(), NAN);
    DeviceCopy out_copy(out), lse_copy(lse);
    const CudaAttention p = forward_of(b, out, out_copy.rows(), lse_copy.data<float>());
    EXPECT_EQ(cuda_attention_workspace(p, cuda_device_info(0)), 0);
    cuda_attention(0, p);
    out_copy.copy_to(out.memory.data());
    lse_copy.copy_to(lse.data());
    cuda_synchronize(0);
    expect_sums(x, out, lse);
  }
};

// Every kernel takes a second to compile: types and sizes are not all combined.
TEST_F(GpuAttentionBackward, EverySize) {
  for (int64_t size : {24, 64, 80, 128}) compare({1, 2, 2, 130, 257, size, size}, {kFloat32, kBFloat16});
  compare({1, 2, 2, 130, 257, 80, 80}, {kFloat16});
  compare({1, 2, 1, 66, 67, 64, 128}, {kBFloat16});
  compare({1, 2, 1, 66, 67, 128, 24}, {kFloat32, kFloat16});
  compare({1, 2, 2, 130, 100, 32, 96, true}, {kBFloat16});
}

TEST_F(GpuAttentionBackward, EveryNumberOfRows) {
  for (int64_t queries : {1, 17, 64, 130})
    for (int64_t keys : {1, 33, 64, 257})
      for (bool causal : {false, true}) compare({1, 2, 2, queries, keys, 64, 64, causal});
  compare({1, 1, 1, 300, 300, 128, 128, true}, {kBFloat16});
}

TEST_F(GpuAttentionBackward, HeadsThatShareKeys) {
  compare({2, 6, 2, 129, 129, 64, 64, true});
  compare({2, 4, 1, 65, 200, 64, 64, true});
  compare({3, 4, 1, 70, 40, 24, 24}, {kFloat32, kBFloat16});
  compare({1, 8, 2, 200, 65, 128, 128, true}, {kBFloat16});
}

TEST_F(GpuAttentionBackward, EveryMask) {
  for (AttentionMaskType mask : {kShown, kAdded})
    for (bool causal : {false, true})
      for (bool by_head : {false, true})
        for (bool by_query : {false, true})
          compare({2, 4, 2, 67, 143, 64, 64, causal, mask, Layout::kHeadsInside, by_head, by_query},
                  {kFloat32, kBFloat16});
  compare({2, 4, 2, 67, 143, 64, 64, false, AttentionMaskType::kBFloat16}, {kBFloat16});
  compare({2, 4, 2, 67, 143, 64, 64, true, AttentionMaskType::kFloat16}, {kFloat16});
  compare({1, 2, 2, 70, 160, 128, 128, true, kAdded}, {kBFloat16});
}

TEST_F(GpuAttentionBackward, RowsThatSeeNothing) {
  for (AttentionMaskType mask : {kShown, kAdded})
    for (bool causal : {false, true})
      compare({2, 2, 1, 130, 70, 64, 64, causal, mask, Layout::kHeadsInside, false, true, {0, 17, 129}},
              {kFloat32, kBFloat16});
  compare({1, 2, 2, 17, 33, 128, 128, true, kAdded, Layout::kHeadsOutside, true, true, {3}}, {kBFloat16});
}

TEST_F(GpuAttentionBackward, ScoresFarBelowZero) {
  for (auto& c : kLowScores) compare(c, {kFloat32, kBFloat16});
}

TEST_F(GpuAttentionBackward, EveryLayout) {
  for (auto layout : {Layout::kHeadsInside, Layout::kHeadsOutside, Layout::kOddRows}) {
    compare({2, 4, 2, 130, 70, 64, 64, true, kNone, layout}, {kFloat32, kBFloat16});
    compare({2, 4, 2, 33, 70, 24, 80, false, kShown, layout}, {kFloat16});
  }
  compare({1, 2, 2, 33, 45, 17, 35, true}, {kFloat32, kBFloat16});
}

// With pointers that the kernels read from memory, and overlapping what is queued before.
TEST_F(GpuAttentionBackward, FindsItsPointersInMemory) {
  for (DType dtype : {kFloat32, kBFloat16}) {
    GradientProblem x({2, 4, 2, 130, 70, 64, 64, true, kShown}, dtype);
    OnDevice device(x);
    const std::vector<const void*> addresses = pointers_of(device.problem());
    DeviceCopy cells(addresses.data(), addresses.size() * sizeof(void*));
    CudaAttentionBackward p = with_pointers_at(device.problem(), cells.data());
    p.overlaps_previous = true;
    for (int round = 0; round < 2; ++round) cuda_attention_backward(0, p);
    device.compare();
  }
}

}  // namespace
}  // namespace sinter::runtime
