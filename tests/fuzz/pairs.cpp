#include "tests/fuzz/pairs.h"

#include <set>

#include "sinter/base/format.h"
#include "sinter/engine/executable.h"
#include "sinter/graph/run.h"
#include "tests/fuzz/op_uses.h"

namespace sinter::fuzz {

namespace {

struct Met {
  std::set<const Op*> ops;
  std::set<std::pair<const Op*, const Op*>> pairs;
  int tried = 0, succeeded = 0;
};
Met& met() {
  static Met all;
  return all;
}

void note(const Graph& graph) {
  for (auto& node : graph.nodes()) {
    met().ops.insert(node.op);
    for (auto& input : node.inputs)
      if (input.node->op != &kInputOp && input.node->op != &kScalarOp) met().pairs.emplace(input.node->op, node.op);
  }
}

GraphFunction counted(const Graph& graph) {
  note(graph);
  return [&graph](std::span<const TensorArg> inputs) { return run_graph(graph, inputs); };
}

}  // namespace

std::string pair_counting_backend() {
  static const bool registered = (register_backend("pairs", counted), true);
  return registered ? "pairs" : "";
}

void note_pairs_of(uint32_t seed) {
  for (int k = 0; k < kPairs; ++k) {
    OpPair pair = pair_of(seed, k);
    ++met().tried;
    met().succeeded += met().pairs.contains({pair.producer, pair.consumer});
  }
}

std::string pair_report() {
  std::string unseen;
  int count = 0;
  for (auto* op : drawn_ops())
    if (!met().ops.contains(op)) unseen += format("{}{}", count++ ? ", " : ": ", op->name);
  return format("{} of {} pairs of ops met, {} of the {} that were tried; {} of {} ops unseen{}", met().pairs.size(),
                pair_count(), met().succeeded, met().tried, count, drawn_ops().size(), unseen);
}

}  // namespace sinter::fuzz
