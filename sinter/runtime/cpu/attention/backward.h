#pragma once
// The gradients of attention on the CPU, from the logarithms of its sums (AttentionProblem::log_sums): the
// weights are computed again block by block, so that they never lie in memory as a whole. f32, bf16 and f16 compute in f32 and
// round once at the store. Results depend on the sizes and the instruction set, never on the number of threads.
#include "sinter/runtime/cpu/attention/attention.h"

namespace sinter::runtime {

struct AttentionBackwardProblem {
  AttentionProblem forward;  // its `out` and `log_sums` are not looked at
  AttentionOperand grad;     // what flows back to the result
  // [batch, heads, queries]: as the forward left them; and the sum of gradient times result, which is the mean of what flows
  // back to the weights of a row.
  const float *log_sums, *means;
  // Row-major: [batch, heads, queries, size], and with heads / group heads [.., keys, size] and [.., keys, value_size]. Null
  // where nobody wants one.
  void *grad_query, *grad_key, *grad_value;
};

void attention_backward(const AttentionBackwardProblem& problem);

}  // namespace sinter::runtime
