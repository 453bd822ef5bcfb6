#include "sinter/runtime/cuda/pinned.h"

#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <bit>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sinter/runtime/cuda/memory.h"

namespace sinter::runtime {

namespace {

constexpr size_t kLeast = 4096;
constexpr size_t kLargest = size_t(1) << 48;

struct PinnedBlock {
  char* data = nullptr;
  size_t size = 0;  // a power of two
  bool used = false;
  std::vector<std::unique_ptr<CudaEvent>> pending;  // copies that may still be under way

  bool idle() {
    std::erase_if(pending, [](auto& event) { return event->is_done(); });
    return pending.empty();
  }
};

class PinnedAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    check_not_capturing("taking page-locked memory");
    std::lock_guard lock(mutex_);
    if (bytes > kLargest) out_of_memory(bytes);
    size_t size = std::bit_ceil(std::max(bytes, kLeast));
    for (auto& [data, block] : blocks_)
      if (!block.used && block.size == size && block.idle()) {
        block.used = true;
        return block.data;
      }
    CudaDeviceGuard guard(0);
    void* data = driver_allocate(size);
    if (!data) {
      empty();
      data = driver_allocate(size);
    }
    if (!data) out_of_memory(bytes);
    PinnedBlock& block = blocks_[static_cast<char*>(data)];
    block.data = static_cast<char*>(data);
    block.size = size;
    block.used = true;
    return data;
  }

  void release(void* data, size_t) noexcept override {
    if (!data) return;
    std::lock_guard lock(mutex_);
    if (auto found = blocks_.find(static_cast<char*>(data)); found != blocks_.end()) found->second.used = false;
  }

  bool owns(const void* data) {
    std::lock_guard lock(mutex_);
    return find(data) != nullptr;
  }

  void note_use(const void* data, int device, CudaStream stream) {
    std::lock_guard lock(mutex_);
    PinnedBlock* block = find(data);
    if (!block) return;
    block->idle();
    auto event = std::make_unique<CudaEvent>(device, /*timed=*/false);
    event->record(stream);
    block->pending.push_back(std::move(event));
  }

 private:
  PinnedBlock* find(const void* data) {
    auto* address = static_cast<char*>(const_cast<void*>(data));
    auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) return nullptr;
    PinnedBlock& block = std::prev(after)->second;
    return address < block.data + block.size ? &block : nullptr;
  }

  static void* driver_allocate(size_t size) {
    void* data = nullptr;
    CUresult result = driver().cuMemHostAlloc(&data, size, CU_MEMHOSTALLOC_PORTABLE);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
    check_driver(result, "taking page-locked memory");
    return data;
  }

  void empty() {
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      PinnedBlock& block = it->second;
      bool freed = !block.used && block.idle() && driver().cuMemFreeHost(block.data) == CUDA_SUCCESS;
      it = freed ? blocks_.erase(it) : std::next(it);
    }
  }

  [[noreturn]] void out_of_memory(size_t bytes) {
    size_t used = 0;
    for (auto& [data, block] : blocks_) used += block.used ? block.size : 0;
    throw OutOfMemoryError(
        format("out of memory: {} bytes of page-locked host memory asked for, {} bytes in use", bytes, used));
  }

  std::mutex mutex_;
  std::map<char*, PinnedBlock> blocks_;
};

PinnedAllocator& allocator() {
  static auto& instance = *new PinnedAllocator;
  return instance;
}

}  // namespace

Allocator& pinned_allocator() {
  driver();
  return allocator();
}

bool is_pinned(const void* data) {
  if (allocator().owns(data)) return true;
  unsigned type = 0;  // of memory that the driver does not know it says "invalid value"
  CUresult result =
      driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(data));
  return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
}

void note_pinned_use(const void* data, int device, CudaStream stream) { allocator().note_use(data, device, stream); }

}  // namespace sinter::runtime
#endif
