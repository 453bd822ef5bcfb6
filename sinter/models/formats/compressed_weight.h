#pragma once
// Weights in the layout of compressed-tensors, which compressed_tensors.cpp, vLLM and transformers read.
#include <string>

#include "sinter/models/formats/quantized_format.h"

namespace sinter::models {

struct CompressedWeight {
  LayerParts parts;       // by the ends of their names; a "weight" of u8 is of F8_E4M3
  std::string format;     // "pack-quantized"
  std::string arguments;  // the object "weights" of a config_group, as JSON
};

// An Error, which names the layer, where the format has no such weights.
CompressedWeight compressed_weight(const std::string& layer, const nn::QuantizedWeight& weight);

}  // namespace sinter::models
