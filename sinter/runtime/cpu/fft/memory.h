#pragma once
// Scratch memory of a task, from the tensors' allocator: large blocks are kept for reuse there, within its bounds.
#include <cstdint>

#include "sinter/runtime/cpu/memory.h"

namespace sinter::runtime::fft_detail {

template <class T>
class Memory {
 public:
  explicit Memory(int64_t numbers)
      : bytes_(size_t(numbers) * sizeof(T)), data_(static_cast<T*>(cpu_allocator().allocate(bytes_))) {}
  ~Memory() { cpu_allocator().release(data_, bytes_); }
  Memory(const Memory&) = delete;
  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

}  // namespace sinter::runtime::fft_detail
