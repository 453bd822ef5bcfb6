#pragma once
// How a plan is made of a program at given sizes: plan.cpp walks the graph and keeps track of values, slots and lifetimes,
// plan_steps.cpp makes steps of single ops, plan_fused.cpp those of kernels, and plan_outputs.cpp brings results to where
// they belong.
#include <map>
#include <set>

#include "sinter/engine/executable/kernel_jobs.h"
#include "sinter/engine/executable/plan.h"
#include "sinter/engine/executable/specialize.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/view_path.h"
#include "sinter/runtime/refusal.h"

namespace sinter {

class Planner {
 public:
  Planner(const Program& program, const Specialized& specialized, const PlanOptions& options);

  // Not complete where some kernel is refused.
  std::shared_ptr<const Plan> run();
  // The nodes whose kernels are refused, and why.
  const std::map<const Node*, std::shared_ptr<const runtime::Refused>>& refused() const { return refused_; }
  const Graph& graph() const { return graph_; }

 private:
  // --- lifetimes
  void find_last_uses();
  int& last_read(Value v) { return last_read_[size_t(v.node->id)][size_t(v.index)]; }
  int& last_use(Value v) { return last_use_[size_t(v.node->id)][size_t(v.index)]; }
  bool is_needed(const Node& node) const;

  // --- slots and storages
  const Operand& operand(Value v) const { return operands_[size_t(v.node->id)][size_t(v.index)]; }
  const TensorImpl& geometry(int slot) const { return plan_->slots[size_t(slot)].geometry.impl(); }
  Storage& storage_of(int slot) { return plan_->storages[size_t(plan_->slots[size_t(slot)].storage)]; }
  Tensor row_major(int slot) const;
  int add_storage(Storage::Kind kind, int index, int64_t bytes, int now);
  int add_slot(Tensor geometry, int storage);
  int add_slot_of_its_own(const Tensor& geometry, int now);
  // The value lives in the slot until its last use.
  void define(Value v, int slot);

  // --- inputs
  void add_inputs();

  // --- steps
  void add(const Node& node);
  Step begin_step(const Node& node) const;
  // Whether a view is one of a copy, which is made when the first asks for it: until then, only what it is a copy of is there.
  bool waits(const Node& node);
  void make_view(const Node& node, int now);
  // False where the operand's memory has no such view.
  bool add_view(const Node& node, Step& step);
  // What the memory does not allow, a row-major copy does.
  void add_view_of_copy(const Node& node, Step& step, int now);
  void add_copy(const Operand& from, int to);
  void add_computed(const Node& node, Step& step);
  void add_pointwise(const Node& node, Step& step);
  void add_kernel(const Node& node, Step& step);
  void add_opaque(const Node& node, Step& step);
  void add_write(const Node& node, Step& step);
  static std::optional<Tensor> apply_views(const ViewPath& path, const Tensor& base);
  // The single result of the step: in the memory of slot `taken`, with that slot's geometry, or in memory of its own.
  void finish(const Node& node, Step& step, const Tensor& fresh, int taken);

  // --- kernels
  void add_fused(const Node& node, Step& step);
  // A result of the kernel `attrs`, its r-th, which reads the operands `own` of the step; others read the rest at the same
  // time. `readers` counts the kernels that read each operand: one that several read stays as it is.
  void add_fused_result(const Node& node, Step& step, int result, const FusedAttrs& attrs, int r,
                        const std::vector<size_t>& own, const std::vector<int>& readers, std::set<int>& taken_storages);
  // A kernel that ends with a scatter changes what the scatter's first operand is, or a copy.
  void add_scattered(const Node& node, Step& step, int result, const Graph& body, const Node& scatter,
                     const std::vector<size_t>& own, const std::vector<int>& readers, std::set<int>& taken_storages);
  bool same_place_apart_from_start(int slot, const TensorImpl& fresh) const;
  // An input of the program that a kernel reads together with the node's result and that has its sizes; null without one.
  const TensorImpl* beside(const Node& node) const;

  // --- what may be overwritten
  // The slot of the input in whose memory the node's only result belongs; -1 when there is none.
  int changed_input(const Node& node, int result = 0) const;
  // Whether the memory may be overwritten by step `now`: nobody needs what is there any more.
  bool is_writable(int slot, int now);
  void note_change(int slot);

  // --- outputs
  // The new value of an input that was computed elsewhere and that nothing reads goes there at once, if nothing reads what was
  // there either: its own memory is free then.
  void settle(Value value);
  void add_outputs();
  void add_fresh_output(size_t j);
  void place();

  const Program& program_;
  const PlanOptions& options_;
  const Specialized& specialized_;
  const Graph& graph_;
  const int end_;  // the time at which outputs are read
  const Op* const write_op_ = &known_ops().write;
  std::vector<std::vector<Operand>> operands_;  // by node: its results
  std::vector<std::vector<int>> last_use_;      // by node and result; -1: not needed
  std::vector<std::vector<int>> last_read_;     // the same by nodes alone
  struct Reads {
    int first, last;
  };
  std::vector<Reads> reads_;                                 // by node: when it is read, behind views too
  std::vector<bool> waits_;                                  // by node: a view that is made when it is first read
  std::vector<bool> written_;                                // by input: whether the program changes it
  std::map<std::pair<const Node*, int>, int> belongs_into_;  // the input that a written output's value belongs into
  std::vector<KernelJob> to_compile_;
  std::map<const Node*, std::shared_ptr<const runtime::Refused>> refused_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
};

}  // namespace sinter
