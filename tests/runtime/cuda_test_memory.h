#pragma once
// What the tests of the GPU's libraries share: device memory with a copy's way in and out, and elements of any floating type.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

// Poisoned memory of device 0, or a copy of the host's.
struct OnDevice {
  void* data = nullptr;
  size_t bytes;
  explicit OnDevice(size_t size) : data(cuda_allocator(0).allocate(std::max<size_t>(size, 1))), bytes(size) {
    cuda_fill(data, 0, 0xa5, bytes);
  }
  template <class T>
  explicit OnDevice(const std::vector<T>& from) : OnDevice(from.size() * sizeof(T)) {
    cuda_copy(data, cuda(0), from.data(), cpu(), bytes);
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cuda_allocator(0).release(data, std::max<size_t>(bytes, 1)); }
  template <class T>
  std::vector<T> read() const {
    std::vector<T> out(bytes / sizeof(T));
    cuda_copy(out.data(), cpu(), data, cuda(0), bytes);
    cuda_synchronize(0);
    return out;
  }
  int64_t* ints() const { return static_cast<int64_t*>(data); }
};

// Numbers as bytes of elements of a floating type, and back.
inline std::vector<char> encode(const std::vector<double>& values, DType dtype) {
  return visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<char> bytes(values.size() * sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T element = T(float(values[i]));
      if constexpr (std::is_same_v<T, double>) element = values[i];
      std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
    return bytes;
  });
}
inline std::vector<double> decode(const std::vector<char>& bytes, DType dtype) {
  return visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<double> values(bytes.size() / sizeof(T));
    for (size_t i = 0; i < values.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = double(element);
    }
    return values;
  });
}

inline double tolerance(DType d) { return d == kFloat64 ? 1e-14 : d == kFloat32 ? 1e-6 : d == kFloat16 ? 1e-3 : 5e-3; }

}  // namespace sinter::runtime
