// Attention on the GPU: its texts compile everywhere, and its kernels agree with those of the CPU.
#include "sinter/runtime/cuda/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "sinter/base/format.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "tests/runtime/attention_on_host.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter::runtime {
namespace {

constexpr auto kNone = AttentionMaskType::kNone;
constexpr auto kShown = AttentionMaskType::kBool;
constexpr AttentionMaskType kMasks[] = {kShown, AttentionMaskType::kFloat32, AttentionMaskType::kBFloat16,
                                        AttentionMaskType::kFloat16};

struct Case {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  bool causal = false;
  AttentionMaskType mask = kNone;
  bool mask_by_query = true;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << format("batch {} heads {}/{} queries {} keys {} sizes {}/{} causal {} mask {}", c.batch, c.heads,
                       c.key_heads, c.queries, c.keys, c.size, c.value_size, c.causal, int(c.mask));
}

GemmType gemm_type(DType dtype) {
  return dtype == kFloat32 ? GemmType::f32 : dtype == kBFloat16 ? GemmType::bf16 : GemmType::f16;
}

// A problem without memory: what kernels are chosen by.
CudaAttention shape_of(const Case& c, DType dtype) {
  CudaAttention p{.batch = c.batch, .heads = c.heads, .queries = c.queries, .keys = c.keys, .size = c.size,
                  .value_size = c.value_size, .group = c.heads / c.key_heads, .dtype = dtype};
  p.query = {nullptr, c.queries * c.heads * c.size, c.size, c.heads * c.size};
  p.key = {nullptr, c.keys * c.key_heads * c.size, c.size, c.key_heads * c.size};
  p.value = {nullptr, c.keys * c.key_heads * c.value_size, c.value_size, c.key_heads * c.value_size};
  // As the operands: the heads of a query side by side.
  p.out_batch_stride = c.queries * c.heads * c.value_size;
  p.out_head_stride = c.value_size;
  p.out_row_stride = c.heads * c.value_size;
  p.causal = c.causal;
  p.scale = float(1 / std::sqrt(double(c.size)));
  p.mask.type = c.mask;
  if (c.mask == kNone) return p;
  p.mask.key_stride = 1;
  p.mask.row_stride = c.mask_by_query ? c.keys : 0;
  p.mask.batch_stride = c.keys * (c.mask_by_query ? c.queries : 1);
  return p;
}

CudaDeviceInfo device_of(int major) {
  CudaDeviceInfo device;
  device.major = major;
  device.multiprocessors = 132;
  return device;
}

CudaSource source_of(const Case& c, DType dtype, int major = 8) {
  return cuda_attention_sources(shape_of(c, dtype), device_of(major))[0];
}

TEST(CudaAttention, TextsCompileForEveryArchitecture) {
  if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  // One of each kind; small sizes compile fast.
  const std::pair<Case, DType> problems[] = {
      {{1, 4, 4, 1, 1024, 32, 32, false, kShown, false}, kBFloat16},
      {{1, 4, 4, 512, 512, 32, 24, true, AttentionMaskType::kFloat32}, kFloat16},
      {{1, 4, 4, 512, 512, 17, 30, false, AttentionMaskType::kFloat16}, kFloat32},
  };
  for (const char* architecture : {"sm_80", "sm_86", "sm_89", "sm_90"}) {
    // Together, as a compiled graph has them: what they share is there once.
    std::string program;
    const int major = architecture[3] - '0';
    for (auto& [c, dtype] : problems) {
      program += source_of(c, dtype, major).text;
      CudaAttention dropped = shape_of(c, dtype);
      dropped.dropout.set_probability(0.1);
      if (c.queries > 1) program += cuda_attention_sources(dropped, device_of(major))[0].text;
    }
    EXPECT_FALSE(compile_cuda(program, "attention", architecture).empty()) << architecture;
  }
  const std::string two = source_of({8, 32, 8, 512, 512, 64, 64, true}, kBFloat16, 9).text +
                          source_of({8, 32, 8, 512, 512, 128, 128}, kFloat16, 9).text;
  EXPECT_FALSE(compile_cuda(two, "attention", "sm_90a").empty());
}

TEST(CudaAttention, ChoosesItsKernelByTheShape) {
  const auto kernel = [](const Case& c, DType dtype, int major = 8) { return source_of(c, dtype, major).name; };
  const Case step{1, 32, 8, 1, 1024, 64, 64, false, kShown, false};
  EXPECT_EQ(kernel(step, kBFloat16), "attention_stream_bf16_64_rows4_same_mask_bool");
  EXPECT_EQ(kernel(step, kFloat32), "attention_decode_f32_64_rows4_same_mask_bool");
  EXPECT_EQ(kernel({1, 8, 8, 200, 200, 64, 64, true}, kFloat32), "attention_plain_f32_64_causal");
  // Two groups of warps while there are few blocks.
  EXPECT_EQ(kernel({1, 8, 8, 200, 200, 64, 64, true}, kFloat16), "attention_prefill_f16_64_rows64_groups2_causal");
  EXPECT_EQ(kernel({1, 32, 8, 4096, 4096, 64, 64, true}, kFloat16), "attention_prefill_f16_64_rows64_causal");
  EXPECT_EQ(kernel({1, 32, 8, 4096, 4096, 64, 64, true}, kFloat16, 9), "attention_hopper_f16_64_causal");
  EXPECT_EQ(kernel({1, 8, 8, 200, 200, 64, 64, true}, kFloat16, 9), "attention_prefill_f16_64_rows64_groups2_causal");
  // Whose weights are dropped: training, where few queries are rare.
  CudaAttention dropped = shape_of(step, kBFloat16);
  dropped.dropout.set_probability(0.1);
  EXPECT_EQ(cuda_attention_sources(dropped, device_of(9))[0].name, "attention_prefill_bf16_64_rows64_mask_bool_dropout");
  // Rows that are no whole vectors.
  EXPECT_EQ(kernel({1, 8, 8, 1, 200, 17, 64}, kBFloat16), "attention_plain_bf16_64");
  CudaAttention shifted = shape_of({1, 8, 8, 1, 200, 64, 64}, kBFloat16);
  shifted.key.row_stride += 1;
  EXPECT_EQ(cuda_attention_sources(shifted, device_of(8))[0].name, "attention_plain_bf16_64");
  shifted = shape_of({1, 8, 8, 1, 200, 64, 64}, kBFloat16);
  shifted.out_row_stride += 1;
  EXPECT_EQ(cuda_attention_sources(shifted, device_of(8))[0].name, "attention_plain_bf16_64");
}

TEST(CudaAttention, GivesLogarithmsOfSumsByTwoOfItsKernels) {
  float lse;
  const auto source = [&](const Case& c, DType dtype) {
    CudaAttention p = shape_of(c, dtype);
    p.lse = &lse;
    EXPECT_EQ(cuda_attention_workspace(p, device_of(8)), 0);
    return cuda_attention_sources(p, device_of(9))[0];
  };
  const CudaSource one = source({1, 32, 8, 1, 1024, 64, 64, false, kShown, false}, kBFloat16);
  EXPECT_EQ(one.name, "attention_prefill_bf16_64_rows64_mask_bool_lse");
  const CudaSource few = source({1, 4, 4, 3, 512, 32, 32, true}, kFloat32);
  EXPECT_EQ(few.name, "attention_plain_f32_32_causal_lse");
  EXPECT_EQ(source({1, 8, 8, 200, 200, 64, 64, true}, kFloat16).name,
            "attention_prefill_f16_64_rows64_groups2_causal_lse");
  if (!nvrtc_problem().empty()) GTEST_SKIP() << nvrtc_problem();
  EXPECT_FALSE(compile_cuda(one.text + few.text, "attention_lse", "sm_80").empty());
}

TEST(CudaAttention, TakesWhatItHasKernelsFor) {
  EXPECT_TRUE(takes_cuda_attention(shape_of({1, 8, 8, 9, 9, 256, 1}, kFloat32)));
  EXPECT_FALSE(takes_cuda_attention(shape_of({1, 8, 8, 9, 9, 257, 64}, kFloat32)));
  EXPECT_FALSE(takes_cuda_attention(shape_of({1, 8, 8, 9, 9, 64, 64}, kFloat64)));
  EXPECT_FALSE(takes_cuda_attention(shape_of({1, 8, 8, 0, 9, 64, 64}, kFloat32)));
}

TEST(CudaAttention, OnlyFewQueriesOnManyKeysWantAWorkspace) {
  const auto bytes = [](const Case& c) { return cuda_attention_workspace(shape_of(c, kBFloat16), device_of(8)); };
  // Eight heads of 16 splits, which have as many tiles each, of four rows: values, maximum and sum.
  EXPECT_EQ(bytes({1, 32, 8, 1, 1024, 64, 64}), kCudaAttentionCounters + 8 * 16 * 4 * (64 + 2) * 4);
  EXPECT_EQ(bytes({1, 32, 8, 1, 40, 64, 64}), 0);
  EXPECT_EQ(bytes({1, 32, 8, 4, 1024, 64, 64, true}), 0);  // causality leaves four keys
  EXPECT_EQ(bytes({512, 32, 8, 1, 1024, 64, 64}), 0);      // there are blocks enough
  EXPECT_EQ(bytes({1, 32, 8, 9, 1024, 64, 64}), 0);
  EXPECT_LE(bytes({1, 1, 1, 1, 1 << 20, 64, 64}), kCudaAttentionCounters + 64 * 68 * 4);
}

TEST(CudaAttention, SharedMemoryFitsTheSmallestArchitecture) {
  for (DType dtype : {kFloat32, kBFloat16})
    for (int64_t queries : {1, 3, 512})
      for (int64_t size = 32; size <= 256; size += 32)
        for (int64_t value_size = 32; value_size <= 256; value_size += 32)
          for (int major : {8, 9})
            EXPECT_LE(source_of({1, 8, 2, queries, 99, size, value_size}, dtype, major).shared_bytes, 99 * 1024)
                << dtype << " " << queries << " " << size << " " << value_size;
}

class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes) : bytes_(bytes), data_(cuda_allocator(0).allocate(bytes)) {}
  // All of a dense tensor.
  explicit DeviceBytes(const Tensor& t) : DeviceBytes(size_t(t.numel()) * size_of(t.dtype())) {
    cuda_copy(data_, cuda(), t.data_ptr(), cpu(), bytes_);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  ~DeviceBytes() { cuda_allocator(0).release(data_, bytes_); }
  void* data() const { return data_; }
  void fill(unsigned char byte) { cuda_fill(data_, 0, byte, bytes_); }
  void copy_to(const Tensor& t) const { cuda_copy(t.data_ptr(), cpu(), data_, cuda(), bytes_); }

 private:
  static size_t size_of(DType dtype) { return dtype == kFloat32 ? 4 : dtype == kBool ? 1 : 2; }
  size_t bytes_;
  void* data_;
};

