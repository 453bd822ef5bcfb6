// The GPU's runtime on a GPU.
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "sinter/base/error.h"
#include "sinter/runtime/cuda/cuda.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/errors.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"
#include "tests/runtime/cuda_test_errors.h"

namespace sinter::runtime {
namespace {

struct AddParams {
  const float *a, *b;
  float* out;
  int n;
};

constexpr const char* kAddPrelude = "struct P { const float *a, *b; float* out; int n; };";
const CudaSource kAdd{"gpu_test_add",
                      "extern \"C\" __global__ void gpu_test_add(P p) {\n"
                      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                      "  if (i < p.n) p.out[i] = p.a[i] + p.b[i];\n}\n",
                      0};

struct DeviceVector {
  BufferPtr buffer;
  explicit DeviceVector(const std::vector<float>& values) : buffer(allocate_buffer(values.size() * 4, cuda(0))) {
    cuda_copy(buffer->data(), cuda(0), values.data(), cpu(), values.size() * 4);
  }
  float* data() const { return static_cast<float*>(buffer->data()); }
  std::vector<float> values() const {
    std::vector<float> out(buffer->bytes() / 4);
    cuda_copy(out.data(), cpu(), buffer->data(), cuda(0), buffer->bytes());
    return out;
  }
};

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (auto& x : out) x = normal(engine);
  return out;
}

class GpuRuntime : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_is_available()) GTEST_SKIP() << cuda_problem();
  }

  static void add(const DeviceVector& a, const DeviceVector& b, const DeviceVector& out, bool overlaps = false) {
    auto kernel = load_cuda(std::span(&kAdd, 1), kAddPrelude, 0)[0];
    int n = int(out.buffer->bytes() / 4);
    AddParams params{a.data(), b.data(), out.data(), n};
    CudaGrid grid;
    grid.blocks[0] = unsigned(n + 255) / 256;
    grid.threads[0] = 256;
    grid.overlaps_previous = overlaps;
    cuda_launch(kernel, 0, grid, &params, sizeof params);
  }
};

TEST_F(GpuRuntime, TheDeviceTellsOfItself) {
  auto& info = cuda_device_info(0);
  EXPECT_FALSE(info.name.empty());
  EXPECT_GE(info.multiprocessors, 1);
  EXPECT_GE(info.shared_bytes, 48 << 10);
  EXPECT_GE(info.memory_bytes, int64_t(1) << 30);
  EXPECT_EQ(info.architecture().substr(0, 3), "sm_");
}

TEST_F(GpuRuntime, AMissingDeviceIsAnError) {
  EXPECT_TRUE(
      has(message_of([] { allocate_buffer(8, cuda(63)); }), "there is no device cuda:63; this machine has cuda:0 ("));
}

TEST_F(GpuRuntime, BytesGoThereAndBack) {
  for (size_t bytes : {size_t(1), size_t(1000), size_t(64 << 10), size_t(5 << 20) + 3}) {
    std::vector<unsigned char> values(bytes), back(bytes);
    for (size_t i = 0; i < bytes; ++i) values[i] = (unsigned char)(i * 31 + bytes);
    BufferPtr a = allocate_buffer(bytes, cuda(0)), b = allocate_buffer(bytes, cuda(0));
    cuda_copy(a->data(), cuda(0), values.data(), cpu(), bytes);
    std::vector<unsigned char> sent = values;
    std::fill(values.begin(), values.end(), 0);  // the host's memory is free on return
    cuda_copy(b->data(), cuda(0), a->data(), cuda(0), bytes);
    cuda_copy(back.data(), cpu(), b->data(), cuda(0), bytes);
    EXPECT_EQ(back, sent);
    cuda_fill(b->data(), 0, 0xa5, bytes);
    cuda_copy(back.data(), cpu(), b->data(), cuda(0), bytes);
    EXPECT_EQ(back, std::vector<unsigned char>(bytes, 0xa5));
  }
}

