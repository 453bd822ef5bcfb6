#pragma once
// The parts of a fused node with contractions, as the steps that run it need them. Says nothing of how any of it is run.
#include <optional>
#include <vector>

#include "sinter/ops/fused.h"

namespace sinter {

struct ContractionParts {
  // Operands and results are known by their positions among those of the fused node, inputs before outputs.
  struct Part {
    // The transpose of the right operand, where that is dequantized.
    struct Encoded {
      const Node* node;                  // `dequantize`
      int scale, zero = -1, table = -1;  // -1: there is none; `zero` may be the offsets in their place
    };
    const Node* node;  // the contraction
    int right;         // the right operand, of a convolution the weight; its codes
    std::optional<Encoded> encoded = {};
    int result = -1;   // where the contraction goes as it is; -1 where something follows it
    int64_t columns() const { return right_sizes().back(); }  // of a product
    IntList right_sizes() const { return node->inputs[1].type().shape.numbers(); }
  };
  // A kernel of the body.
  struct Inner {
    const Node* node = nullptr;
    std::vector<int> operands;  // of an epilogue without tiles; its results behind them
    const FusedAttrs& attrs() const { return node->attrs.as<FusedAttrs>(); }
  };

  SubGraph body;  // keeps the nodes
  std::string name;
  int left = -1;  // the left operand, of a convolution the image; unless there is a prologue
  DType left_dtype = kFloat32;
  std::optional<Inner> prologue;  // computes the left operand, and nothing else
  bool together = true;           // contractions of one shape: what follows them is one epilogue
  std::vector<Part> parts;
  // One for all that advance together, else one a part; nothing where contractions are stored as they are.
  std::vector<std::optional<Inner>> epilogues;
  // Of products, at known sizes.
  int64_t batch = 1, m = 0, k = 0;
};

ContractionParts read_contraction(const FusedAttrs& attrs);

// The geometries of some operands and results of a node, by their positions.
struct PartGeometries {
  std::vector<const TensorImpl*> inputs, outputs;
};
PartGeometries geometries_of(std::span<const int> positions, std::span<const TensorImpl* const> inputs,
                             std::span<const TensorImpl* const> outputs);

// A row-major tensor of this type, without memory.
IntrusivePtr<TensorImpl> row_major_of(const Type& type);

}  // namespace sinter
