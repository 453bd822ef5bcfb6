#pragma once
// Frame: what one call in flight of a plan needs: an arena and the tensors over it, made once and used again and again.
#include "sinter/engine/device/recording.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/executable/rearranged.h"
#include "sinter/engine/profile.h"

namespace sinter {

class DeviceEngine;
class StepObserver;

class Frame {
 public:
  explicit Frame(std::shared_ptr<const Plan> plan);

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // As Executable::run, for operands that fit the plan. By one thread at a time; after an exception it may run again.
  void run(std::span<const TensorArg> inputs, std::span<Tensor> outputs);

 private:
  // A step with its operands at hand.
  struct Call {
    const Step* step;
    std::vector<TensorArg> args;
    std::vector<bool> stays;  // by argument: an input that no step writes
    Tensor out, target;
    TensorList results;  // kFused
    int rearranged = -1;  // among rearranged_: what the step makes of its weights
    mutable bool by_ops = false;  // kFused: its kernel was refused when it was to run
  };
  struct CallRearranged {
    size_t call;
    Rearranged made;
  };
  // A tensor over memory that differs from call to call, so many elements from its start.
  struct Bound {
    TensorImpl* impl;
    int64_t offset;
  };
  // An operand that is a number of the caller.
  struct NumberPlace {
    size_t input, call, arg;
  };
  class Unbind;
  class Places;

  bool is_outside(int storage) const { return plan_->storages[size_t(storage)].kind != Storage::Kind::kArena; }
  void make_tensors();
  void make_calls();
  void make_replay();
  void make_rearranged();
  void refresh_rearranged();
  void check_recordable(const Call& call) const;
  TensorArg argument(const Operand& operand) const;
  void bind(int storage, const BufferPtr& buffer, int64_t offset);
  void bind_inputs(std::span<const TensorArg> inputs);
  void bind_outputs();
  void run_calls();
  void run_calls_in_order();
  void run_timed(Profile& profile);
  void run_recorded(std::span<const TensorArg> inputs);
  std::vector<int64_t> cells(std::span<const TensorArg> inputs) const;
  StepArguments arguments(const Call& call) const;
  bool stays(int slot) const;
  bool is_captured(int slot) const;
  void run(const Call& call);
  void run_observed(const Call& call, StepObserver& observer);
  void run_opaque(const Call& call);
  void run_fused(const Call& call);
  void run_by_ops(const Call& call);
  void hand_out(std::span<const TensorArg> inputs, std::span<Tensor> outputs) const;

  std::shared_ptr<const Plan> plan_;
  const DeviceEngine& engine_;
  BufferPtr arena_;
  TensorList tensors_;                     // by slot
  std::vector<std::vector<Bound>> bound_;  // by storage; empty for those in the arena
  std::vector<Call> calls_;
  std::vector<NumberPlace> numbers_;
  std::vector<CallRearranged> rearranged_;
  std::unique_ptr<Replay> replay_;  // where the plan is recorded
};

}  // namespace sinter
