#pragma once
// Which ops a target takes whole, by kernels by hand or by libraries: passes leave them together, and fusion makes kernels of
// them.
#include "sinter/graph/graph.h"
#include "sinter/ops/contract.h"
#include "sinter/tensor/target.h"

namespace sinter {

// Whether there is a kernel for this composite on all operands of these types, whatever their memory looks like: it need not be
// taken apart.
bool takes_whole(const Target& target, const OpCall& call);

// Whether the node is a contraction whose kernel runs pointwise ops on each finished piece of its result: it joins the group that
// follows.
bool takes_contraction(const Target& target, const Node& node);
// Whether its kernel runs this op on its finished pieces. Of many rows a library multiplies: it adds a row or a tensor of the
// result's dtype and cuts off at zero, and anything else is better done by the kernel that reads the result.
bool finishes(const Target& target, const Node& contraction, const Node& node);
// The `dequantize` whose transpose is the right operand of a product that reads the codes itself; null where it does not.
// Codes, scales and zeros are inputs of the graph, so that a kernel may arrange them once.
const Node* encoded_weight(const Target& target, const Node& node);
// Of any size.
bool takes_convolution(const Target::Convolutions& facts, DType dtype, const ConvolutionAttrs& attrs);

}  // namespace sinter
