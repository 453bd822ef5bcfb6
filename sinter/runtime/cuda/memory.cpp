#include "sinter/runtime/cuda/memory.h"

#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sinter/base/table.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

namespace {

constexpr size_t kGrain = 512;      // blocks are multiples of it
constexpr size_t kSmall = 1 << 20;  // blocks up to here come from segments of kSmallSegment
constexpr size_t kSmallSegment = 2 << 20;
constexpr size_t kLargeSegment = 20 << 20;    // shared by blocks below half of it
constexpr size_t kLargest = size_t(1) << 48;  // beyond any device; keeps roundings from overflowing
constexpr size_t kListed = 10;                // holders in a message

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

std::string size_text(size_t bytes) {
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fixed(value, unit ? 1 : 0) + " " + kUnits[unit];
}

// A piece of a segment; `left` and `right` are its neighbours there.
struct Block {
  char* data = nullptr;
  size_t size = 0;
  CudaStream stream = nullptr;
  Block *left = nullptr, *right = nullptr;
  bool used = false, small = false;
  bool held = false, left_by_owner = false;  // by a graph, whose launches use it; whether nobody else does
  // Who asked for it, when known.
  const char* function = nullptr;
  std::source_location where{};
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return std::tuple(a->stream, a->size, a->data) < std::tuple(b->stream, b->size, b->data);
  }
};

