#include "sinter/capture/activations.h"

#include "sinter/engine/cost.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/graph/extract.h"
#include "sinter/passes/partition.h"
#include "sinter/tensor/tracer.h"

namespace sinter::capture {

namespace {

constexpr double kShares[] = {1, 0.75, 0.5, 0.25, 0};

// Of a segment that lets its gradients flow itself.
std::vector<KeepPoint> curve_of_flow(Graph graph) {
  PipelineOptions options = planning_pipeline(target_of(graph));
  auto passes = all_passes(options);
  auto grouping = std::ranges::find(passes, "recompute", &Pass::name);
  passes.erase(grouping, passes.end());
  graph = run_passes(std::move(graph), passes, options);
  return recompute_curve(graph, options.recompute, kShares);
}

// Of one whose gradients are asked for by others.
std::vector<KeepPoint> curve_of_parts(Graph joint, const Segment& segment) {
  size_t inputs = joint.inputs().size(), results = joint.outputs().size();
  auto& backward = *segment.backward;
  std::vector<Value> outputs = joint.outputs(), operands;
  for (int read : backward.reads) operands.push_back(joint.inputs()[size_t(read)]);
  for (size_t i = backward.reads.size(); i < backward.whole.inputs().size(); ++i)
    operands.push_back(joint.add_input(backward.whole.inputs()[i].type(), "tangent"));
  for (auto& v : inline_graph(backward.whole, operands, joint)) outputs.push_back(v);
  joint.set_outputs(std::move(outputs));
  PartitionOptions options;
  options.recompute.seconds = least_seconds;
  return partition_curve(joint, inputs, results, options, kShares);
}

}  // namespace

std::vector<Explanation::Activations> activations_of(const Segment& segment) {
  const bool parts = segment.backward && segment.backward->run;
  if (!parts && segment.text.find("<phase ") == std::string::npos) return {};
  TracerScope none(nullptr);
  Graph graph = Graph::parse(segment.text);
  std::vector<Explanation::Activations> out;
  for (auto& point : parts ? curve_of_parts(std::move(graph), segment) : curve_of_flow(std::move(graph)))
    out.push_back({point.budget, point.bytes, point.seconds});
  return out;
}

}  // namespace sinter::capture
