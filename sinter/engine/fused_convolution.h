#pragma once
// A convolution and the ops that follow it, in one launch: they work on pieces of its result.
#include <span>

#include "sinter/engine/fused_epilogue.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/conv/conv.h"
#include "sinter/runtime/cpu/onednn.h"

namespace sinter {

// Addresses are the operands' at the slots' positions among those of the fused node.
struct FusedConvolution {
  std::string name;
  std::string indexing;  // the ops of the epilogue that read by an index
  ConvolutionAttrs attrs;
  runtime::ConvShape shape;
  runtime::ConvOperand x;
  IntList weight_sizes, weight_strides;  // strides only where the weight is not row-major
  runtime::GemmType weight_type, out_type;
  int x_slot, weight_slot, out_slot;
  FusedEpilogue follow;  // without a function where the convolution is alone
  std::shared_ptr<const runtime::OnednnConvolutionKernel> way;  // what tuning chose; null: our own cores
};

// Whether a node is a convolution that the runtime's kernels take, in either direction.
bool is_fusable_convolution(const Node& node);

// As compile_fused, for a body with the convolution `node`.
FusedConvolution compile_convolution(const FusedAttrs& attrs, const Node& node,
                                     std::span<const TensorImpl* const> inputs,
                                     std::span<const TensorImpl* const> outputs);

void launch(const FusedConvolution& convolution, std::span<const int64_t> slots);

}  // namespace sinter
