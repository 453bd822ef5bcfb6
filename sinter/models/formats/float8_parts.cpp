#include "sinter/models/formats/float8_parts.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/nn/quantize.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/float8.h"

namespace sinter::models {

namespace {

template <class F>
Tensor floats_of(const Tensor& codes, F&& one) {
  const Tensor from = codes.contiguous();
  Tensor out = empty(codes.sizes(), kFloat32);
  const auto* begin = from.data_ptr<uint8_t>();
  std::transform(begin, begin + from.numel().to_int(), out.data_ptr<float>(), one);
  return out;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Tensor e4m3_floats(const Tensor& codes) { return floats_of(codes, e4m3_to_float); }
Tensor e8m0_floats(const Tensor& codes) { return floats_of(codes, e8m0_to_float); }
Tensor e2m1_table() { return tensor(std::vector<float>(std::begin(kE2m1), std::end(kE2m1))); }

nn::QuantizedWeight e4m3_weight(const char* format, const std::string& layer, const LayerParts& parts,
                                const std::string& scale_name, std::span<const BlockSize> blocks, int64_t out,
                                int64_t in) {
  auto weight = parts.find("weight"), found = parts.find(scale_name);
  check(weight != parts.end(), "{}: '{}' lacks its weight", format, layer);
  check(found != parts.end(), "{}: '{}' lacks its {}", format, layer, scale_name);
  const Tensor& codes = weight->second;
  check(codes.dtype() == kUInt8 && codes.sizes().same_as({out, in}), "{}: weight of '{}', {} by {}, is {} {}", format,
        layer, out, in, codes.dtype(), codes.sizes());
  Tensor scale = found->second.dtype() == kUInt8 ? e8m0_floats(found->second) : found->second;
  check(scale.is_floating_point(), "{}: {} of '{}' is {}", format, scale_name, layer, scale.dtype());
  nn::QuantizedWeight made;
  made.encoding = Encoding::kTable8;
  made.columns = in;
  made.codes = codes.clone();
  made.table = nn::e4m3_table();
  if (scale.numel() == 1) {
    made.scale = scale.reshape({1, 1}).expand({out, 1}).contiguous();
    return made;
  }
  if (scale.dim() == 1) scale = scale.unsqueeze(1);
  made.scale = scale.clone();
  for (const BlockSize& block : blocks)
    if (scale.sizes().same_as({ceil_div(out, block.rows), ceil_div(in, block.columns)})) {
      made.block_rows = block.rows;
      made.group_size = block.columns < in ? block.columns : 0;
      return made;
    }
  const std::string blocks_text =
      blocks.empty() ? "" : sinter::format(" in blocks of {} by {}", blocks[0].rows, blocks[0].columns);
  check(scale.sizes().same_as({out, 1}), "{}: {} of '{}', {} by {}{}, is {}", format, scale_name, layer, out, in,
        blocks_text, scale.sizes());
  return made;
}

}  // namespace sinter::models
