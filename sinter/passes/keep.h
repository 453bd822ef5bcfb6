#pragma once
// Which values a forward keeps for its gradients, and which are computed again beside these: what `partition` and
// `recompute` share.
//
// What the gradients need of the forward is kept or computed again, whichever makes the kept bytes fewest: a minimum cut.
// The rules:
//   - What is alive anyway (inputs, outputs) is kept for nothing.
//   - Pointwise ops, views and loops without a reduction may run a second time. Reductions, contractions, scans,
//     scatters, opaque and composite ops may not; what only the gradients need runs once wherever it is put.
//   - Random ops run in the forward alone, even unused: they would draw again.
//   - What a gradient compares for equality (which element was the largest) is not computed again: another kernel may round
//     otherwise, and then nothing is equal.
//   - At most kLongestChain ops are run again in a row, views not counted: a value farther than that from an input or
//     from a value of the kinds above is not computed again, and the count starts anew behind it.
//   - Inside a call of checkpoint() everything runs again, and what comes out of it is kept, if anything.
//   - Values that the forward stores anyway, being operands of contractions or results of such that are reduced, count 3 %
//     less: for others a kernel has to write them.
//   - Of cuts with equal bytes it takes the one that runs least again; it rather keeps a value that the forward
//     computes anyway than another, and rather a value than a view of it.
// With a budget below 1, which is a share of these bytes, expensive ops run again too, those first that take the least time
// for the bytes they save, until what is kept fits: random ops, reductions, and contractions and their like, of which at
// most kMostExpensive follow each other. What is computed again is in memory from there to its last reader: longer chains
// would keep as much as they save.
#include <functional>
#include <span>

#include "sinter/graph/graph.h"

namespace sinter {

inline constexpr int kLongestChain = 32, kMostExpensive = 4;

// A flag a node.
using NodeFlags = std::vector<bool>;
// What the values are computed from, and what is computed from them, themselves included.
NodeFlags ancestors(const Graph& graph, std::span<const Value> values);
NodeFlags descendants(const Graph& graph, std::span<const Value> values);

struct KeepQuestion {
  const Graph& graph;
  NodeFlags backward;          // computes gradients; everything else is forward
  NodeFlags for_outputs;       // of the forward: runs there in any case
  NodeFlags for_gradients;     // some gradient needs it
  NodeFlags settled = {};      // of the forward: never runs again; empty: none is
  std::vector<Value> results;  // gradients as they leave the backward
  std::function<bool(Value v)> is_alive;
  // The value of a symbolic size, for weighing; without it each symbol counts as 64.
  std::function<int64_t(const Dim& size)> hint = {};
  double budget = 1;
  std::function<double(const Node& node)> seconds = {};  // what an op takes; needed for budgets below 1
};

struct KeepAnswer {
  NodeFlags in_backward;    // runs there, for the second time where it is for_outputs
  std::vector<Value> kept;  // what the backward is given, in the order of the graph
  int64_t bytes = 0;        // of what is kept and would not be alive without
  double seconds = 0;       // of the expensive ops that run again
};

KeepAnswer choose_kept(const KeepQuestion& question);

// What a budget comes to; the smallest may not be reached.
struct KeepPoint {
  double budget = 1;
  int64_t bytes = 0;
  double seconds = 0;
};
std::vector<KeepPoint> keep_curve(KeepQuestion question, std::span<const double> budgets);

// What runs in the backward, in its order: what is computed again comes right before its first reader.
std::vector<const Node*> backward_order(const KeepQuestion& question, const KeepAnswer& answer);

// Of a value with `hint`s for symbols.
int64_t bytes_of(const Type& type, const std::function<int64_t(const Dim& size)>& hint);

}  // namespace sinter
