#pragma once
// Type of a value: dtype, sizes (numbers or symbols), device.
#include "sinter/base/api.h"
#include "sinter/tensor/device.h"
#include "sinter/tensor/dtype.h"
#include "sinter/tensor/shape.h"

namespace sinter SINTER_API {

struct Type {
  DType dtype = kFloat32;
  Shape shape;
  Device device;
  bool weak = false;  // a plain number: its kind takes part in promotion, its width does not

  int64_t rank() const { return shape.rank(); }
  // Structural identity.
  bool operator==(const Type& other) const {
    return dtype == other.dtype && shape.same_as(other.shape) && device == other.device && weak == other.weak;
  }
};

// "f32[2, s0]", "bf16[4]@cuda:0", "weak f64[]".
std::string to_string(const Type& type);
Type parse_type(std::string_view text);

// PyTorch's promotion over operands: sized tensors outrank 0-d ones, which outrank plain numbers, within a category.
DType promote_operands(std::span<const Type> operands);

}  // namespace sinter
