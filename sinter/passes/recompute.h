#pragma once
// In a program that computes its own gradients, decides what the forward keeps for them (keep.h): everything else that
// they need is computed a second time, right before its first reader, by nodes marked `again`, which no pass makes one with
// the first. What an optimiser makes of a gradient comes right behind that gradient. Changes no bits but for those that
// another kernel rounds otherwise.
#include "sinter/passes/keep.h"

namespace sinter {

struct RecomputeOptions {
  double budget = 1;  // of the bytes that are kept at the least without running expensive ops again
  std::function<double(const Node& node)> seconds = {};  // needed for less than 1
};

// Whether gradients flow in the graph, so that there is something to decide.
bool has_flow(const Graph& graph);

Graph recompute(const Graph& graph, const RecomputeOptions& options = {});

// What these budgets would come to: of the flow for which most is kept; empty where there is none.
std::vector<KeepPoint> recompute_curve(const Graph& graph, const RecomputeOptions& options, std::span<const double> budgets);

}  // namespace sinter
