// What the GPU's runtime does without a GPU: messages, and, on a stand-in for the driver, memory, copies, graphs and
// reports of kernels. NVRTC is in cuda_compile_test.cpp; cuda_device_test.cpp asks the same of a real device.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "gtest/gtest.h"
#include "sinter/base/error.h"
#include "sinter/runtime/cuda/cuda.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/errors.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/pinned.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/tensor/tensor.h"
#include "tests/runtime/cuda_test_errors.h"
#include "tests/runtime/fake_cuda.h"

namespace sinter::runtime {
namespace {

using CudaDriver = FakeCudaTest;

// What a process with this driver says of it.
[[noreturn]] void report_problem(const char* driver) {
  setenv("SINTER_CUDA_DRIVER", driver, 1);
  if (cuda_is_available() || cuda_device_count() != 0) std::exit(1);
  std::string message = message_of([] { allocator_for(cuda(0)); });
  std::fprintf(stderr, "%s\n", message.c_str());
  bool said = has(message, "device cuda:0 is not available: " + cuda_problem());
  std::exit(said && has(message_of([] { cuda_stream(0); }), cuda_problem()) ? 0 : 1);
}

TEST_F(CudaDriver, MissingIsSaidWithARemedy) {
  EXPECT_EXIT(report_problem("/nonexistent/libcuda.so.1"), testing::ExitedWithCode(0),
              "driver was not found: .*/nonexistent/libcuda.so.1.*Install one for CUDA 12.0|this build of Sinter");
}

TEST_F(CudaDriver, TooOldIsSaidWithTheVersions) {
  setenv("FAKE_CUDA_VERSION", "11080", 1);
  EXPECT_EXIT(report_problem(fake()), testing::ExitedWithCode(0),
              "driver is too old: it supports CUDA 11.8, and 12.0 or newer is needed|this build of Sinter");
  unsetenv("FAKE_CUDA_VERSION");
}

TEST_F(CudaDriver, ThatDoesNotStartIsSaidWithItsReason) {
  setenv("FAKE_CUDA_INIT", "100", 1);
  EXPECT_EXIT(report_problem(fake()), testing::ExitedWithCode(0),
              "does not start: CUDA_ERROR_NO_DEVICE.*CUDA_VISIBLE_DEVICES|this build of Sinter");
  unsetenv("FAKE_CUDA_INIT");
}

TEST_F(CudaDriver, WithoutDevicesIsSaid) {
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  EXPECT_EXIT(report_problem(fake()), testing::ExitedWithCode(0), "finds no GPU|this build of Sinter");
  unsetenv("FAKE_CUDA_DEVICES");
}

TEST_F(CudaDriver, AnotherLibraryIsNotADriver) {
  EXPECT_EXIT(report_problem("libc.so.6"), testing::ExitedWithCode(0), "is not an NVIDIA driver|this build of Sinter");
}

TEST_F(CudaDriver, AMissingDeviceListsThoseThere) {
  SINTER_EXPECT_ON_FAKE([] {
    SINTER_REQUIRE(cuda_device_count() == 2);
    std::string message = message_of([] { allocator_for(cuda(2)); });
    SINTER_REQUIRE(has(message, "there is no device cuda:2; this machine has cuda:0 (Fake GPU), cuda:1 (Fake GPU)"));
    SINTER_REQUIRE(cuda_device_info(1).architecture() == "sm_90");
    SINTER_REQUIRE(has(message_of([] { sinter::cuda_synchronize(cpu()); }), "cpu is not a GPU"));
  });
}

TEST_F(CudaDriver, BlocksAreReusedSplitAndMerged) {
  SINTER_EXPECT_ON_FAKE([] {
    Allocator& memory = cuda_allocator(0);
    SINTER_REQUIRE(memory.allocate(0) == nullptr);
    void* a = memory.allocate(1000);
    void* b = memory.allocate(3000);
    SINTER_REQUIRE(static_cast<char*>(b) == static_cast<char*>(a) + 1024);
    SINTER_REQUIRE(cuda_memory_stats(0).allocated == 1024 + 3072);
    SINTER_REQUIRE(cuda_memory_stats(0).driver_calls == 1);
    SINTER_REQUIRE(cuda_memory_stats(0).reserved == int64_t(2 * kMiB));
    memory.release(a, 1000);
    SINTER_REQUIRE(memory.allocate(512) == a);
    memory.release(a, 512);
    memory.release(b, 3000);
    // All of the segment is one block again.
    void* whole = memory.allocate(kMiB);
    SINTER_REQUIRE(whole == a && cuda_memory_stats(0).driver_calls == 1);
    memory.release(whole, kMiB);
    SINTER_REQUIRE(cuda_memory_stats(0).allocated == 0 && cuda_memory_stats(0).peak == int64_t(kMiB));
    reset_cuda_memory_peak(0);
    SINTER_REQUIRE(cuda_memory_stats(0).peak == 0);
    empty_cuda_cache(0);
    SINTER_REQUIRE(cuda_memory_stats(0).reserved == 0);
  });
}

TEST_F(CudaDriver, StreamsDoNotShareFreeBlocks) {
  SINTER_EXPECT_ON_FAKE([] {
    Allocator& memory = cuda_allocator(0);
    void* a = memory.allocate(4096);
    memory.release(a, 4096);
    OwnCudaStream own(0);
    {
      CudaStreamGuard guard(0, own.stream());
      SINTER_REQUIRE(cuda_stream(0) == own.stream());
      void* b = memory.allocate(4096);
      SINTER_REQUIRE(b != a);
      memory.release(b, 4096);
    }
    SINTER_REQUIRE(cuda_stream(0) != own.stream());
    SINTER_REQUIRE(memory.allocate(4096) == a);
  });
}

TEST_F(CudaDriver, OutOfMemoryListsTheLargestAndGoesOn) {
  SINTER_EXPECT_ON_FAKE([] {
    set_cuda_memory_limit(0, 64 * kMiB);
    Allocator& memory = cuda_allocator(0);
    void* a = memory.allocate(30 * kMiB);
    void* b = memory.allocate(10 * kMiB);
    std::string message = message_of([&] { memory.allocate(40 * kMiB); });
    SINTER_REQUIRE(has(message, "out of memory: 40.0 MiB asked for on cuda:0; 40.0 MiB in use"));
    SINTER_REQUIRE(has(message, "limit 64.0 MiB") && has(message, "2 blocks in use:\n  30.0 MiB\n  10.0 MiB"));
    // What is free is given back first, and a segment as small as the request is tried.
    memory.release(b, 10 * kMiB);
    void* c = memory.allocate(34 * kMiB);
    SINTER_REQUIRE(c && cuda_memory_stats(0).reserved == int64_t(64 * kMiB));
    memory.release(c, 34 * kMiB);
    void* d = memory.allocate(5 * kMiB);  // from the cached segment
    SINTER_REQUIRE(d == c);
    memory.release(d, 5 * kMiB);
    memory.release(a, 30 * kMiB);
    // The device's own end: the stand-in has 256 MiB.
    set_cuda_memory_limit(0, 0);
    SINTER_REQUIRE(has(message_of([&] { memory.allocate(300 * kMiB); }), "256.0 MiB of the device's 256.0 MiB free"));
    SINTER_REQUIRE(has(message_of([&] { memory.allocate(~size_t(0)); }), "out of memory"));
    SINTER_REQUIRE(memory.allocate(200 * kMiB) != nullptr);
  });
}

TEST_F(CudaDriver, ThreadsAllocateAtOnce) {
  SINTER_EXPECT_ON_FAKE([] {
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t, &wrong] {
        Allocator& memory = cuda_allocator(0);
        std::vector<std::pair<char*, size_t>> mine;
        unsigned state = unsigned(t) + 1;
        for (int i = 0; i < 4000; ++i) {
          state = state * 1664525u + 1013904223u;
          if (mine.size() < 40 && (state >> 16) % 2) {
            size_t bytes = (state >> 8) % (state & 64 ? 1500000 : 9000) + 1;
            auto* data = static_cast<char*>(memory.allocate(bytes));
            data[0] = data[bytes - 1] = char(t);
            mine.emplace_back(data, bytes);
          } else if (!mine.empty()) {
            std::swap(mine[(state >> 8) % mine.size()], mine.back());
            auto [data, bytes] = mine.back();
            wrong += data[0] != t || data[bytes - 1] != t;
            memory.release(data, bytes);
            mine.pop_back();
          }
        }
        for (auto [data, bytes] : mine) memory.release(data, bytes);
      });
    for (auto& thread : threads) thread.join();
    SINTER_REQUIRE(wrong == 0 && cuda_memory_stats(0).allocated == 0);
    empty_cuda_cache(0);
    SINTER_REQUIRE(cuda_memory_stats(0).reserved == 0);
  });
}

