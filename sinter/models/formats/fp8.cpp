// Weights in E4M3: DeepSeek's, a scale for each block of 128 by 128, and FBGEMM's, one for each row. Activations stay
// as they are.
#include "sinter/base/error.h"
#include "sinter/models/formats/float8_parts.h"
#include "sinter/models/formats/quantized_format.h"

namespace sinter::models {

namespace {

class Fp8 final : public QuantizedFormat {
 public:
  explicit Fp8(const ConfigFile& config) {
    const auto block = config.integers("weight_block_size");
    check(block.empty() || (block.size() == 2 && block[0] > 0 && block[1] > 0),
          "FP8: '{}' has a weight_block_size that is no two sizes", config.name());
    if (!block.empty()) blocks_ = {{block[0], block[1]}};
    const std::string format = config.text("fmt", "e4m3");
    check(format == "e4m3", "FP8: '{}' has weights in {}; e4m3 is read", config.name(), format);
  }

  bool is_part(std::string_view end, const SafeTensorInfo& info) const override {
    if (end == "weight") return info.dtype_text == "F8_E4M3";
    return end == "weight_scale_inv" || end == "weight_scale" || end == "input_scale" || end == "input_scale_ub" ||
           end == "activation_scale";
  }

  nn::QuantizedWeight weight(const std::string& layer, const LayerParts& parts, int64_t out,
                             int64_t in) const override {
    // Both are multiplied.
    const char* scale = parts.contains("weight_scale_inv") ? "weight_scale_inv" : "weight_scale";
    return e4m3_weight("FP8", layer, parts, scale, blocks_, out, in);
  }

 private:
  std::vector<BlockSize> blocks_;
};

}  // namespace

std::unique_ptr<QuantizedFormat> fp8_format(const ConfigFile& config) { return std::make_unique<Fp8>(config); }

}  // namespace sinter::models