// Operands as a projection leaves them, [batch, rows, heads, size], on both sides.
struct Operands {
  Case c;
  DType dtype;
  Tensor query, key, value, mask;

  Operands(const Case& of, DType type) : c(of), dtype(type) {
    manual_seed(11);
    query = randn({c.batch, c.queries, c.heads, c.size}).to(dtype);
    key = randn({c.batch, c.keys, c.key_heads, c.size}).to(dtype);
    value = randn({c.batch, c.keys, c.key_heads, c.value_size}).to(dtype);
    if (c.mask == kNone) return;
    Tensor numbers = randn({c.batch, 1, c.mask_by_query ? c.queries : 1, c.keys});
    mask = c.mask == kShown                        ? (numbers > 0.3).contiguous()
           : c.mask == AttentionMaskType::kFloat32 ? numbers
           : c.mask == AttentionMaskType::kBFloat16 ? numbers.to(kBFloat16)
                                                    : numbers.to(kFloat16);
  }

  // [batch, queries, heads, value_size] in memory, as shape_of has it.
  Tensor empty_result() const {
    return full({c.batch, c.queries, c.heads, c.value_size}, 77.0, TensorOptions(dtype)).transpose(1, 2);
  }

  Tensor on_cpu() const {
    const CudaAttention s = shape_of(c, dtype);
    Tensor out = full({c.batch, c.heads, c.queries, c.value_size}, 77.0, TensorOptions(dtype));
    AttentionProblem p{.batch = s.batch, .heads = s.heads, .queries = s.queries, .keys = s.keys, .size = s.size,
                       .value_size = s.value_size, .group = s.group, .type = gemm_type(dtype), .query = s.query,
                       .key = s.key, .value = s.value, .mask = s.mask, .causal = s.causal, .scale = s.scale,
                       .out = out.data_ptr()};
    p.query.data = query.data_ptr(), p.key.data = key.data_ptr(), p.value.data = value.data_ptr();
    if (mask.defined()) p.mask.data = mask.data_ptr();
    attention(p);
    return out;
  }