TEST_F(CudaDriver, BytesAreCopiedBetweenHostAndDevices) {
  SINTER_EXPECT_ON_FAKE([] {
    BufferPtr a = allocate_buffer(100, cuda(0)), b = allocate_buffer(100, cuda(1));
    auto* host = static_cast<char*>(pinned_allocator().allocate(100));
    for (int i = 0; i < 100; ++i) host[i] = char(i);
    cuda_copy(a->data(), cuda(0), host, cpu(), 100, /*asynchronous=*/true);
    cuda_copy(b->data(), cuda(1), a->data(), cuda(0), 100);
    char back[100] = {};
    cuda_copy(back, cpu(), b->data(), cuda(1), 100);
    SINTER_REQUIRE(std::memcmp(host, back, 100) == 0);
    cuda_fill(b->data(), 1, 7, 50);
    cuda_copy(back, cpu(), b->data(), cuda(1), 100);
    SINTER_REQUIRE(back[0] == 7 && back[49] == 7 && back[50] == 50);
    pinned_allocator().release(host, 100);
    SINTER_REQUIRE(pinned_allocator().allocate(200) == host);
    static BufferPtr at_exit;
    at_exit = a;  // freed while the process ends
  });
}

TEST_F(CudaDriver, TensorsGoThroughPageLockedMemory) {
  SINTER_EXPECT_ON_FAKE([] {
    Tensor plain = make_view(tensor({{1, 2, 3}, {4, 5, 6}}), {3, 2}, {1, 3}, 0), pinned = plain.pin_memory();
    SINTER_REQUIRE(!is_pinned(plain.data_ptr()) && is_pinned(pinned.data_ptr()) && pinned.device().is_cpu());
    SINTER_REQUIRE(pinned.to_vector<int>() == plain.to_vector<int>());
    Tensor there = pinned.to(cuda(1), /*non_blocking=*/true);
    SINTER_REQUIRE(there.device() == cuda(1) && there.cpu().to_vector<int>() == plain.to_vector<int>());
    SINTER_REQUIRE(plain.to(cuda(0), /*non_blocking=*/true).cpu().to_vector<int>() == plain.to_vector<int>());
    void* memory = pinned.data_ptr();
    pinned = {};  // its memory serves the next one
    SINTER_REQUIRE(plain.pin_memory().data_ptr() == memory);
  });
}

