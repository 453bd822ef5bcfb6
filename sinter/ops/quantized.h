#pragma once
// Matrices of weights that are stored in fewer bits than they are computed with. No methods of Tensor.
#include <optional>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// What a code stands for, before it is multiplied by the scale of its group.
enum class Encoding : uint8_t {
  kInt8,    // i8: code - zero
  kUInt4,   // two of 0 to 15 in a byte, the first one in its low half: code - zero; without zeros code - 8
  kTable4,  // two in a byte as above: table[code], of 16 numbers (NF4, FP4, MXFP4)
  kTable8,  // u8: table[code], of 256 numbers (the floating-point types of eight bits)
};

struct DequantizeOptions {
  DequantizeOptions() = default;
  SINTER_OPTION(Encoding, encoding) = Encoding::kInt8;
  SINTER_OPTION(int64_t, group_size) = 0;      // columns that share a scale; 0: all of a row
  SINTER_OPTION(int64_t, block_rows) = 1;      // rows that do
  SINTER_OPTION(int64_t, columns) = 0;         // of the result; 0: as many as there are codes
  SINTER_OPTION(std::optional<DType>, dtype);  // of the result: that of the scale
  SINTER_OPTION(Tensor, table);
  SINTER_OPTION(Tensor, offset);  // in place of zeros; codes of kUInt4 are then taken as they are
};

// The matrix [..., rows, columns] that codes stand for: (code - zero) * scale, or code * scale + offset. `scale` is [..., rows /
// block_rows, columns / group_size], both rounded up, and so are `zero`, of any real dtype, and `offset`. linear() with such a weight reads the codes themselves when it is
// compiled and its device can.
Tensor dequantize(const TensorArg& codes, const Tensor& scale, const Tensor& zero = {},
                  const DequantizeOptions& options = {});

}  // namespace sinter
