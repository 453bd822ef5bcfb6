#include "sinter/runtime/cpu/memory.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/base/log.h"

#if defined(__SANITIZE_ADDRESS__)
#define SINTER_CACHE_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SINTER_CACHE_MEMORY 0
#endif
#endif
#ifndef SINTER_CACHE_MEMORY
#define SINTER_CACHE_MEMORY 1
#endif

namespace sinter {

namespace {

constexpr bool kCaching = SINTER_CACHE_MEMORY;
constexpr size_t kAlignment = 64;
constexpr size_t kSmall = 64 << 10;  // largest block of the threads' lists
constexpr size_t kMapped = 4 << 20;  // from here on blocks are mapped, on huge pages where there are any
constexpr size_t kHugePage = 2 << 20;
constexpr size_t kListBytes = 256 << 10;    // what a thread keeps of one class
constexpr size_t kListBlocks = 64;          // and how many at most
constexpr int64_t kCountSlack = 256 << 10;  // what a thread may hold back from the common counters
constexpr int kClasses = 256, kSmallClasses = 36;

// Classes 0..3 are 64, 128, 192, 256 bytes; then four to each power of two.
int class_of(size_t bytes) {
  if (bytes <= 256) return int((bytes - 1) / 64);
  int power = std::bit_width(bytes - 1) - 1;
  return 4 * (power - 8) + int((bytes - 1) >> (power - 2));
}

constexpr size_t class_bytes(int c) { return c < 4 ? size_t(c + 1) * 64 : size_t(c % 4 + 5) << (c / 4 + 5); }

// How many blocks of each class a thread keeps.
constexpr auto kListLimits = [] {
  std::array<uint16_t, kSmallClasses> limits{};
  for (int c = 0; c < kSmallClasses; ++c) limits[c] = uint16_t(std::min(kListBlocks, kListBytes / class_bytes(c)));
  return limits;
}();

struct FreeBlock {
  FreeBlock* next;
};

// A free block of the shared cache: in the list of its class, and in the list of all by age.
struct CachedBlock {
  CachedBlock *next, *previous;  // of this class, the latest first
  CachedBlock *younger, *older;
  int block_class;
};

struct ThreadLists {
  FreeBlock* head[kSmallClasses];
  uint16_t count[kSmallClasses];
  int64_t cached;           // bytes in these lists
  int64_t allocated;        // change of the bytes in use that the common counter does not know of yet
  int64_t lowest, highest;  // bounds of `allocated` before it is handed over; both 0 until the thread is known
  bool ended;               // the thread is on its way out: nothing more is kept
};

// Trivial, so that it outlives every destructor of the thread that may free a tensor.
constinit thread_local ThreadLists lists{};

size_t physical_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return size_t(1) << 46;
  return (size_t(info.totalram) + size_t(info.totalswap)) * info.mem_unit;
}

size_t cache_bound() {
  size_t bound = std::min<size_t>(physical_memory() / 8, size_t(1) << 30);
  if (const char* text = std::getenv("SINTER_CPU_CACHE_MB")) {
    char* end = nullptr;
    long long megabytes = std::strtoll(text, &end, 10);
    if (end != text && *end == 0 && megabytes >= 0 && megabytes < (1ll << 30))
      bound = size_t(megabytes) << 20;
    else
      warn("SINTER_CPU_CACHE_MB is '{}', not a number of megabytes; ignored", text);
  }
  return bound;
}

void* system_allocate(size_t bytes) {
  if (!kCaching || bytes < kMapped) {
    void* data = nullptr;
    return posix_memalign(&data, kAlignment, bytes) == 0 ? data : nullptr;
  }
  void* map = mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  auto start = uintptr_t(map), aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > start) munmap(map, aligned - start);
  if (size_t tail = start + kHugePage - aligned) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  void* data = reinterpret_cast<void*>(aligned);
  madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

void system_free(void* data, size_t bytes) noexcept {
  if (!kCaching || bytes < kMapped)
    std::free(data);
  else
    munmap(data, bytes);
}

class CpuAllocator;
CpuAllocator& allocator();

class CpuAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    if (bytes <= kSmall && kCaching) {
      int c = class_of(bytes);
      ThreadLists& mine = lists;
      if (FreeBlock* block = mine.head[c]) {
        mine.head[c] = block->next;
        --mine.count[c];
        mine.cached -= int64_t(class_bytes(c));
        count(mine, int64_t(class_bytes(c)));
        return block;
      }
    }
    return allocate_slow(bytes);
  }

  void release(void* data, size_t bytes) noexcept override {
    if (bytes == 0) return;
    if (bytes > kSmall || !kCaching) return release_slow(data, bytes);
    int c = class_of(bytes);
    auto size = int64_t(class_bytes(c));
    ThreadLists& mine = lists;
    count(mine, -size);
    if (mine.ended || mine.count[c] >= kListLimits[c]) return std::free(data);
    auto* block = static_cast<FreeBlock*>(data);
    block->next = mine.head[c];
    mine.head[c] = block;
    ++mine.count[c];
    mine.cached += size;
  }

  CpuMemoryStats stats() {
    hand_over();
    std::lock_guard lock(mutex_);
    return {allocated_.load(), int64_t(cached_.load()) + lists.cached, peak_.load()};
  }

  void reset_peak() {
    hand_over();
    peak_ = allocated_.load();
  }

  void empty_cache() {
    flush_lists();
    std::lock_guard lock(mutex_);
    evict_to(0);
  }

  void set_limit(size_t bytes) { limit_ = std::min(bytes ? bytes : physical_, size_t(1) << 62); }

  void end_thread() {
    lists.ended = true;
    lists.lowest = lists.highest = 0;
    flush_lists();
    hand_over();
  }

 private:
  // What is really taken from the system for a request. Blocks too large for the cache are not rounded to classes.
  size_t rounded(size_t bytes) const {
    if (!kCaching) return bytes;
    if (bytes <= bound_ || bytes <= kSmall) return class_bytes(class_of(bytes));
    return (bytes + kHugePage - 1) / kHugePage * kHugePage;
  }

  [[gnu::noinline]] void* allocate_slow(size_t bytes) {
    // Compared first, so that the roundings below cannot overflow.
    if (bytes > limit_) out_of_memory(bytes);
    size_t size = rounded(bytes);
    if (beyond_limit(size)) {
      hand_over();
      if (beyond_limit(size)) out_of_memory(bytes);
    }
    if (kCaching && size > kSmall && size <= bound_) {
      std::lock_guard lock(mutex_);
      if (CachedBlock* block = heads_[class_of(size)]) {
        unlink(block);
        count_now(int64_t(size));
        return block;
      }
    }
    if (beyond_limit(size + cached_.load(std::memory_order_relaxed))) empty_cache();
    void* data = system_allocate(size);
    if (!data) {
      empty_cache();
      data = system_allocate(size);
    }
    if (!data) out_of_memory(bytes);
    if (size > kSmall)
      count_now(int64_t(size));
    else
      count(lists, int64_t(size));
    return data;
  }

  [[gnu::noinline]] void release_slow(void* data, size_t bytes) noexcept {
    size_t size = rounded(bytes);
    count_now(-int64_t(size));
    if (!kCaching || size > bound_) return system_free(data, size);
    std::lock_guard lock(mutex_);
    evict_to(bound_ - size);
    auto* block = static_cast<CachedBlock*>(data);
    int c = class_of(size);
    *block = {heads_[c], nullptr, nullptr, youngest_, c};
    if (block->next) block->next->previous = block;
    heads_[c] = block;
    if (youngest_) youngest_->younger = block;
    youngest_ = block;
    if (!oldest_) oldest_ = block;
    cached_ += size;
  }

  void unlink(CachedBlock* block) noexcept {
    (block->previous ? block->previous->next : heads_[block->block_class]) = block->next;
    if (block->next) block->next->previous = block->previous;
    (block->younger ? block->younger->older : youngest_) = block->older;
    (block->older ? block->older->younger : oldest_) = block->younger;
    cached_ -= class_bytes(block->block_class);
  }

  void evict_to(size_t bytes) noexcept {
    while (cached_ > bytes) {
      CachedBlock* block = oldest_;
      unlink(block);
      system_free(block, class_bytes(block->block_class));
    }
  }

  void flush_lists() noexcept {
    for (int c = 0; c < kSmallClasses; ++c) {
      while (FreeBlock* block = lists.head[c]) {
        lists.head[c] = block->next;
        std::free(block);
      }
      lists.count[c] = 0;
    }
    lists.cached = 0;
  }

  bool beyond_limit(size_t size) const {
    return allocated_.load(std::memory_order_relaxed) + int64_t(size) > int64_t(limit_.load(std::memory_order_relaxed));
  }

  void count(ThreadLists& mine, int64_t change) noexcept {
    mine.allocated += change;
    if (mine.allocated < mine.lowest || mine.allocated > mine.highest) [[unlikely]]
      count_slow();
  }

  [[gnu::noinline]] void count_slow() noexcept {
    join_thread();
    if (lists.allocated < lists.lowest || lists.allocated > lists.highest) hand_over();
  }

  void hand_over() noexcept {
    count_now(lists.allocated);
    lists.allocated = 0;
  }

  void count_now(int64_t change) noexcept {
    int64_t now = allocated_.fetch_add(change, std::memory_order_relaxed) + change;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
  }

  // On a thread's first use: lets it hold back counts, and makes its end flush them and its lists.
  static void join_thread() noexcept {
    struct AtExit {
      ~AtExit() { allocator().end_thread(); }
    };
    if (lists.ended || lists.highest) return;
    static thread_local AtExit at_exit;
    lists.lowest = -kCountSlack;
    lists.highest = kCountSlack;
  }

  [[noreturn]] void out_of_memory(size_t bytes) {
    auto message = format("out of memory: {} bytes asked for on cpu, {} bytes in use, limit {} bytes", bytes,
                          stats().allocated, limit_.load());
    if (auto* where = UserPosition::current())
      throw OutOfMemoryError(std::string(UserPosition::function()) + ": " + message, *where);
    throw OutOfMemoryError(message);
  }

  const size_t physical_ = physical_memory();
  const size_t bound_ = kCaching ? cache_bound() : 0;
  std::atomic<size_t> limit_{physical_};
  std::atomic<int64_t> allocated_{0}, peak_{0};

  std::mutex mutex_;  // guards all below
  CachedBlock* heads_[kClasses] = {};
  CachedBlock *youngest_ = nullptr, *oldest_ = nullptr;
  std::atomic<size_t> cached_{0};  // read without the lock
};

// Never destroyed: tensors of static storage may be freed after everything else.
CpuAllocator& allocator() {
  static CpuAllocator& instance = *new CpuAllocator;
  return instance;
}

}  // namespace

Allocator& cpu_allocator() { return allocator(); }
CpuMemoryStats cpu_memory_stats() { return allocator().stats(); }
void reset_cpu_memory_peak() { allocator().reset_peak(); }
void empty_cpu_cache() { allocator().empty_cache(); }
void set_cpu_memory_limit(size_t bytes) { allocator().set_limit(bytes); }

}  // namespace sinter
