#pragma once
// Cuts the joint graph of a program and its gradients in two: a forward graph, and a backward graph that runs later on
// what the forward saved.
//
//   joint:    (inputs…, tangents…)  → (outputs…, gradients…)
//   forward:  (inputs…)             → (outputs…, values saved beside them…)
//   backward: (saved…, tangents…)   → (gradients…)
//
// What depends on a tangent is backward. Of the rest, what the gradients need is saved or computed (again) in the
// backward: see keep.h. An input or an output of the program is alive anyway.
// Plain numbers are copied into both graphs; those that are inputs are saved as inputs. Either graph may mention symbolic
// sizes that its inputs do not show.
#include "sinter/passes/recompute.h"

namespace sinter {

// Where a saved value comes from; one of the two is set.
struct Saved {
  int input = -1;   // this input of the forward graph
  int output = -1;  // this output of the forward graph: one of the program, or one added to save it
  bool operator==(const Saved&) const = default;
};

struct Partition {
  Graph forward, backward;
  std::vector<Saved> saved;      // in the order of backward's first inputs
  int64_t saved_bytes_hint = 0;  // of the outputs added to forward
};

struct PartitionOptions {
  // The value of a symbolic size, for weighing; without it each symbol counts as 64.
  std::function<int64_t(const Dim& size)> hint = {};
  // Inputs that the program writes into before the backward runs. What the backward needs of their old contents becomes
  // an output of the forward graph.
  std::vector<size_t> overwritten = {};
  RecomputeOptions recompute = {};
};

// What these budgets would come to.
std::vector<KeepPoint> partition_curve(const Graph& joint, size_t forward_inputs, size_t forward_outputs,
                                       const PartitionOptions& options, std::span<const double> budgets);

Partition partition(const Graph& joint, size_t forward_inputs, size_t forward_outputs,
                    const PartitionOptions& options = {});

}  // namespace sinter