  Tensor on_gpu() const {
    Tensor out = empty_result();
    DeviceBytes q(query), k(key), v(value), result(out);
    CudaAttention p = shape_of(c, dtype);
    p.query.data = q.data(), p.key.data = k.data(), p.value.data = v.data(), p.out = result.data();
    std::unique_ptr<DeviceBytes> m, workspace;
    if (mask.defined()) {
      m = std::make_unique<DeviceBytes>(mask);
      p.mask.data = m->data();
    }
    if (int64_t bytes = cuda_attention_workspace(p, cuda_device_info(0))) {
      workspace = std::make_unique<DeviceBytes>(size_t(bytes));
      workspace->fill(0xff);  // NaN, but for the counters
      cuda_fill(workspace->data(), 0, 0, size_t(kCudaAttentionCounters));
      p.workspace = workspace->data();
    }
    cuda_attention(0, p);
    result.copy_to(out);
    cuda_synchronize(0);
    return out;
  }
};

double relative_error(const Tensor& got, const Tensor& want) {
  Tensor a = got.to(kFloat64), b = want.to(kFloat64);
  const double top = (a - b).pow(2.0).sum().item<double>(), bottom = b.pow(2.0).sum().item<double>();
  return std::sqrt(top / (bottom + 1e-30));
}

