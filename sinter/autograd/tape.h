#pragma once
// The tape: what eager (and traced) ops leave behind so that gradients can flow back. The engine calls `record` after
// every op whose operands need gradients; the gradients themselves are the ops' own.
#include <span>

#include "sinter/autograd/autograd.h"
#include "sinter/graph/op.h"

namespace sinter::autograd {

class Node;

// Whether an op on these operands must be recorded: recording is on and one of them needs a gradient. An Error when an
// operand is a value saved for a gradient that was overwritten since: here is where it would be read.
bool is_recording(std::span<const TensorArg> inputs);

// Whether gradients flow on this thread, and the call of checkpoint() that it is inside of, the outermost, or 0: captures
// note both with what they record.
bool is_flowing();
int checkpoint_region();

// While alive, gradients are taken that flow later: hooks of leaves and checks for NaN are for then.
class LeafHooksLater {
 public:
  LeafHooksLater();
  ~LeafHooksLater();
  LeafHooksLater(const LeafHooksLater&) = delete;
};

// Makes the outputs remember how they came about. The op's operands are kept; an in-place write to one of them later is
// found by its version.
void record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, std::span<const Tensor> outputs);

// Tells that `view` looks at the memory of `of`, recorded or not: a later write to one concerns the other.
void note_view(const Tensor& view, const Tensor& of);

// An Error when `out` may not be written in place under autograd: a leaf that requires a gradient, a view of one, or a
// view in which several elements are one.
void check_writable(const Op& op, const Tensor& out);
// After `out` was overwritten with the op's result: its history is now this op's (and, where `out` is a view, its
// base's history changes with it). An operand that is `out` itself stands for its value before the write.
void record_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out);
// The tensor is now a result of this node (a part of the tape that is no single op); of none when null. `written`: it
// existed before and was overwritten.
void set_history(const Tensor& tensor, IntrusivePtr<Node> node, uint32_t result, bool written);

}  // namespace sinter::autograd
