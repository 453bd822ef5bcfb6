#include "sinter/models/formats/quantized_format.h"

#include "sinter/base/error.h"

namespace sinter::models {

std::unique_ptr<QuantizedFormat> quantized_format(const ConfigFile& file) {
  auto config = file.object("quantization_config");
  if (!config) return nullptr;
  const std::string method = config->text("quant_method", "");
  if (method == "awq") return awq_format(*config);
  if (method == "compressed-tensors") return compressed_tensors_format(*config);
  throw_error(
      format("models: the weights of '{}' are quantised by '{}', which is not read yet: awq and compressed-tensors are",
             file.name(), method));
}

}  // namespace sinter::models