// The weights of 16-bit types are rounded on the tensor cores.
double tolerance(DType dtype) { return dtype == kFloat32 ? 3e-6 : dtype == kBFloat16 ? 8e-3 : 1e-3; }

// The kernels of few queries, on the CPU: what waits for what, and which element belongs where, does not depend on a GPU.
class DecodingOnHost : public sinter::testing::WithoutThreadSanitizer {
 protected:
  static Tensor run(const Operands& x, AttentionOnHost::Order order, int multiprocessors) {
    CudaDeviceInfo device = device_of(8);
    device.multiprocessors = multiprocessors;
    Tensor out = x.empty_result();
    CudaAttention p = shape_of(x.c, x.dtype);
    p.query.data = x.query.data_ptr(), p.key.data = x.key.data_ptr(), p.value.data = x.value.data_ptr();
    p.out = out.data_ptr();
    if (x.mask.defined()) p.mask.data = x.mask.data_ptr();
    // NaN, but for the counters.
    std::vector<unsigned char> workspace(size_t(cuda_attention_workspace(p, device)), 0xff);
    if (!workspace.empty()) std::fill_n(workspace.begin(), kCudaAttentionCounters, 0);
    p.workspace = workspace.data();
    const CudaAttentionLaunch launch = cuda_attention_launch(p, device);
    const auto sources = cuda_attention_sources(p, device);
    EXPECT_NE(sources[0].name.find(x.dtype == kFloat32 ? "decode" : "stream"), std::string::npos) << sources[0].name;
    EXPECT_EQ(AttentionOnHost(sources).run(0, launch.grid, launch.params, order), "") << x.c;
    for (size_t i = 0; i < std::min(workspace.size(), size_t(kCudaAttentionCounters)); ++i) EXPECT_EQ(workspace[i], 0) << x.c;
    return out;
  }
  static void compare(const Case& c, DType dtype = kBFloat16, int multiprocessors = 4) {
    Operands x(c, dtype);
    for (auto order : {AttentionOnHost::Order::kLateCopies, AttentionOnHost::Order::kEarlyCopies})
      EXPECT_LT(relative_error(run(x, order, multiprocessors), x.on_cpu()), tolerance(dtype)) << c;
  }
};