class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(int device) : device_(device) {}

  void* allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    // A graph is launched on the device's own stream, behind everything that used the memory before.
    const bool captured = is_capturing_cuda_graph();
    CudaStream stream = captured ? cuda_device(device_).stream : cuda_stream(device_);
    std::unique_lock lock(mutex_);
    ++stats_.allocations;
    if (bytes > kLargest) out_of_memory(bytes);
    size_t size = round_up(bytes, kGrain);
    bool small = size <= kSmall;
    Block key;
    key.stream = stream;
    key.size = size;
    auto& pool = free_[small];
    auto found = pool.lower_bound(&key);
    Block* block = nullptr;
    if (found != pool.end() && (*found)->stream == stream) {
      block = *found;
      pool.erase(found);
    } else {
      block = new_segment(size, small, stream);
      if (!block) out_of_memory(bytes);
    }
    split(block, size);
    block->used = true;
    if ((block->held = captured)) hold_for_graph(block->data);
    block->function = nullptr;
    if (auto* where = UserPosition::current()) {
      block->function = UserPosition::function();
      block->where = *where;
    }
    live_.emplace(block->data, block);
    stats_.allocated += int64_t(block->size);
    stats_.peak = std::max(stats_.peak, stats_.allocated);
    return block->data;
  }

  // Makes no call of the driver, which may be gone when the process ends.
  void release(void* data, size_t) noexcept override {
    if (!data) return;
    std::lock_guard lock(mutex_);
    auto found = live_.find(data);
    if (found == live_.end()) return;
    Block* block = found->second;
    block->left_by_owner = true;
    if (block->held) return;
    live_.erase(found);
    block->used = block->left_by_owner = false;
    stats_.allocated -= int64_t(block->size);
    if (Block* left = block->left; left && !left->used) {
      free_[left->small].erase(left);
      block = merge(left, block);
    }
    if (Block* right = block->right; right && !right->used) {
      free_[right->small].erase(right);
      block = merge(block, right);
    }
    free_[block->small].insert(block);
  }

  // The graph that a block was taken for is gone.
  void let_go(void* data) noexcept {
    {
      std::lock_guard lock(mutex_);
      auto found = live_.find(data);
      if (found == live_.end()) return;
      found->second->held = false;
      if (!found->second->left_by_owner) return;
    }
    release(data, 0);
  }

  CudaMemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.allocated;
  }

  void empty_cache() {
    check_not_capturing("giving memory back");
    std::lock_guard lock(mutex_);
    free_segments();
  }

  void set_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes ? std::min(bytes, kLargest) : kLargest;
  }

 private:
  static size_t segment_bytes(size_t size, bool small) {
    if (small) return kSmallSegment;
    return size < kLargeSegment / 2 ? kLargeSegment : round_up(size, kSmallSegment);
  }

  // Null when the device or the limit has no room for it, even with the cache emptied.
  Block* new_segment(size_t size, bool small, CudaStream stream) {
    size_t usual = segment_bytes(size, small), least = round_up(size, kSmallSegment);
    void* data = driver_allocate(usual);
    if (!data && free_segments()) data = driver_allocate(usual);
    if (!data && least < usual) data = driver_allocate(usual = least);
    if (!data) return nullptr;
    auto* block = new Block;
    block->data = static_cast<char*>(data);
    block->size = usual;
    block->stream = stream;
    block->small = small;
    return block;
  }

  void* driver_allocate(size_t bytes) {
    if (size_t(stats_.reserved) + bytes > limit_) return nullptr;
    CudaDeviceGuard guard(device_);
    RelaxedCapture relaxed;
    CUdeviceptr data = 0;
    ++stats_.driver_calls;
    CUresult result = driver().cuMemAlloc(&data, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    check_driver(result, "taking memory on the device");
    stats_.reserved += int64_t(bytes);
    return reinterpret_cast<void*>(data);
  }

  // Gives back what nobody uses; whether there was anything. The driver waits for the device's work before it frees.
  bool free_segments() {
    bool any = false;
    CudaDeviceGuard guard(device_);
    for (auto& pool : free_)
      for (auto it = pool.begin(); it != pool.end();) {
        Block* block = *it;
        if (block->left || block->right) {
          ++it;
          continue;
        }
        it = pool.erase(it);
        check_driver(driver().cuMemFree(reinterpret_cast<CUdeviceptr>(block->data)),
                     "giving memory back to the device");
        stats_.reserved -= int64_t(block->size);
        delete block;
        any = true;
      }
    return any;
  }

  // Cuts what is left over behind the first `size` bytes off, unless it is too little to be worth it.
  void split(Block* block, size_t size) {
    size_t rest = block->size - size;
    if (rest < (block->small ? kGrain : kSmall + kGrain)) return;
    auto* tail = new Block(*block);
    tail->data = block->data + size;
    tail->size = rest;
    tail->left = block;
    if (tail->right) tail->right->left = tail;
    block->right = tail;
    block->size = size;
    free_[tail->small].insert(tail);
  }

  static Block* merge(Block* left, Block* right) noexcept {
    left->size += right->size;
    left->right = right->right;
    if (left->right) left->right->left = left;
    delete right;
    return left;
  }

  // The largest blocks in use, one line for each place that took them.
  std::string holders() const {
    std::vector<const Block*> blocks;
    for (auto& [data, block] : live_) blocks.push_back(block);
    size_t count = std::min(kListed, blocks.size());
    std::partial_sort(blocks.begin(), blocks.begin() + count, blocks.end(),
                      [](auto* a, auto* b) { return a->size > b->size; });
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      text += "\n  " + size_text(blocks[i]->size);
      if (blocks[i]->function) text += format(" by {} at {}", blocks[i]->function, to_string(blocks[i]->where));
    }
    return text;
  }

  [[noreturn]] void out_of_memory(size_t bytes) {
    auto size = [](int64_t n) { return size_text(size_t(n)); };
    std::string message =
        format("out of memory: {} asked for on cuda:{}; {} in use by tensors, {} taken from the driver",
               size_text(bytes), device_, size(stats_.allocated), size(stats_.reserved));
    if (limit_ != kLargest) message += format(", limit {}", size_text(limit_));
    size_t free = 0, total = 0;
    CudaDeviceGuard guard(device_);
    if (driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS)
      message += format(", {} of the device's {} free", size_text(free), size_text(total));
    if (!live_.empty()) message += format(". The largest of {} blocks in use:{}", live_.size(), holders());
    if (auto* where = UserPosition::current())
      throw OutOfMemoryError(std::string(UserPosition::function()) + ": " + message, *where);
    throw OutOfMemoryError(message);
  }

  const int device_;
  std::mutex mutex_;  // guards all below
  size_t limit_ = kLargest;
  std::set<Block*, BySize> free_[2];  // large, small
  std::unordered_map<void*, Block*> live_;
  CudaMemoryStats stats_;
};

CudaAllocator& allocator(int device) {
  // Never destroyed: tensors of static storage may be freed after everything else.
  static auto& all = *new std::array<std::unique_ptr<CudaAllocator>, 64>;
  static auto& flags = *new std::array<std::once_flag, 64>;
  int index = cuda_device(device).index;
  std::call_once(flags[index], [&] { all[index] = std::make_unique<CudaAllocator>(index); });
  return *all[index];
}

}  // namespace

void let_go_of_graph_memory(int device, void* data) noexcept { allocator(device).let_go(data); }

Allocator& cuda_allocator(int device) { return allocator(device); }
CudaMemoryStats cuda_memory_stats(int device) { return allocator(device).stats(); }
void reset_cuda_memory_peak(int device) { allocator(device).reset_peak(); }
void empty_cuda_cache(int device) { allocator(device).empty_cache(); }
void set_cuda_memory_limit(int device, size_t bytes) { allocator(device).set_limit(bytes); }

}  // namespace sinter::runtime
#endif
