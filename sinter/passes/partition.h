#pragma once
// Cuts the joint graph of a program and its gradients in two: a forward graph, and a backward graph that runs later on
// what the forward saved.
//
//   joint:    (inputs…, tangents…)  → (outputs…, gradients…)
//   forward:  (inputs…)             → (outputs…, values saved beside them…)
//   backward: (saved…, tangents…)   → (gradients…)
//
// What depends on a tangent is backward. Of the rest, what the gradients need is saved or computed (again) in the
// backward, whichever makes the saved bytes fewest: a minimum cut. The rules:
//   - An input or an output of the program is saved for nothing: it is alive anyway.
//   - Pointwise ops, views and loops without a reduction may run a second time. Reductions, contractions, scans,
//     scatters, opaque and composite ops may not; what the outputs do not need runs once wherever it is put.
//   - Random ops run in the forward alone, even unused: they would draw again.
//   - What a gradient compares for equality (which element was the largest) is not computed again: another kernel may round
//     otherwise, and then nothing is equal.
//   - At most kLongestChain ops are run again in a row, views not counted: a value farther than that from an input or
//     from a value of the kinds above is not computed again, and the count starts anew behind it.
//   - Of cuts with equal bytes it takes the one that runs least again; it rather saves a value that the forward
//     computes anyway than another, and rather a value than a view of it.
//   - Plain numbers are copied into both graphs; those that are inputs are saved as inputs.
// Either graph may mention symbolic sizes that its inputs do not show.
#include <functional>

#include "sinter/graph/graph.h"

namespace sinter {

inline constexpr int kLongestChain = 32;

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
};

Partition partition(const Graph& joint, size_t forward_inputs, size_t forward_outputs,
                    const PartitionOptions& options = {});

}  // namespace sinter