TEST_F(DecodingOnHost, KeysAreSplitOrNot) {
  compare({1, 8, 2, 1, 700, 64, 64, false, kShown, false});
  compare({2, 8, 4, 1, 200, 64, 64, false, kShown, false}, kFloat16);
  compare({1, 3, 3, 1, 333, 32, 24}, kBFloat16, 132);
  compare({1, 8, 2, 1, 700, 64, 64, false, kShown, false}, kFloat32);
}
TEST_F(DecodingOnHost, EverySize) {
  compare({1, 2, 1, 2, 90, 128, 128, true});
  compare({1, 2, 1, 1, 77, 40, 256}, kFloat16);
  compare({1, 20, 1, 2, 50, 64, 32});  // two blocks for the rows of a head
}
TEST_F(DecodingOnHost, EveryMask) {
  for (AttentionMaskType mask : kMasks) compare({2, 4, 2, 3, 140, 32, 32, false, mask, true});
  compare({1, 6, 2, 3, 140, 32, 32, true, kShown, false});
  compare({1, 2, 2, 1, 99, 32, 32, false, kShown, false});  // a mask at no multiple of 16 bytes
}
TEST_F(DecodingOnHost, WhatIsHiddenDoesNotCount) {
  Operands x({2, 4, 2, 1, 400, 32, 32, false, kShown, false}, kBFloat16);
  x.mask = (arange(400) <= 260).logical_and(arange(400).ne(17)).view({1, 1, 1, 400}).expand({2, 1, 1, 400}).contiguous();
  const Tensor want = run(x, AttentionOnHost::Order::kEarlyCopies, 4);
  EXPECT_LT(relative_error(want, x.on_cpu()), tolerance(kBFloat16));
  for (Tensor* t : {&x.key, &x.value}) {
    t->slice(1, 261).fill_(std::nan(""));
    t->slice(1, 17, 18).fill_(std::nan(""));
  }
  EXPECT_EQ(relative_error(run(x, AttentionOnHost::Order::kEarlyCopies, 4), want), 0);
  x.mask.fill_(false);
  EXPECT_EQ(run(x, AttentionOnHost::Order::kLateCopies, 4).to(kFloat32).abs().amax().item<float>(), 0);
}

class GpuAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << cuda_problem();
  }
  static void compare(const Case& c, std::initializer_list<DType> dtypes = {kFloat32, kBFloat16, kFloat16}) {
    for (DType dtype : dtypes) {
      Operands x(c, dtype);
      EXPECT_LT(relative_error(x.on_gpu(), x.on_cpu()), tolerance(dtype)) << c << " " << to_string(dtype);
    }
  }
};

