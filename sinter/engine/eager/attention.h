#pragma once
// Attention as the kernels of either device take it. On a GPU the result may lie in any order of [batch, heads, queries], with
// whole rows; on the CPU it is row-major.
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/step/arguments.h"
#include "sinter/engine/step/attention_parts.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/attention/attention.h"

namespace sinter::eager {

// Operands that have a kernel, and a result, by how they lie.
class AttentionLayout {
 public:
  AttentionLayout(const AttentionAttrs& attrs, std::span<const TensorImpl* const> inputs, const TensorImpl& out);

  // Without addresses: as if all memory began at 0.
  const runtime::AttentionProblem& problem() const { return problem_; }
  DType dtype() const { return dtype_; }
  // Elements between batches, heads and queries of the result.
  const IntList& out_strides() const { return out_strides_; }

  // Rows whose elements do not lie side by side are copied: so many bytes.
  int64_t copied_bytes() const { return copied_bytes_; }
  // The problem at these addresses, operands before the result. Copies go to `copies`, which has copied_bytes().
  runtime::AttentionProblem at(std::span<const int64_t> addresses, void* copies) const;

 private:
  struct Copied {
    size_t operand;
    IntrusivePtr<TensorImpl> from, to;  // geometries
  };
  runtime::AttentionProblem problem_{};
  DType dtype_;
  IntList out_strides_;
  std::vector<Copied> copied_;
  int64_t copied_bytes_ = 0;
};

// Of a kernel's op; nothing where there are no kernels for its operands after all.
std::optional<AttentionLayout> attention_layout(const AttentionParts& parts);
// Where the operands and the first result lie, as AttentionLayout::at takes it.
SmallVector<int64_t, 8> attention_addresses(const AttentionParts& parts, const StepArguments& arguments);
// The op as an eager call runs it, which takes it apart where there is no kernel.
void run_attention_op(const AttentionParts& parts, const StepArguments& arguments);

// A call of the op, into `given` or fresh memory.
struct AttentionCall {
  AttentionCall(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given);

  std::optional<AttentionLayout> layout;  // nothing where there are no kernels for these operands
  SmallVector<int64_t, 8> addresses;
  Tensor out;
};

// The heads of a query side by side: models look at them as one row next.
IntList attention_strides(const IntList& sizes);

}  // namespace sinter::eager
