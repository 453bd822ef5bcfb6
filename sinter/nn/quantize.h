#pragma once
// Linear layers whose weights are stored in eight or four bits.
//
//   nn::quantize_(*net, {.encoding = Encoding::kUInt4, .filter = [](auto& name) { return name != "head"; }});
#include <array>
#include <functional>
#include <string>

#include "sinter/base/api.h"
#include "sinter/nn/linear.h"
#include "sinter/ops/quantized.h"

namespace sinter SINTER_API {
namespace nn {

// A weight [out, in] as codes: what dequantize() takes. Zero, table and offset may be undefined as there. Where columns lie in
// another order than the inputs do, `order` [in] says which input each of them is for.
struct QuantizedWeight {
  Tensor codes, scale, zero, table;
  Encoding encoding = Encoding::kInt8;
  int64_t group_size = 0, block_rows = 1;
  int64_t columns = 0;  // in
  Tensor offset = {}, order = {};

  Tensor dequantize(DType dtype) const;
  // The same with columns as they lie.
  Tensor dequantize_as_stored(DType dtype) const;
  // Beside these, what they are called in a state.
  std::array<Tensor*, 6> tensors() { return {&codes, &scale, &zero, &table, &offset, &order}; }
  static constexpr std::array kNames = {"codes", "scale", "zero", "table", "offset", "order"};
};

struct QuantizeOptions {
  // kInt8: one scale a row, no zeros. kUInt4: a scale and a whole zero a group. kTable8: one scale a row, numbers of E4M3.
  Encoding encoding = Encoding::kInt8;
  // Of kUInt4, a multiple of 8; 0: 128, or 32 where a row is shorter than 1024.
  int64_t group_size = 0;
  // Which layers, by the names that named_modules() has; none: all.
  std::function<bool(const std::string& name)> filter = {};
};

// The 256 numbers of E4M3, f32: a table for kTable8.
Tensor e4m3_table();
// A matrix of weights in fewer bits: scales and zeros are searched for which the squared error is least. On the matrix's device;
// scales are of its dtype.
QuantizedWeight quantize(const Tensor& weight, const QuantizeOptions& options = {});
// The layer's weight from now on: in place of `weight`, buffers "codes", "scale" and so on. The weight it had is let go.
void set_quantized(LinearImpl& layer, const QuantizedWeight& weight);
// The Linear layers of a module, itself included, that are not quantised yet: one after the other, so that no more than one is in
// memory twice. Gives their number. What else reads a layer's weight (a tied embedding) keeps it.
int64_t quantize_(Module& module, const QuantizeOptions& options = {});

}  // namespace nn
}  // namespace sinter
