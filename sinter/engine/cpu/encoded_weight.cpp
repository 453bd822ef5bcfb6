#include "sinter/engine/cpu/encoded_weight.h"

#include "sinter/base/error.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/ops/dequantize.h"

namespace sinter {

namespace {

runtime::ZeroType zero_type(DType dtype) {
  switch (dtype) {
    case kUInt8:
      return runtime::ZeroType::u8;
    case kInt8:
      return runtime::ZeroType::i8;
    case kBFloat16:
      return runtime::ZeroType::bf16;
    case kFloat16:
      return runtime::ZeroType::f16;
    default:
      return runtime::ZeroType::f32;
  }
}

runtime::CodeKind code_kind(Encoding encoding) {
  switch (encoding) {
    case Encoding::kInt8:
      return runtime::CodeKind::kInt8;
    case Encoding::kUInt4:
      return runtime::CodeKind::kUInt4;
    case Encoding::kTable4:
      return runtime::CodeKind::kTable4;
    case Encoding::kTable8:
      return runtime::CodeKind::kTable8;
  }
  return runtime::CodeKind::kInt8;
}

}  // namespace

EncodedWeight::EncodedWeight(const ContractionParts::Part& part, std::span<const TensorImpl* const> inputs)
    : codes_(part.right), scale_(part.encoded->scale), zero_(part.encoded->zero), table_(part.encoded->table) {
  auto& attrs = part.encoded->node->attrs.as<DequantizeAttrs>();
  const IntList sizes = part.encoded->node->types[0].shape.numbers();
  const TensorImpl &codes = *inputs[size_t(codes_)], &scale = *inputs[size_t(scale_)];
  format_ = {code_kind(attrs.encoding), sizes[1], sizes[0], attrs.group_size, *eager::gemm_type(scale.dtype)};
  operand_.row_stride = codes.strides[0];
  operand_.col_stride = codes.strides[1];
  operand_.scale_row_stride = scale.strides[0];
  operand_.scale_col_stride = scale.strides[1];
  operand_.block_rows = attrs.block_rows;
  if (zero_ >= 0) {
    const TensorImpl& zero = *inputs[size_t(zero_)];
    format_.zero = zero_type(zero.dtype);
    format_.offset = attrs.has_offset;
    operand_.zero_row_stride = zero.strides[0];
    operand_.zero_col_stride = zero.strides[1];
  }
  if (table_ >= 0) {
    const TensorImpl& table = *inputs[size_t(table_)];
    operand_.table_stride = table.strides[0];
    operand_.table_type = *eager::gemm_type(table.dtype);
  }
}

void EncodedWeight::add_operands(std::vector<int>& slots) const {
  for (int slot : {codes_, scale_, zero_, table_})
    if (slot >= 0) slots.push_back(slot);
}

void EncodedWeight::pack(const StepArguments& arguments, void* to) const {
  runtime::EncodedOperand operand = operand_;
  operand.codes = arguments.address(codes_);
  operand.scale = arguments.address(scale_);
  if (zero_ >= 0) operand.zero = arguments.address(zero_);
  if (table_ >= 0) operand.table = arguments.address(table_);
  runtime::pack_encoded(format_, operand, to);
}

std::string EncodedWeight::text() const {
  const auto& o = operand_;
  return sinter::format(" {} {}x{} by {} {},{}{} {},{} {},{} {},{} rows {} table {},{}", int(format_.kind), format_.k,
                        format_.n, format_.group, int(format_.scale), int(format_.zero), format_.offset ? "+" : "", o.row_stride, o.col_stride,
                        o.scale_row_stride, o.scale_col_stride, o.zero_row_stride, o.zero_col_stride, o.block_rows,
                        o.table_stride, int(o.table_type));
}

}  // namespace sinter
