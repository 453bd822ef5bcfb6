#pragma once
// What formats with floating-point numbers of eight and four bits share.
#include <span>
#include <string>

#include "sinter/models/formats/quantized_format.h"

namespace sinter::models {

struct BlockSize {
  int64_t rows, columns;
};

// "weight", codes of E4M3, with a scale for all, for each row, or for each block of one of these sizes.
nn::QuantizedWeight e4m3_weight(const char* format, const std::string& layer, const LayerParts& parts,
                                const std::string& scale_name, std::span<const BlockSize> blocks, int64_t out,
                                int64_t in);

// A tensor of codes as floats: of E4M3, or of E8M0.
Tensor e4m3_floats(const Tensor& codes);
Tensor e8m0_floats(const Tensor& codes);
// The 16 numbers of E2M1.
Tensor e2m1_table();

}  // namespace sinter::models
