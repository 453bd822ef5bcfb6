#pragma once
// Checkpoints whose weights others have quantised: one file a format, each a reader that turns the tensors of a linear
// layer into codes without loss. Files are not trusted: sizes are those of the model, or an Error says which are not.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/config.h"
#include "sinter/io/safetensors.h"
#include "sinter/nn/quantize.h"

namespace sinter::models {

// The tensors of one layer by the ends of their names: "weight_packed", "weight.absmax". Floating-point numbers of
// eight bits are codes, u8.
using LayerParts = std::map<std::string, Tensor>;

class QuantizedFormat {
 public:
  virtual ~QuantizedFormat() = default;
  // Whether a tensor of a linear layer, by the end of its name, tells of its quantised weight.
  virtual bool is_part(std::string_view end, const SafeTensorInfo& info) const = 0;
  // The weight [out, in] of a layer; the name is for errors.
  virtual nn::QuantizedWeight weight(const std::string& layer, const LayerParts& parts, int64_t out,
                                     int64_t in) const = 0;
};

// The format of a checkpoint with this config.json; null where its weights are plain, an Error where they are of a
// format that is not known.
std::unique_ptr<QuantizedFormat> quantized_format(const ConfigFile& file);

// Which input each column is for, where columns are sorted by the groups that `groups` (i32) tells of them, each of so
// many, the last one perhaps of fewer; empty where they lie so already. `layer` opens errors.
std::vector<int64_t> order_by_group(const Tensor& groups, int64_t group_size, const std::string& layer);

// Columns in such an order, of codes that are in that of the inputs.
void sort_columns(nn::QuantizedWeight& weight, const std::vector<int64_t>& order);

// One a format's file; they take the quantization_config.
std::unique_ptr<QuantizedFormat> awq_format(const ConfigFile& config);
std::unique_ptr<QuantizedFormat> compressed_tensors_format(const ConfigFile& config);
std::unique_ptr<QuantizedFormat> gptq_format(const ConfigFile& config);
std::unique_ptr<QuantizedFormat> fp8_format(const ConfigFile& config);
std::unique_ptr<QuantizedFormat> bitsandbytes_format(const ConfigFile& config);

}  // namespace sinter::models
