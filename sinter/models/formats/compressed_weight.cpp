#include "sinter/models/formats/compressed_weight.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dequantize.h"
#include "sinter/ops/pointwise.h"

namespace sinter::models {

namespace {

constexpr int64_t kInWord = 8;  // codes of four bits

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of bytes as rows of whole words.
Tensor words_of_rows(const Tensor& codes) {
  const int64_t rows = codes.size(0), bytes = codes.size(1), words = ceil_div(bytes, 4);
  Tensor out = zeros({rows, words}, kInt32);
  for (int64_t n = 0; n < rows; ++n)
    std::memcpy(out.data_ptr<int32_t>() + n * words, codes.data_ptr<uint8_t>() + n * bytes, size_t(bytes));
  return out;
}

// Zeros [out, groups] as words along the outputs.
Tensor packed_zeros(const Tensor& zero) {
  const int64_t rows = zero.size(0), groups = zero.size(1), words = ceil_div(rows, kInWord);
  std::vector<uint32_t> packed(size_t(words * groups));
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t g = 0; g < groups; ++g)
      packed[size_t(n / kInWord * groups + g)] |= uint32_t(zero.data_ptr<uint8_t>()[n * groups + g] & 15)
                                                  << (n % kInWord * 4);
  Tensor out = empty({words, groups}, kInt32);
  std::memcpy(out.data_ptr(), packed.data(), packed.size() * sizeof(uint32_t));
  return out;
}

}  // namespace

CompressedWeight compressed_weight(const std::string& layer, const nn::QuantizedWeight& given) {
  nn::QuantizedWeight weight = given;
  for (Tensor* tensor : weight.tensors())
    if (tensor->defined()) *tensor = tensor->cpu().contiguous();
  const bool integers = weight.encoding == Encoding::kInt8 || weight.encoding == Encoding::kUInt4;
  const bool floats = weight.encoding == Encoding::kTable8 &&
                      (weight.table == nn::e4m3_table()).logical_or(weight.table.isnan()).all().item<bool>();
  check(integers || floats, "models: the codes of '{}' are {}, which compressed-tensors has no format for", layer,
        field_text(weight.encoding));
  check(!weight.offset.defined() && !weight.order.defined() && (weight.block_rows == 1 || floats),
        "models: the codes of '{}' have offsets, or scales of blocks, or an order of their own, which "
        "compressed-tensors has no format for",
        layer);
  CompressedWeight made;
  const bool grouped = weight.group_size > 0;
  nlohmann::json arguments = {{"num_bits", weight.encoding == Encoding::kUInt4 ? 4 : 8},
                              {"type", floats ? "float" : "int"},
                              {"symmetric", !weight.zero.defined()},
                              {"strategy", weight.block_rows > 1 ? "block"
                                           : grouped             ? "group"
                                                                 : "channel"},
                              {"dynamic", false}};
  if (weight.block_rows > 1)
    arguments["block_structure"] = {weight.block_rows, grouped ? weight.group_size : weight.columns};
  else if (grouped)
    arguments["group_size"] = weight.group_size;
  made.parts["weight_scale"] = weight.scale;
  if (weight.encoding == Encoding::kUInt4) {
    made.format = "pack-quantized";
    made.parts["weight_packed"] = words_of_rows(weight.codes);
    made.parts["weight_shape"] = tensor(std::vector<int64_t>{weight.codes.size(0), weight.columns});
    if (weight.zero.defined()) {
      check(weight.zero.dtype() == kUInt8, "models: the zeros of '{}' are {}, not whole numbers", layer,
            weight.zero.dtype());
      made.parts["weight_zero_point"] = packed_zeros(weight.zero);
    }
  } else {
    made.format = floats ? "float-quantized" : "int-quantized";
    made.parts["weight"] = weight.codes;
    if (weight.zero.defined()) {
      check(weight.zero.dtype() == kInt8, "models: the zeros of '{}' are {}, not i8", layer, weight.zero.dtype());
      made.parts["weight_zero_point"] = weight.zero;
    }
  }
  made.arguments = arguments.dump();
  return made;
}

}  // namespace sinter::models