TEST_F(GpuRuntime, PinnedMemoryIsNotReusedBeforeItsCopyIsDone) {
  constexpr size_t kBytes = 64 << 20;
  BufferPtr on_device = allocate_buffer(kBytes, cuda(0));
  void* first = pinned_allocator().allocate(kBytes);
  std::memset(first, 1, kBytes);
  cuda_copy(on_device->data(), cuda(0), first, cpu(), kBytes, /*asynchronous=*/true);
  pinned_allocator().release(first, kBytes);
  void* second = pinned_allocator().allocate(kBytes);
  std::memset(second, 2, kBytes);  // must not reach the device
  std::vector<unsigned char> back(kBytes);
  cuda_copy(back.data(), cpu(), on_device->data(), cuda(0), kBytes);
  EXPECT_EQ(back.front(), 1);
  EXPECT_EQ(back.back(), 1);
  pinned_allocator().release(second, kBytes);
}

TEST_F(GpuRuntime, AKernelAddsWithAndWithoutOverlap) {
  auto x = random_values(100001, 1), y = random_values(100001, 2);
  DeviceVector a(x), b(y), out(std::vector<float>(x.size(), -1));
  for (bool overlaps : {false, true}) {
    cuda_fill(out.data(), 0, 0xff, out.buffer->bytes());
    add(a, b, out, overlaps);
    auto got = out.values();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] + y[i]) << i;
  }
}

TEST_F(GpuRuntime, MuchSharedMemoryIsAskedFor) {
  const CudaSource source{"gpu_test_shared",
                          "extern __shared__ float room[];\n"
                          "extern \"C\" __global__ void gpu_test_shared(Q q) {\n"
                          "  room[q.n - 1 - threadIdx.x] = threadIdx.x; __syncthreads();\n"
                          "  q.out[threadIdx.x] = room[q.n - blockDim.x + threadIdx.x];\n}\n",
                          90 << 10};
  auto kernel = load_cuda(std::span(&source, 1), "struct Q { float* out; int n; };", 0)[0];
  struct {
    float* out;
    int n;
  } params;
  DeviceVector out(std::vector<float>(64, -1));
  params = {out.data(), (90 << 10) / 4};
  CudaGrid grid;
  grid.threads[0] = 64;
  grid.shared_bytes = 90 << 10;
  cuda_launch(kernel, 0, grid, &params, sizeof params);
  auto got = out.values();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[i], 63 - i);
  EXPECT_GE(kernel.registers(), 1);
  EXPECT_GE(kernel.blocks_per_multiprocessor(64, 90 << 10), 1);
}

TEST_F(GpuRuntime, ALaunchThatFailsNamesTheKernelAndTheDeviceGoesOn) {
  auto kernel = load_cuda(std::span(&kAdd, 1), kAddPrelude, 0)[0];
  CudaGrid grid;
  grid.threads[0] = 4096;
  AddParams params{};
  std::string message = message_of([&] { cuda_launch(kernel, 0, grid, &params, sizeof params); });
  EXPECT_TRUE(has(message, "launching the kernel 'gpu_test_add'")) << message;
  auto x = random_values(100, 3);
  DeviceVector a(x), out(std::vector<float>(100, 0));
  add(a, a, out);
  EXPECT_EQ(out.values()[7], x[7] + x[7]);
}

TEST_F(GpuRuntime, AGraphReplaysWhatWasQueued) {
  auto x = random_values(5000, 4);
  DeviceVector a(x), sum(std::vector<float>(5000, 0));
  add(a, sum, sum);  // loads the code
  cuda_fill(sum.data(), 0, 0, 20000);
  auto graph = CudaGraph::capture(0, [&] {
    add(a, sum, sum);
    add(a, sum, sum, /*overlaps=*/false);
  });
  EXPECT_EQ(graph->nodes(), 2);
  for (float v : sum.values()) ASSERT_EQ(v, 0.f);  // recorded, not done
  for (int i = 0; i < 3; ++i) graph->launch(cuda_stream(0));
  auto got = sum.values();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(got[i], 6 * x[i], 1e-5 * (1 + std::abs(6 * x[i])));
}

