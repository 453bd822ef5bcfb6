#pragma once
// A Tracer of a program that runs while it is traced (`answers()`), so that values can be asked for: what such a program
// does differently from a plain graph.
#include <functional>

#include "sinter/tensor/tensor.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

class ProgramTracer : public Tracer {
 public:
  bool answers() const final { return true; }

  // The operands of an op as the program takes them: an eager tensor that it has changed, or whose history lies outside,
  // as its look at it; a number of the host that changes as a value; a size that has come to 1 as such where it broadcasts.
  virtual std::vector<TensorArg> operands(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) = 0;
  // The results of an op that was recorded, now that the tape has it too.
  virtual void recorded(const Op& op, std::span<const Tensor> results) = 0;
  // An eager tensor that has a history is about to be detached: whoever writes to the result writes to it.
  virtual void detaches(const Tensor& eager) = 0;
  // What follows is decided by how the tensor lies in memory: at sizes where it would lie otherwise the program does not
  // hold.
  virtual void layout_matters(const Tensor& tensor) = 0;
  // A tensor was made on memory that the host lends.
  virtual void lends(const Tensor& blob) = 0;
  // Calls `flow`, which lets gradients flow, on the real tensors behind these where the program cannot record it, since the
  // history of its present piece goes on outside: its results as tensors of the program. Nothing where it can.
  // `targets` are what gradients are taken of; empty: of leaves, which keep them.
  virtual std::optional<TensorList> flow_outside(const TensorList& tensors, std::span<const Tensor> targets,
                                                 const std::function<TensorList(const TensorList& real)>& flow) = 0;

  // Null where none is current, or a plain graph is traced.
  static ProgramTracer* current() {
    auto* tracer = Tracer::current();
    return tracer && tracer->answers() ? static_cast<ProgramTracer*>(tracer) : nullptr;
  }
};

}  // namespace sinter
