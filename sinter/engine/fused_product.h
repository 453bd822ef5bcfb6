#pragma once
// Matrix products of one left operand and the ops that follow them, in one launch.
#include <span>

#include "sinter/engine/fused_epilogue.h"
#include "sinter/engine/kernel_parameters.h"
#include "sinter/engine/packed_weight.h"
#include "sinter/engine/ways.h"
#include "sinter/ops/fused.h"
#include "sinter/runtime/cpu/gemm/gemm.h"

namespace sinter {

struct FusedKernel;

struct FusedProduct {
  // Addresses are the operands' at these positions; c_slot is -1 where only the pieces are read.
  struct Part {
    int64_t n;
    runtime::GemmOperand b;
    runtime::GemmOutput c;
    int b_slot, c_slot;
  };

  std::string name;
  std::string indexing;  // the ops of the epilogue that read by an index
  int64_t m = 0, k = 0, batch = 1;
  runtime::GemmOperand a = {};
  int a_slot = -1;
  bool together = true;         // products of one shape advance together
  std::vector<Part> parts;
  std::vector<FusedEpilogue> follows;  // one for all that advance together, else one a part
  std::shared_ptr<const ProductWay> way;  // of a single part: what tuning chose; null: the default
  // Computes the left operand into memory of the call; a_slot is -1 then.
  std::shared_ptr<const FusedKernel> prologue;
  std::vector<int> prologue_operands;
  int64_t prologue_bytes = 0;
};

// As compile_fused, for a body with products.
FusedProduct compile_product(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                             std::span<const TensorImpl* const> outputs);

// `packed`: by part, right operands that were rearranged before; null or left out where there is none.
using PackedWeights = std::span<const std::shared_ptr<const PackedWeight>>;
void launch(const FusedProduct& product, std::span<const int64_t> slots, PackedWeights packed = {});

}  // namespace sinter
