#pragma once
// Attention as the kernels of either device take it. On a GPU the result may lie in any order of [batch, heads, queries], with
// whole rows; on the CPU it is row-major.
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/step/arguments.h"
#include "sinter/engine/step/attention_parts.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cpu/attention/backward.h"

namespace sinter::eager {

// Everything of one launch, in memory.
struct AttentionMemory {
  runtime::AttentionProblem problem;
  // Of a backward: what flows in, and the gradients, null where nobody wants them.
  runtime::AttentionOperand grad = {};
  const float *log_sums = nullptr, *means = nullptr;
  void* gradients[3] = {};
};

// Operands that have a kernel, and the results, by how they lie.
class AttentionLayout {
 public:
  // A result that nobody wants is null, and so is a number.
  AttentionLayout(const Op& op, const AttentionAttrs& attrs, std::span<const TensorImpl* const> inputs,
                  std::span<const TensorImpl* const> results);

  bool is_backward() const { return is_backward_; }
  // Without addresses: as if all memory began at 0.
  const AttentionMemory& memory() const { return memory_; }
  DType dtype() const { return dtype_; }
  // Elements between batches, heads and rows of a result; zeros where it is not wanted.
  const IntList& strides_of(size_t result) const { return strides_[result]; }

  // Operands that do not lie as kernels read them are copied: so many bytes.
  int64_t copied_bytes() const { return copied_bytes_; }
  // At these addresses, operands before results, numbers as they are, 0 for what is not wanted. Copies go to `copies`, which has copied_bytes().
  AttentionMemory at(std::span<const int64_t> addresses, void* copies) const;

 private:
  struct Copied {
    size_t operand;
    IntrusivePtr<TensorImpl> from, to;  // geometries
  };
  void place(AttentionMemory& memory, std::span<void* const> pointers) const;

  bool is_backward_;
  size_t operands_, mask_;  // how many, and which of them the mask would be
  AttentionMemory memory_{};
  DType dtype_;
  std::vector<IntList> strides_;
  std::vector<Copied> copied_;
  int64_t copied_bytes_ = 0;
};

// Of a kernel's op; nothing where there are no kernels for its operands after all.
std::optional<AttentionLayout> attention_layout(const AttentionParts& parts);
// Where operands and results lie, as AttentionLayout::at takes it.
SmallVector<int64_t, 12> attention_addresses(const AttentionParts& parts, const StepArguments& arguments);
// The op as an eager call runs it, which takes it apart where there is no kernel.
void run_attention_op(const AttentionParts& parts, const StepArguments& arguments);

// A call of the op; its first result goes into `given`, if there is one.
struct AttentionCall {
  AttentionCall(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given);

  std::optional<AttentionLayout> layout;  // nothing where there are no kernels for these operands
  SmallVector<int64_t, 12> addresses;
  TensorList results;
};

// The heads of a query side by side: models look at them as one row next.
IntList attention_strides(const IntList& sizes);

}  // namespace sinter::eager