TEST_F(GpuAttention, ManyQueriesOfEverySize) {
  for (int64_t size : {8, 32, 40, 64, 96, 128, 160, 192, 256}) compare({1, 2, 2, 70, 133, size, size});
  compare({1, 2, 1, 66, 67, 64, 128});
  compare({1, 2, 1, 66, 67, 128, 64});
  compare({1, 2, 1, 66, 67, 256, 32});
}

TEST_F(GpuAttention, ManyQueriesCausalAndGrouped) {
  compare({2, 4, 2, 129, 129, 64, 64, true});
  compare({1, 6, 2, 65, 200, 64, 64, true});
  compare({1, 4, 4, 200, 65, 128, 128, true});
  compare({2, 4, 1, 9, 64, 32, 32});
  compare({1, 1, 1, 64, 1, 64, 64});
}

// Enough of them for whole warpgroups, where there are such.
TEST_F(GpuAttention, ManyQueriesOfManyHeads) {
  for (int64_t size : {64, 128}) {
    compare({4, 16, 4, 300, 300, size, size, true}, {kBFloat16, kFloat16});
    compare({4, 16, 16, 257, 511, size, size}, {kBFloat16, kFloat16});
    compare({4, 32, 8, 129, 50, size, size, true}, {kBFloat16});
    compare({4, 32, 8, 100, 1000, size, size, true}, {kFloat16});
    compare({1, 32, 8, 1100, 1100, size, size, true}, {kBFloat16});
  }
}

TEST_F(GpuAttention, ManyQueriesWithEveryMask) {
  for (AttentionMaskType mask : kMasks)
    for (bool causal : {false, true})
      for (bool by_query : {false, true}) compare({2, 4, 2, 67, 143, 64, 64, causal, mask, by_query});
  compare({2, 2, 2, 70, 160, 64, 64, false, kShown});
  compare({2, 2, 2, 70, 160, 256, 256, false, kShown, false});
}

TEST_F(GpuAttention, RowsOfOddSizes) {
  compare({1, 2, 2, 33, 33, 17, 35, true});
  compare({2, 4, 2, 5, 70, 1, 3});
  compare({1, 2, 2, 40, 50, 250, 255, false, kShown});
}

TEST_F(GpuAttention, FewQueriesOfEverySize) {
  for (int64_t size : {8, 32, 64, 80, 128, 192, 256}) compare({1, 4, 2, 1, 555, size, size});
  compare({1, 4, 2, 2, 300, 64, 128});
  compare({1, 4, 2, 2, 300, 128, 32});
}

TEST_F(GpuAttention, FewQueriesCausalGroupedAndMasked) {
  for (AttentionMaskType mask : kMasks)
    for (bool causal : {false, true})
      for (bool by_query : {false, true}) compare({2, 6, 2, 3, 300, 64, 64, causal, mask, by_query});
  compare({2, 6, 2, 3, 5, 64, 64, true});
  compare({1, 32, 8, 1, 1024, 64, 64, false, kShown, false}, {kBFloat16});
  compare({1, 7, 1, 1, 1000, 128, 128, false, kShown});
  compare({40, 12, 4, 1, 65, 64, 64, false, kShown, false});
  compare({1, 20, 1, 8, 200, 64, 64}, {kFloat32, kBFloat16});
}

// More than is read before the mask is known.
TEST_F(GpuAttention, FewQueriesOnTooManyKeysToReadInVain) {
  compare({4, 32, 8, 1, 1100, 64, 64, false, kShown, false}, {kBFloat16});
  compare({4, 16, 8, 2, 700, 128, 128, false, kShown}, {kFloat16});
}

TEST_F(GpuAttention, RowsThatSeeNothingAreZeros) {
  for (int64_t queries : {2, 70})
    for (DType dtype : {kFloat32, kBFloat16}) {
      Operands x({1, 2, 1, queries, 700, 64, 64, false, kShown}, dtype);
      x.mask = (randn({1, 1, queries, 700}) > 0.3).contiguous();
      x.mask.slice(2, 1, 2).fill_(false);
      Tensor out = x.on_gpu();
      EXPECT_EQ(out.slice(2, 1, 2).to(kFloat32).abs().amax().item<float>(), 0);
      EXPECT_LT(relative_error(out, x.on_cpu()), tolerance(dtype));
      x.mask.fill_(false);
      EXPECT_EQ(x.on_gpu().to(kFloat32).abs().amax().item<float>(), 0);
    }
}

