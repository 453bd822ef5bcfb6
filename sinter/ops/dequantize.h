#pragma once
// The op behind dequantize(), for those who read it in a graph, and its encodings by name.
#include <string>
#include <string_view>

#include "sinter/graph/op.h"
#include "sinter/ops/quantized.h"

namespace sinter {

// int8, uint4, table4, table8.
std::string field_text(Encoding encoding);
void parse_field(std::string_view text, Encoding& out);
// How many codes share a byte.
inline int64_t codes_in_byte(Encoding encoding) {
  return encoding == Encoding::kUInt4 || encoding == Encoding::kTable4 ? 2 : 1;
}

// Operands are the codes, the scale, then the zeros or the offsets where there are some, then the table of an encoding by one.
struct DequantizeAttrs {
  Encoding encoding = Encoding::kInt8;
  int64_t group_size = 0, block_rows = 1;
  Dim columns = 0;
  DType dtype = kFloat32;
  bool has_zero = false, has_offset = false;
  SINTER_FIELDS(encoding, group_size, block_rows, columns, dtype, has_zero, has_offset)

  bool has_table() const { return encoding == Encoding::kTable4 || encoding == Encoding::kTable8; }
};

const Op& dequantize_op();

}  // namespace sinter
