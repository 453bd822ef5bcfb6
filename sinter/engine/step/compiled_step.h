#pragma once
// A fused node at known sizes and layouts, ready to run on its device: everything but the addresses of its operands. One
// interface for all devices and for all that steps do: loops, products, convolutions, several kernels side by side.
#include <memory>
#include <string>
#include <vector>

#include "sinter/engine/step/arguments.h"

namespace sinter {

class CompiledStep {
 public:
  virtual ~CompiledStep() = default;

  // For people: "exp_sum_div", and what computes it: "loops", "gemv", "gemm", "convolution".
  const std::string& name() const { return name_; }
  const std::string& made_by() const { return made_by_; }

  // Compiles and loads what it launches; nothing where that has been done. Refused where a toolchain does not take it.
  virtual void load() {}
  virtual bool is_loaded() const { return true; }
  // How long that takes, compared with others.
  virtual size_t code_length() const { return 0; }
  // Does what the libraries it calls would do at the first launch: on any thread, before that.
  virtual void prepare() const {}

  // One slot an operand of the node, inputs before outputs. Where there is something rearranged, one more: its address.
  virtual void launch(const StepArguments& arguments) const = 0;

  // --- weights in another order
  // What the step makes of operands that are the same in many calls and finds again in the next one: so many bytes, made of
  // these operands (positions among the node's) by `rearrange`. Whoever runs the step keeps them where no step writes the
  // operands, and makes them again, in the same memory, when those have changed; never while a recording is made.
  virtual int64_t rearranged_bytes() const { return 0; }
  virtual std::vector<int> rearranged_from() const { return {}; }
  virtual void rearrange(const StepArguments&, void* /*to*/) const {}
  // The order, where other steps may use the same memory; only operands that are promised never to change are rearranged
  // then, unless the step always needs it. Empty: the memory is this step's.
  virtual std::string shared_order() const { return {}; }
  // Whether the step reads these operands in no other way: where nobody keeps it, each launch makes it anew.
  virtual bool needs_rearranged() const { return false; }

  // --- tuning
  // How it computes, where there are other candidates: "tiles 64x128", "onednn 3.1".
  const std::string& candidate() const { return candidate_; }
  // The others, perhaps not loaded yet.
  virtual std::vector<std::shared_ptr<CompiledStep>> other_candidates() const { return {}; }
  // Everything beside names and geometries that their times depend on.
  virtual std::string tuning_key() const { return {}; }
  // Lets libraries it calls try their algorithms on these operands, whose results are overwritten.
  virtual void tune_libraries(const StepArguments&, double /*seconds*/) const {}

 protected:
  std::string name_, candidate_, made_by_ = "loops";
};

}  // namespace sinter
