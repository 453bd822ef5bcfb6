#pragma once
// Operands of a kernel under test in memory of the GPU.
#include <cmath>
#include <cstring>
#include <vector>

#include "sinter/runtime/cuda/memory.h"
#include "sinter/tensor/device.h"
#include "sinter/tensor/dtype.h"

namespace sinter::codegen {

// Elements in memory of the GPU.
class OnGpu {
 public:
  OnGpu(DType dtype, const std::vector<float>& values) : dtype_(dtype), count_(values.size()) {
    std::vector<char> bytes(size());
    for (size_t i = 0; i < count_; ++i) {
      uint16_t half = dtype == kBFloat16 ? float_to_bfloat16(values[i]) : float_to_float16(values[i]);
      if (dtype == kFloat32)
        std::memcpy(&bytes[i * 4], &values[i], 4);
      else
        std::memcpy(&bytes[i * 2], &half, 2);
    }
    data_ = runtime::cuda_allocator(0).allocate(size());
    runtime::cuda_copy(data_, cuda(), bytes.data(), cpu(), size());
  }
  OnGpu(const OnGpu&) = delete;
  ~OnGpu() { runtime::cuda_allocator(0).release(data_, size()); }
  int64_t address() const { return int64_t(data_); }
  std::vector<float> values() const {
    std::vector<char> bytes(size());
    runtime::cuda_copy(bytes.data(), cpu(), data_, cuda(), size());
    std::vector<float> out(count_);
    for (size_t i = 0; i < count_; ++i) {
      uint16_t half;
      std::memcpy(&half, &bytes[i * size_t(item_size(dtype_))], 2);
      if (dtype_ == kFloat32)
        std::memcpy(&out[i], &bytes[i * 4], 4);
      else
        out[i] = dtype_ == kBFloat16 ? bfloat16_to_float(half) : float16_to_float(half);
    }
    return out;
  }

 private:
  size_t size() const { return count_ * size_t(item_size(dtype_)); }
  DType dtype_;
  size_t count_;
  void* data_;
};

// The norm of what differs from the wanted values, by theirs.
inline double relative_error(const std::vector<float>& got, auto&& wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    double want = wanted(i);
    difference += (got[i] - want) * (got[i] - want);
    norm += want * want;
  }
  return std::sqrt(difference / norm);
}

inline std::vector<float> numbers(int64_t count, double shift, double scale) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = float(scale * std::sin(double(i) * 0.7 + shift + double(i % 13)));
  return out;
}

}  // namespace sinter::codegen
