#include "sinter/runtime/cpu/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "sinter/base/error.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

TEST(CpuMemory, IsAlignedAndHoldsItsSize) {
  auto& memory = cpu_allocator();
  for (size_t bytes : {1, 63, 64, 65, 256, 257, 320, 321, 4096, 65535, 65536, 65537, 1 << 20, (4 << 20) - 1, 4 << 20,
                       (4 << 20) + 1, 9 << 20}) {
    auto* data = static_cast<char*>(memory.allocate(bytes));
    EXPECT_EQ(uintptr_t(data) % 64, 0u) << bytes;
    if (kCaching && bytes >= 4 << 20) {
      EXPECT_EQ(uintptr_t(data) % (2 << 20), 0u) << bytes;
    }
    std::memset(data, 0x5a, bytes);
    EXPECT_EQ(data[bytes - 1], 0x5a);
    memory.release(data, bytes);
  }
  EXPECT_EQ(memory.allocate(0), nullptr);
  memory.release(nullptr, 0);
}

TEST(CpuMemory, ReusesFreedBlocks) {
  if (!kCaching) GTEST_SKIP() << "nothing is cached under AddressSanitizer";
  auto& memory = cpu_allocator();
  for (size_t bytes : {size_t(100), size_t(60000), size_t(70000), size_t(64) << 20}) {
    void* first = memory.allocate(bytes);
    memory.release(first, bytes);
    void* second = memory.allocate(bytes - 1);
    EXPECT_EQ(first, second) << bytes;
    memory.release(second, bytes - 1);
  }
  EXPECT_GE(cpu_memory_stats().cached, 64 << 20);
  empty_cpu_cache();
  EXPECT_EQ(cpu_memory_stats().cached, 0);
}

TEST(CpuMemory, CountsWhatIsInUse) {
  auto& memory = cpu_allocator();
  auto before = cpu_memory_stats();
  void* small = memory.allocate(1000);
  void* large = memory.allocate(10 << 20);
  auto during = cpu_memory_stats();
  EXPECT_GE(during.allocated - before.allocated, 1000 + (10 << 20));
  EXPECT_LE(during.allocated - before.allocated, (1000 + (10 << 20)) * 5 / 4 + 64);
  EXPECT_GE(during.peak, during.allocated);
  memory.release(small, 1000);
  memory.release(large, 10 << 20);
  EXPECT_EQ(cpu_memory_stats().allocated, before.allocated);
  EXPECT_GE(cpu_memory_stats().peak, during.allocated);
  reset_cpu_memory_peak();
  EXPECT_LT(cpu_memory_stats().peak, during.allocated);
}

TEST(CpuMemory, TheCacheIsBounded) {
  auto& memory = cpu_allocator();
  // Never touched, so that it costs address space alone.
  std::vector<std::pair<void*, size_t>> blocks;
  for (int i = 0; i < 40; ++i) {
    size_t bytes = size_t(40 + i) << 20;
    blocks.emplace_back(memory.allocate(bytes), bytes);
  }
  for (auto& [data, bytes] : blocks) memory.release(data, bytes);
  EXPECT_LE(cpu_memory_stats().cached, int64_t(1) << 30);
  EXPECT_GE(cpu_memory_stats().cached, kCaching ? int64_t(50) << 20 : 0);
  empty_cpu_cache();
}

TEST(CpuMemory, RefusesBeyondTheLimit) {
  auto& memory = cpu_allocator();
  EXPECT_THROW(memory.allocate(size_t(1) << 60), OutOfMemoryError);
  EXPECT_THROW(memory.allocate(SIZE_MAX), OutOfMemoryError);
  set_cpu_memory_limit(size_t(cpu_memory_stats().allocated) + (32 << 20));
  void* fits = memory.allocate(16 << 20);
  try {
    memory.allocate(20 << 20);
    ADD_FAILURE() << "the limit was not kept";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(error.message().find("20971520 bytes asked for"), std::string::npos) << error.message();
  }
  memory.release(fits, 16 << 20);
  set_cpu_memory_limit(1 << 20);
  EXPECT_THROW(memory.allocate(16 << 20), OutOfMemoryError) << "a cached block is no exception";
  set_cpu_memory_limit(SIZE_MAX);
  EXPECT_THROW(memory.allocate(SIZE_MAX), OutOfMemoryError);
  set_cpu_memory_limit(0);
  void* again = memory.allocate(20 << 20);
  memory.release(again, 20 << 20);
}

TEST(CpuMemory, ThreadsPassBlocksAround) {
  auto& memory = cpu_allocator();
  auto before = cpu_memory_stats().allocated;
  constexpr int kThreads = 4, kSlots = 64;
  struct Block {
    char* data;
    size_t bytes;
  };
  std::vector<std::atomic<Block*>> slots(kSlots);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 3000; ++i) {
        size_t bytes = size_t(1) << (random() % 19);
        auto* block = new Block{static_cast<char*>(memory.allocate(bytes)), bytes};
        block->data[0] = block->data[bytes - 1] = char(bytes % 97);
        if (Block* old = slots[random() % kSlots].exchange(block)) {
          EXPECT_EQ(old->data[0], char(old->bytes % 97));
          EXPECT_EQ(old->data[old->bytes - 1], char(old->bytes % 97));
          memory.release(old->data, old->bytes);
          delete old;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& slot : slots) {
    if (Block* old = slot.exchange(nullptr)) {
      memory.release(old->data, old->bytes);
      delete old;
    }
  }
  EXPECT_EQ(cpu_memory_stats().allocated, before);  // the ended threads have handed over their counts
}

// A tensor held by a thread_local outlives the allocator's own per-thread state.
TEST(CpuMemory, FreeingWhileAThreadEnds) {
  auto before = cpu_memory_stats().allocated;
  std::thread([] {
    struct Holder {
      ~Holder() {
        if (buffer) buffer = nullptr;
        allocate_buffer(500, cpu());
      }
      BufferPtr buffer;
    };
    static thread_local Holder holder;
    holder.buffer = nullptr;
    holder.buffer = allocate_buffer(300, cpu());
  }).join();
  EXPECT_EQ(cpu_memory_stats().allocated, before);
}

TEST(Memory, OtherDevicesSayThatTheyAreMissing) {
  if (runtime::cuda_is_available()) GTEST_SKIP() << "they are not";
  try {
    allocator_for(cuda(0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("device cuda:0 is not available"), std::string::npos);
  }
  EXPECT_EQ(&allocator_for(cpu()), &cpu_allocator());
}

}  // namespace
}  // namespace sinter
