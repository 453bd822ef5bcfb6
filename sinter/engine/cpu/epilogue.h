#pragma once
// What follows a contraction in its fused node: generated code that runs on finished pieces of the result.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/engine/step/contraction_parts.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

struct CpuEpilogue {
  // `args` as a kernel takes them; a tile for each contraction.
  using Function = void (*)(const int64_t* args, void* const* tiles, int64_t row, int64_t col, int64_t rows,
                            int64_t cols, int64_t stride);
  Function function = nullptr;  // once it is loaded
  std::vector<int> operands;    // positions among those of the fused node
  std::vector<int64_t> params;
  std::string name, indexing;   // for people: its ops, and those that read by an index
  int back = -1;                // the position among `operands` of the result that goes back into the first tile
  std::string text;             // empty: nothing follows
  std::shared_ptr<const void> code;

  void load();
};

// `inputs` and `outputs` are those of the fused node that has the epilogue.
CpuEpilogue emit_cpu_epilogue(const ContractionParts::Inner& epilogue, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs);

}  // namespace sinter
