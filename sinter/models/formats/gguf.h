#pragma once
// Models in GGUF files: which tensor is which parameter, and their blocks as weights that are read as they are.
#include <optional>
#include <string>

#include "sinter/io/gguf/gguf.h"
#include "sinter/models/models.h"
#include "sinter/nn/quantize.h"

namespace sinter::models {

// What a model of this configuration calls a tensor; nothing for what is no parameter, such as factors of positions,
// and the name as it is where it is not known.
std::optional<std::string> gguf_module_name(const ModelConfig& config, const std::string& name);

// Whether a tensor is stored in blocks of codes that a linear layer can read.
bool is_encoded(const GgufTensor& tensor);
// A matrix in blocks, without loss: rows and columns are where the model has them.
nn::QuantizedWeight gguf_weight(const GgufFile& file, const GgufTensor& tensor, const ModelConfig& config);
// The numbers of a tensor, as the model has them: of a plain one in its own type, perhaps as a view of the file, else
// in `dtype`.
Tensor gguf_tensor(const GgufFile& file, const GgufTensor& tensor, const ModelConfig& config, DType dtype);

// What most of the file's bytes should be computed in: the type of plain weights, bf16 where they are encoded.
DType gguf_type(const GgufFile& file);

// Blocks as they are in a file, [rows, columns], of one of the types that is_encoded() knows.
nn::QuantizedWeight decode_blocks(const GgufType& type, const uint8_t* blocks, int64_t rows, int64_t columns);

}  // namespace sinter::models