// A static cache: what lies behind the last position is whatever was there before.
TEST_F(GpuAttention, KeysBehindTheLastShownOneAreNotRead) {
  for (int64_t queries : {1, 3, 70})
    for (DType dtype : {kFloat32, kBFloat16}) {
      Operands x({1, 4, 2, queries, 700, 64, 64, false, kShown}, dtype);
      x.mask = (arange(700) <= arange(queries).unsqueeze(1) + 260).view({1, 1, queries, 700}).contiguous();
      Tensor want = x.on_gpu();
      EXPECT_LT(relative_error(want, x.on_cpu()), tolerance(dtype));
      for (Tensor* t : {&x.key, &x.value}) t->slice(1, 260 + queries).fill_(std::nan(""));
      EXPECT_EQ(relative_error(x.on_gpu(), want), 0) << queries;
    }
}

// One workspace for launches of different shapes, with pointers known at the launch alone, recorded and replayed.
TEST_F(GpuAttention, ReplaysWithPointersFromMemory) {
  const Case cases[] = {{1, 32, 8, 1, 700, 64, 64, false, kShown, false}, {2, 4, 2, 2, 300, 128, 128}};
  DeviceBytes workspace(8 << 20), pointers(2 * 5 * sizeof(void*));
  cuda_fill(workspace.data(), 0, 0, size_t(kCudaAttentionCounters));
  std::vector<std::unique_ptr<DeviceBytes>> memory;
  std::vector<void*> addresses;
  const auto keep = [&](const Tensor& t) {
    memory.push_back(std::make_unique<DeviceBytes>(t));
    addresses.push_back(memory.back()->data());
  };
  std::vector<CudaAttention> problems;
  std::vector<Operands> operands;
  for (auto& c : cases) {
    Operands x(c, kBFloat16);
    CudaAttention p = shape_of(c, kBFloat16);
    char* block = static_cast<char*>(pointers.data()) + addresses.size() * sizeof(void*);
    const auto at = [&](int i) { return block + i * sizeof(void*); };
    p.query.data = at(0), p.key.data = at(1), p.value.data = at(2), p.mask.data = at(3), p.out = at(4);
    p.indirect = kIndirectQuery | kIndirectKey | kIndirectValue | kIndirectOut;
    if (x.mask.defined()) p.indirect |= kIndirectMask;
    p.workspace = workspace.data();
    ASSERT_LE(cuda_attention_workspace(p, cuda_device_info(0)), 8 << 20);
    for (const Tensor& t : {x.query, x.key, x.value, x.mask.defined() ? x.mask : x.query, x.empty_result()}) keep(t);
    problems.push_back(p);
    operands.push_back(x);
  }
  cuda_copy(pointers.data(), cuda(), addresses.data(), cpu(), addresses.size() * sizeof(void*));
  const auto queue = [&] {
    for (auto& p : problems) cuda_attention(0, p);
  };
  queue();
  cuda_synchronize(0);
  auto graph = CudaGraph::capture(0, queue);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < problems.size(); ++i) memory[5 * i + 4]->fill(0xff);
    graph->launch(cuda_stream(0));
    cuda_synchronize(0);
    for (size_t i = 0; i < problems.size(); ++i) {
      Tensor out = operands[i].empty_result();
      memory[5 * i + 4]->copy_to(out);
      EXPECT_LT(relative_error(out, operands[i].on_cpu()), tolerance(kBFloat16)) << cases[i];
    }
  }
}

}  // namespace
}  // namespace sinter::runtime
