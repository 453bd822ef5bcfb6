#include "sinter/ops/dequantize.h"

#include "sinter/ops/contract.h"
#include "sinter/ops/define.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/registry.h"

namespace sinter {

namespace {

Dim rounded_up(const Dim& size, int64_t divisor) { return (size + (divisor - 1)) / divisor; }

struct Dequantize : Loop {
  static constexpr auto name = "dequantize";
  static constexpr int inputs = -1;
  using Attributes = DequantizeAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<DequantizeAttrs>();
    const size_t operands = size_t(2 + a.has_zero + a.has_offset + a.has_table());
    check(call.inputs.size() == operands, "dequantize: {} takes {} operands{}, not {}", field_text(a.encoding),
          operands, a.has_table() ? " with its table" : "", call.inputs.size());
    const Type &codes = call.inputs[0], &scale = call.inputs[1];
    const DType stored = a.encoding == Encoding::kInt8 ? kInt8 : kUInt8;
    check(codes.dtype == stored, "dequantize: codes of {} are {}, not {}", field_text(a.encoding), stored, codes.dtype);
    check(codes.rank() >= 2, "dequantize: codes are a matrix, not of shape {}", codes.shape);
    check(is_floating(scale.dtype) && is_floating(a.dtype),
          "dequantize: from a scale of {} to {}: both are floating-point types", scale.dtype, a.dtype);
    check(a.group_size >= 0 && a.block_rows >= 1, "dequantize: groups of {} columns, blocks of {} rows", a.group_size,
          a.block_rows);
    Shape result = codes.shape;
    if (codes_in_byte(a.encoding) == 2) result.back() = result.back() * 2;
    if (!a.columns.same_as(0)) {
      const Dim bytes = rounded_up(a.columns, codes_in_byte(a.encoding));
      check(possibly_equal({bytes}, {codes.shape.back()}), "dequantize: codes {} of {} are no matrix of {} columns",
            codes.shape, field_text(a.encoding), a.columns);
      result.back() = a.columns;
    }
    Shape groups = result;
    groups[groups.size() - 2] = rounded_up(groups[groups.size() - 2], a.block_rows);
    groups.back() = a.group_size ? rounded_up(groups.back(), a.group_size) : Dim(1);
    check(possibly_equal(scale.shape, groups),
          "dequantize: a scale of {} for a matrix of {}: {} rows by {} columns share one, so it is {}", scale.shape,
          result, a.block_rows, a.group_size ? std::to_string(a.group_size) : "all", groups);
    if (a.has_zero || a.has_offset) {
      const char* what = a.has_zero ? "zeros" : "offsets";
      check(!a.has_table(), "dequantize: {} has no {}", field_text(a.encoding), what);
      check(!(a.has_zero && a.has_offset), "dequantize: zeros and offsets; one of both says where codes begin");
      check(possibly_equal(call.shape(2), groups), "dequantize: {} of {} beside a scale of {}", what, call.shape(2),
            scale.shape);
      check(a.has_zero || is_floating(call.inputs[2].dtype), "dequantize: offsets are floating-point numbers, not {}",
            call.inputs[2].dtype);
    }
    if (a.has_table()) {
      const Dim entries = a.encoding == Encoding::kTable4 ? 16 : 256;
      const Type& table = call.inputs.back();
      check(possibly_equal(table.shape, {entries}) && is_floating(table.dtype),
            "dequantize: the table of {} is {} floating-point numbers, not {} of {}", field_text(a.encoding), entries,
            table.shape, table.dtype);
    }
    for (auto& operand : call.inputs)
      check(operand.device == codes.device, "dequantize: tensors are on {} and {}", codes.device, operand.device);
    return {Type{a.dtype, result, codes.device}};
  }

  static Elem element(ElementBuilder& b) {
    auto& a = b.call.as<DequantizeAttrs>();
    auto& ops = known_ops();
    const DType dtype = wide_dtype(a.dtype);
    const Dim &row = b.i[b.i.size() - 2], &column = b.i.back();
    Index code = b.i, group = b.i;
    code.back() = column / codes_in_byte(a.encoding);
    group[group.size() - 2] = row / a.block_rows;
    group.back() = a.group_size ? column / a.group_size : Dim(0);
    Elem value;
    if (a.has_table()) {
      const int table = int(b.call.inputs.size()) - 1;
      const Dim entry = b.load_index(0, code, 256);
      value = a.encoding == Encoding::kTable8 ? b.load(table, {entry})
                                              : b.select({Condition{.value = column, .multiple = 2}},
                                                         b.load(table, {entry % 16}), b.load(table, {entry / 16}));
    } else if (a.encoding == Encoding::kUInt4) {
      const Elem byte = b.load(0, code), low = b.apply(ops.bitwise_and, kInt32, {byte, b.constant(15)});
      // Exact, as all of it.
      const Elem high = b.apply(ops.mul, kFloat32, {b.apply(ops.sub, kFloat32, {byte, low}), b.constant(0.0625)});
      value = b.select({Condition{.value = column, .multiple = 2}}, low, high);
    } else {
      value = b.load(0, code);
    }
    if (a.has_offset) {
      const Elem scaled = b.apply(ops.mul, dtype, {value, b.load(1, group)});
      return b.apply(ops.add, dtype, {scaled, b.load(2, group)});
    }
    if (a.has_zero)
      value = b.apply(ops.sub, dtype, {value, b.load(2, group)});
    else if (a.encoding == Encoding::kUInt4)
      value = b.apply(ops.sub, dtype, {value, b.constant(8.0)});
    return b.apply(ops.mul, dtype, {value, b.load(1, group)});
  }

