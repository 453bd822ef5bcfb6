// bitsandbytes: NF4 and FP4, blocks of a flat matrix with the largest number of each, which may be quantised again; and
// int8, with the largest number of each row.
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/models/formats/quantized_format.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

constexpr std::string_view kState = "weight.quant_state.bitsandbytes__";

class BitsAndBytes final : public QuantizedFormat {
 public:
  bool is_part(std::string_view end, const SafeTensorInfo& info) const override {
    if (end == "weight") return info.dtype == kUInt8 || info.dtype == kInt8;
    return end == "weight.absmax" || end == "weight.quant_map" || end == "weight.nested_absmax" ||
           end == "weight.nested_quant_map" || end == "SCB" || end == "weight_format" || end.starts_with(kState);
  }

  nn::QuantizedWeight weight(const std::string& layer, const LayerParts& parts, int64_t out,
                             int64_t in) const override {
    return parts.contains("SCB") ? eight_bits(layer, parts, out, in) : four_bits(layer, parts, out, in);
  }

 private:
  static Tensor part(const std::string& layer, const LayerParts& parts, const std::string& name, DType dtype,
                     const Shape& sizes) {
    auto found = parts.find(name);
    check(found != parts.end(), "bitsandbytes: '{}' lacks its {}", layer, name);
    check(found->second.dtype() == dtype && found->second.sizes().same_as(sizes),
          "bitsandbytes: {} of '{}' is {} {}, not {} {}", name, layer, found->second.dtype(), found->second.sizes(),
          dtype, sizes);
    return found->second.contiguous();
  }

  static nn::QuantizedWeight eight_bits(const std::string& layer, const LayerParts& parts, int64_t out, int64_t in) {
    nn::QuantizedWeight made;
    made.columns = in;
    made.codes = part(layer, parts, "weight", kInt8, {out, in}).clone();
    made.scale = part(layer, parts, "SCB", kFloat32, {out}).unsqueeze(1) / 127;
    return made;
  }

  static nn::QuantizedWeight four_bits(const std::string& layer, const LayerParts& parts, int64_t out, int64_t in) {
    const ConfigFile state = state_of(layer, parts);
    const int64_t block = state.integer("blocksize"), blocks = (out * in + block - 1) / std::max<int64_t>(block, 1);
    const auto told = state.integers("shape");
    check(told == std::vector<int64_t>({out, in}),
          "bitsandbytes: the state of '{}' tells of another shape than {} by {}", layer, out, in);
    check(block > 0 && block % 2 == 0 && in % block == 0,
          "bitsandbytes: blocks of {} of '{}' do not fill its rows of {}", block, layer, in);
    const Tensor packed = part(layer, parts, "weight", kUInt8, {out * in / 2, 1});
    nn::QuantizedWeight made;
    made.encoding = Encoding::kTable4;
    made.columns = in;
    made.group_size = in == block ? 0 : block;
    made.table = part(layer, parts, "weight.quant_map", kFloat32, {16}).clone();
    made.scale = scale_of(layer, parts, state, blocks).view({out, in / block});
    made.codes = empty({out, in / 2}, kUInt8);
    // The first of two is in the high half there.
    auto* from = packed.data_ptr<uint8_t>();
    auto* to = made.codes.data_ptr<uint8_t>();
    for (int64_t i = 0; i < out * in / 2; ++i) to[i] = uint8_t(from[i] >> 4 | from[i] << 4);
    return made;
  }

  // JSON in a tensor of bytes, whose name tells of the type, too.
  static ConfigFile state_of(const std::string& layer, const LayerParts& parts) {
    for (auto& [name, tensor] : parts)
      if (name.starts_with(kState)) {
        check(tensor.dtype() == kUInt8, "bitsandbytes: {} of '{}' is {}", name, layer, tensor.dtype());
        const Tensor bytes = tensor.contiguous();
        return ConfigFile::parse({static_cast<const char*>(bytes.data_ptr()), size_t(bytes.numel().to_int())},
                                 layer + ": " + name);
      }
    throw_error(format("bitsandbytes: '{}' lacks its quant_state", layer));
  }

  static Tensor scale_of(const std::string& layer, const LayerParts& parts, const ConfigFile& state, int64_t blocks) {
    if (!parts.contains("weight.nested_absmax")) return part(layer, parts, "weight.absmax", kFloat32, {blocks}).clone();
    const int64_t block = state.integer("nested_blocksize");
    check(block > 0, "bitsandbytes: '{}' has nested blocks of {}", layer, block);
    const Tensor codes = part(layer, parts, "weight.absmax", kUInt8, {blocks});
    const Tensor map = part(layer, parts, "weight.nested_quant_map", kFloat32, {256});
    const Tensor most = part(layer, parts, "weight.nested_absmax", kFloat32, {(blocks + block - 1) / block});
    const Tensor of_each = most.repeat_interleave(block).narrow(0, 0, blocks);
    // As its own code rounds: a product, then a sum.
    const Tensor products = map.index_select(0, codes.to(kInt64)) * of_each;
    return products + float(state.number("nested_offset"));
  }
};

}  // namespace

std::unique_ptr<QuantizedFormat> bitsandbytes_format(const ConfigFile&) { return std::make_unique<BitsAndBytes>(); }

}  // namespace sinter::models