TEST_F(GpuRuntime, AGraphThatCannotBeRecordedLeavesTheStreamWorking) {
  auto x = random_values(100, 5);
  DeviceVector a(x), out(std::vector<float>(100, 0));
  std::string message = message_of([&] {
    CudaGraph::capture(0, [&] {
      add(a, a, out);
      cuda_synchronize(0);
    });
  });
  EXPECT_TRUE(has(message, "waiting for the device cannot be recorded")) << message;
  // Another thread's work on the common stream stays out of the graph.
  auto graph = CudaGraph::capture(0, [&] {
    std::thread([&] { add(a, a, out); }).join();
    cuda_fill(a.data(), 0, 0, 4);
  });
  EXPECT_EQ(graph->nodes(), 1);
  EXPECT_EQ(out.values()[9], x[9] + x[9]);
}

TEST_F(GpuRuntime, AReportOfAKernelIsThrownOnce) {
  const CudaSource source{"gpu_test_report",
                          "extern \"C\" __global__ void gpu_test_report(R r) {\n"
                          "  r.cell[1] = 17; r.cell[2] = 5; __threadfence_system(); r.cell[0] = 1;\n}\n",
                          0};
  auto kernel = load_cuda(std::span(&source, 1), "struct R { volatile long long* cell; };", 0)[0];
  int64_t cell = cuda_error_cell(0, "gather");
  cuda_launch(kernel, 0, {}, &cell, sizeof cell);
  EXPECT_EQ(message_of([] { cuda_synchronize(0); }), "gather: index 17 is out of range for size 5");
  cuda_synchronize(0);
}

TEST_F(GpuRuntime, OutOfMemoryIsSurvived) {
  empty_cuda_cache(0);
  size_t before = size_t(cuda_memory_stats(0).reserved);
  set_cuda_memory_limit(0, before + 64 * kMiB);
  BufferPtr held = allocate_buffer(30 * kMiB, cuda(0));
  std::string message = message_of([] { allocate_buffer(40 * kMiB, cuda(0)); });
  EXPECT_TRUE(has(message, "out of memory: 40.0 MiB asked for on cuda:0")) << message;
  EXPECT_TRUE(has(message, "\n  30.0 MiB")) << message;
  set_cuda_memory_limit(0, 0);
  // The device's own end.
  message = message_of([] { allocate_buffer(size_t(cuda_device_info(0).memory_bytes) + kMiB, cuda(0)); });
  EXPECT_TRUE(has(message, "of the device's")) << message;
  auto x = random_values(100, 6);
  DeviceVector a(x), out(std::vector<float>(100, 0));
  add(a, a, out);
  EXPECT_EQ(out.values()[50], x[50] + x[50]);
}

TEST_F(GpuRuntime, EventsOrderStreamsAndMeasure) {
  auto x = random_values(1 << 22, 7);
  DeviceVector a(x), sum(std::vector<float>(x.size(), 0));
  OwnCudaStream own(0);
  CudaEvent start(0), end(0);
  start.record(cuda_stream(0));
  for (int i = 0; i < 20; ++i) add(a, sum, sum);
  end.record(cuda_stream(0));
  end.hold_back(own.stream());
  std::vector<float> got(x.size());
  {
    CudaStreamGuard guard(0, own.stream());
    cuda_copy(got.data(), cpu(), sum.data(), cuda(0), got.size() * 4);
  }
  EXPECT_TRUE(end.is_done());
  EXPECT_GT(end.milliseconds_since(start), 0);
  EXPECT_NEAR(got[12345], 20 * x[12345], 1e-4 * (1 + std::abs(20 * x[12345])));
}

}  // namespace
}  // namespace sinter::runtime