TEST_F(CudaDriver, ReportsOfKernelsAreThrownWhereTheHostWaits) {
  SINTER_EXPECT_ON_FAKE([] {
    // The stand-in's device sees host memory at its own address.
    auto* cell = reinterpret_cast<int64_t*>(cuda_error_cell(0, "embedding"));
    auto* other = reinterpret_cast<int64_t*>(cuda_error_cell(0, "gather, add"));
    SINTER_REQUIRE(cell != other && cuda_error_cell(0, "embedding") == int64_t(cell));
    SINTER_REQUIRE(cuda_error_cell(1, "embedding") != int64_t(cell));
    cuda_synchronize(0);
    other[0] = 1, other[1] = -9, other[2] = 5;
    SINTER_REQUIRE(message_of([] { cuda_synchronize(0); }) == "gather, add: index -9 is out of range for size 5");
    cuda_synchronize(0);
    SINTER_REQUIRE(other[0] == 0);
    for (int i = 0; i < 5000; ++i) cuda_error_cell(0, "op " + std::to_string(i));  // more than there are cells
    auto* last = reinterpret_cast<int64_t*>(cuda_error_cell(0, "op 4999"));
    last[0] = 1, last[1] = 3, last[2] = 2;
    SINTER_REQUIRE(has(message_of([] { check_cuda_errors(0); }), "one of many ops: index 3"));
  });
}

TEST_F(CudaDriver, AGraphSaysWhatCannotBeRecorded) {
  SINTER_EXPECT_ON_FAKE([] {
    BufferPtr a = allocate_buffer(100, cuda(0));
    CudaStream common = cuda_stream(0);
    auto graph = CudaGraph::capture(0, [&] {
      SINTER_REQUIRE(is_capturing_cuda_graph() && cuda_stream(0) != common);
      cuda_fill(a->data(), 0, 1, 100);
    });
    SINTER_REQUIRE(!is_capturing_cuda_graph() && graph->nodes() == 1 && cuda_stream(0) == common);
    graph->launch(common);
    auto refused = [&](FunctionRef<void()> work, const char* text) {
      SINTER_REQUIRE(has(message_of([&] { CudaGraph::capture(0, work); }), text));
      SINTER_REQUIRE(!is_capturing_cuda_graph() && cuda_stream(0) == common);
      cuda_synchronize(0);  // the stand-in refuses while recording
    };
    refused([] { cuda_synchronize(0); }, "waiting for the device cannot be recorded");
    refused([] { empty_cuda_cache(0); }, "giving memory back cannot be recorded");
    refused([] { CudaGraph::capture(0, [] {}); }, "another CUDA graph cannot be recorded");
    char host[8] = {};
    refused([&] { cuda_copy(a->data(), cuda(0), host, cpu(), 8); }, "not page-locked cannot be recorded");
    refused([] { throw_error("the user's own"); }, "the user's own");
  });
}

