#pragma once
// A call of attention as the kernels of either device take it.
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

 private:
  bool taken_;
  Tensor q_, k_, v_, out_;
  runtime::AttentionProblem problem_{};
};

bool attention_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                        TensorList& outputs);
bool takes_attention(const OpCall& call);

}  // namespace sinter::eager
