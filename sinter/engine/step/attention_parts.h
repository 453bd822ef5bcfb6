#pragma once
// The op of a kernel of attention, as the steps that run it need it. Says nothing of how it is run.
#include <vector>

#include "sinter/ops/fused.h"

namespace sinter {

struct AttentionParts {
  SubGraph body;  // keeps the node
  const Node* node;
  // By operand and by result of the op: its position among those of the fused node, inputs before outputs; -1 for a result that
  // nobody wants, and for a number that the body has.
  std::vector<int> operands, results;
  std::vector<Scalar> numbers;  // by operand
  // How these lie; of a result that nobody wants and of numbers null.
  std::vector<IntrusivePtr<TensorImpl>> operand_geometries, result_geometries;
};

AttentionParts read_attention(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs);

}  // namespace sinter
