#pragma once
// A fused node with matrix products taken apart: the left operand and what computes it, the right operands, and what follows
// each product as a body of its own. Says nothing of how any of it is run.
#include <optional>
#include <vector>

#include "sinter/ops/fused.h"

namespace sinter {

struct ProductPieces {
  // Operands and results are known by their positions among those of the fused node, inputs before outputs.
  struct Part {
    int64_t n = 0;
    int right = -1;   // the right operand
    int result = -1;  // where the product goes as it is; -1 where something follows it
  };
  struct Follow {
    FusedAttrs attrs;
    std::vector<int> operands;
  };
  struct Prologue {
    const Node* node = nullptr;  // a fused node of the body, whose one result is the left operand
    std::vector<int> operands;
  };

  std::string name;
  int64_t batch = 1, m = 0, k = 0;
  int left = -1;                     // the left operand, unless there is a prologue
  DType left_dtype = kFloat32;
  std::optional<Prologue> prologue;
  bool together = true;              // products of one shape, followed by one body
  std::vector<Part> parts;
  // One for all that advance together, else one a part; nothing where products are stored as they are.
  std::vector<std::optional<Follow>> follows;
};

// At known sizes.
ProductPieces take_apart(const FusedAttrs& attrs);

// The geometries of some operands and results of a node, by their positions.
struct PieceGeometries {
  std::vector<const TensorImpl*> inputs, outputs;
};
PieceGeometries geometries_of(std::span<const int> positions, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs);

// A row-major tensor of this type, without memory.
IntrusivePtr<TensorImpl> row_major_of(const Type& type);

}  // namespace sinter
