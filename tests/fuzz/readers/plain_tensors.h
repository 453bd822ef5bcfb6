#pragma once
// What other folders define for tensors: plain memory serves here, and nothing computes. For the one source of a fuzzer.
#include <cstdlib>
#include <cstring>

#include "sinter/tensor/buffer.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

Allocator& allocator_for(Device) {
  struct Plain : Allocator {
    void* allocate(size_t bytes) override { return std::aligned_alloc(64, (bytes + 64) / 64 * 64); }
    void release(void* data, size_t) noexcept override { std::free(data); }
  };
  static Plain plain;
  return plain;
}

void copy_bytes(void* to, Device, const void* from, Device, size_t bytes, bool) { std::memcpy(to, from, bytes); }

Tensor Tensor::to(DType, Where) const { std::abort(); }
Tensor Tensor::to(const TensorOptions&, bool, bool, Where) const { std::abort(); }
Tensor Tensor::contiguous(MemoryFormat, Where) const { std::abort(); }
Tensor Tensor::reshape(const Shape&, Where) const { std::abort(); }
Tensor Tensor::view_as_real(Where) const { std::abort(); }
Tensor Tensor::operator[](const ItemIndex&) const { std::abort(); }
const Tensor& Tensor::requires_grad_(bool, Where) const { std::abort(); }

}  // namespace sinter
