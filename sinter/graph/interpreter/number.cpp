#include "sinter/graph/interpreter/number.h"

namespace sinter::interpreter {

int64_t truncate(double value) { return value >= -0x1p63 && value < 0x1p63 ? int64_t(value) : INT64_MIN; }

int64_t to_integer(DType dtype, double value) {
  if (dtype == kInt32 && !(value > -0x1p31 - 1 && value < 0x1p31)) return INT32_MIN;
  return wrap_integer(dtype, truncate(value));
}

int64_t wrap_integer(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kUInt8:
      return uint8_t(value);
    case DType::kInt8:
      return int8_t(value);
    case DType::kInt16:
      return int16_t(value);
    case DType::kInt32:
      return int32_t(value);
    default:
      return value;
  }
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::kFloat16:
      return double(float(Half(float(value))));
    case DType::kBFloat16:
      return double(float(BFloat16(float(value))));
    case DType::kFloat32:
      return double(float(value));
    default:
      return value;
  }
}

}  // namespace sinter::interpreter
