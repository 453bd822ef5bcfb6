#pragma once
// A call of attention as the kernels of either device take it. On a GPU the result may lie in any order of [batch, heads,
// queries], with whole rows; on the CPU it is row-major.
#include "sinter/engine/eager/eager.h"
#include "sinter/runtime/cpu/attention/attention.h"

namespace sinter::eager {

class AttentionCall {
 public:
  AttentionCall(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given);
  // Whether there are kernels for these operands; the rest has a meaning only then.
  bool taken() const { return taken_; }
  const runtime::AttentionProblem& problem() const { return problem_; }
  const Tensor& out() const { return out_; }
  // Elements between batches, heads and queries of the result.
  IntList out_strides() const;

 private:
  bool taken_;
  Tensor q_, k_, v_, out_;
  runtime::AttentionProblem problem_{};
};

bool takes_attention(const OpCall& call);
// The heads of a query side by side: models look at them as one row next.
IntList attention_strides(const IntList& sizes);

}  // namespace sinter::eager
