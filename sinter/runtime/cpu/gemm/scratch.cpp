#include "sinter/runtime/cpu/gemm/scratch.h"

#include <algorithm>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "sinter/base/error.h"

namespace sinter::runtime::gemm_detail {

void* allocate_aligned(int64_t bytes) {
  constexpr int64_t kHuge = 2 << 20;
  const int64_t alignment = bytes >= kHuge ? kHuge : 64;
  const int64_t size = (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(size_t(alignment), size_t(size));
  if (!data) throw OutOfMemoryError(format("matmul: no memory for {} bytes of packed operands", bytes));
#if defined(__linux__)
  if (alignment == kHuge) madvise(data, size_t(size), MADV_HUGEPAGE);
#endif
  return data;
}

Scratch::~Scratch() { std::free(data_); }

void* Scratch::reserve(int64_t bytes) {
  if (bytes > size_) {
    std::free(data_);
    data_ = nullptr;
    size_ = 0;
    data_ = allocate_aligned(bytes);
    size_ = bytes;
  }
  return data_;
}

GemmScratch& thread_scratch() {
  thread_local GemmScratch scratch;
  return scratch;
}

}  // namespace sinter::runtime::gemm_detail