  // With offsets the product is rounded before they are added, as the libraries that make such codes do it.
  static constexpr Tolerance tolerance{.absolute = 2e-6};
  static constexpr NotDifferentiable grad{
      "codes are no numbers that could be a little larger; train a layer before it is quantised, "
      "or an adapter beside it"};
  SINTER_SAMPLES(
      "i8[3, 20], x[3, 1] | dtype=f32", "i8[5, 33], x[5, 5] | group_size=8, dtype=bf16",
      "i8[4, 9], x[2, 3], i8[2, 3] | group_size=4, block_rows=2, dtype=f16, has_zero=true",
      "u8[3, 40], x[3, 5] | encoding=uint4, group_size=16, dtype=f32",
      "u8[2, 9], x[2, 2], u8[2, 2]<16 | encoding=uint4, group_size=16, columns=17, dtype=bf16, has_zero=true",
      "u8[2, 3, 16], x[2, 3, 1], f32[2, 3, 1] | encoding=uint4, dtype=f32, has_zero=true",
      "u8[3, 9], x[3, 3], f32[16] | encoding=table4, group_size=8, columns=17, dtype=f32",
      "u8[4, 20], x[2, 2], f32[256] | encoding=table8, group_size=10, block_rows=2, dtype=bf16",
      "i8[4, 9], x[4, 3], x[4, 3] | group_size=4, dtype=f32, has_offset=true",
      "u8[3, 16], f32[3, 2], f32[3, 2] | encoding=uint4, group_size=16, dtype=bf16, has_offset=true",
      "i8[0, 7], x[0, 1] | dtype=f32")

 private:
  static bool possibly_equal(const Shape& a, const Shape& b) {
    if (a.size() != b.size()) return false;
    for (size_t d = 0; d < a.size(); ++d)
      if (a[d].is_number() && b[d].is_number() && a[d].number() != b[d].number()) return false;
    return true;
  }
};

constexpr std::pair<Encoding, std::string_view> kEncodings[] = {{Encoding::kInt8, "int8"},
                                                                {Encoding::kUInt4, "uint4"},
                                                                {Encoding::kTable4, "table4"},
                                                                {Encoding::kTable8, "table8"}};

}  // namespace

std::string field_text(Encoding encoding) {
  for (auto& [known, name] : kEncodings)
    if (known == encoding) return std::string(name);
  return {};
}

void parse_field(std::string_view text, Encoding& out) {
  std::string names;
  for (auto& [encoding, name] : kEncodings) {
    if (name == text) {
      out = encoding;
      return;
    }
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw_error(format("'{}' is no encoding of weights: there are {}", text, names));
}

const Op& dequantize_op() { return op_of<Dequantize>; }

Tensor dequantize(const TensorArg& codes, const Tensor& scale, const Tensor& zero, const DequantizeOptions& options) {
  UserPosition here(codes.where());
  tensor_operand("dequantize", codes);
  check(scale.defined(), "dequantize: the scale is not defined");
  DequantizeAttrs attrs{options.encoding(),
                        options.group_size(),
                        options.block_rows(),
                        options.columns(),
                        options.dtype().value_or(scale.dtype()),
                        zero.defined(),
                        options.offset().defined()};
  check(attrs.has_table() == options.table().defined(), "dequantize: {} {} a table", field_text(attrs.encoding),
        attrs.has_table() ? "needs" : "has no");
  std::vector<TensorArg> operands = {codes, scale};
  if (zero.defined()) operands.push_back(zero);
  if (options.offset().defined()) operands.push_back(options.offset());
  if (attrs.has_table()) operands.push_back(options.table());
  return call_op(op_of<Dequantize>, operands, attrs, codes.where());
}

OpFamily quantized_ops() {
  static const Op* const ops[] = {&op_of<Dequantize>};
  return ops;
}

}  // namespace sinter