TEST_F(CudaDriver, MemoryTakenForAGraphIsTheGraphs) {
  SINTER_EXPECT_ON_FAKE([] {
    void* taken = nullptr;
    auto graph = CudaGraph::capture(0, [&] {
      BufferPtr inside = allocate_buffer(4096, cuda(0));
      taken = inside->data();
      cuda_fill(taken, 0, 1, 4096);
    });
    BufferPtr other = allocate_buffer(4096, cuda(0));
    SINTER_REQUIRE(other->data() != taken);
    graph.reset();
    BufferPtr later = allocate_buffer(4096, cuda(0));
    SINTER_REQUIRE(later->data() == taken);
  });
}

TEST_F(CudaDriver, KernelsLoadOnManyThreadsAndAreOneEach) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!nvrtc_problem().empty()) return;
    std::vector<CudaSource> sources;
    for (int i = 0; i < 6; ++i)
      sources.push_back({format("k{}", i % 4), format("extern \"C\" __global__ void k{}(P p) { p.x[0] = {}; }", i % 4, i % 4), 0});
    std::vector<std::vector<CudaFunction>> loaded(4);
    std::vector<std::thread> threads;
    for (auto& mine : loaded) threads.emplace_back([&] { mine = load_cuda(sources, "struct P { float* x; };", 0); });
    for (auto& thread : threads) thread.join();
    for (auto& mine : loaded)
      for (size_t i = 0; i < sources.size(); ++i) SINTER_REQUIRE(mine[i].handle() == loaded[0][i % 4].handle());
    SINTER_REQUIRE(loaded[0][0].handle() != loaded[0][1].handle());
    sources[5].text = "extern \"C\" __global__ void k1(P p) { wrong }";
    sources[5].name = "broken";
    SINTER_REQUIRE(has(message_of([&] { load_cuda(sources, "struct P { float* x; };", 0); }), "'broken' does not compile"));
  });
}

TEST_F(CudaDriver, KernelsAreCompiledOnceAndNamedInFaults) {
  SINTER_EXPECT_ON_FAKE([] {
    if (!nvrtc_problem().empty()) return;
    auto source = [](const char* name) {
      return CudaSource{name, format("extern \"C\" __global__ void {}(P p) { p.x[threadIdx.x] = 1; }", name),
                        100 << 10};
    };
    const char* prelude = "struct P { float* x; };";
    CudaSource both[] = {source("one"), source("two"), source("one")};
    both[2].shared_bytes = 0;
    both[0].shared_bytes = both[1].shared_bytes = 60 << 10;
    auto before = cuda_compile_stats();
    auto kernels = load_cuda(both, prelude, 0);
    auto after = cuda_compile_stats();
    SINTER_REQUIRE(after.compiles + after.disk_hits == before.compiles + before.disk_hits + 2);
    SINTER_REQUIRE(kernels.size() == 3 && kernels[0].handle() == kernels[2].handle());
    SINTER_REQUIRE(kernels[0].handle() != kernels[1].handle());
    auto again = load_cuda(std::span(both, 1), prelude, 0);
    SINTER_REQUIRE(again[0].handle() == kernels[0].handle());
    SINTER_REQUIRE(cuda_compile_stats().memory_hits == after.memory_hits + 1);
    SINTER_REQUIRE(kernels[0].registers() == 32 && kernels[0].blocks_per_multiprocessor(256, 0) == 8);
    SINTER_REQUIRE(
        has(message_of([&] { load_cuda(std::array{source("one")}, prelude, 0); }), "102400 bytes of shared memory"));
    CudaGrid grid;
    void* params = nullptr;
    cuda_launch(kernels[1], 0, grid, &params, sizeof params);
    grid.threads[0] = 2048;
    std::string message = message_of([&] { cuda_launch(kernels[1], 0, grid, &params, sizeof params); });
    SINTER_REQUIRE(has(message, "launching the kernel 'two' (grid 1×1×1, 2048×1×1 threads"));
  });
}

}  // namespace
}  // namespace sinter::runtime
