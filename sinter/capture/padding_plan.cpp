#include "sinter/capture/padding_plan.h"

#include <algorithm>

#include "sinter/graph/rewrite.h"
#include "sinter/graph/text_scan.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/padding.h"
#include "sinter/passes/view_region.h"

namespace sinter::capture {

namespace {

// The symbol of each group.
std::vector<int> places_of(const CacheEntry& entry, std::span<const TracedDim> dims, size_t groups) {
  std::vector<int> places(groups, -1);
  auto& symbols = entry.sizes.symbols();
  for (size_t place = 0; place < symbols.size(); ++place) {
    if (symbols[place].word < 0) continue;
    auto& word = entry.guards.words()[size_t(symbols[place].word)];
    for (auto& d : dims)
      if (d.tensor == word.tensor && d.dim == word.dim) places[size_t(d.group)] = int(place);
  }
  return places;
}

// `base` with `value` at the end of the path, by ops whose elements have definitions; nothing where there are none.
Value scattered(RewriteContext& context, Value base, Value value, std::span<const ViewStep> path) {
  if (path.empty()) return value;
  ViewPath step{{path[0]}};
  Value inner = scattered(context, apply(step, context.graph(), base), value, path.subspan(1));
  if (!inner) return {};
  if (auto back = inverse(step, base.type())) return apply(*back, context.graph(), inner);
  bool slices = path[0].op == &known_ops().slice;
  if (!slices && path[0].op != &known_ops().select) return {};
  const Op& op = *find_op(slices ? "slice_scatter" : "select_scatter");
  return context.add(op, {base, inner}, op.parse(split_fields(path[0].attrs.text()))).result();
}

// The analysis knows ops by the definition of their elements, which a `write` has none of.
Graph without_writes(const Graph& graph) {
  return rewrite(graph, [](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    if (node.op != &known_ops().write) return std::nullopt;
    ViewPath path = canonical(node.attrs.as<WriteAttrs>().path, node.types[0]);
    Value value = scattered(context, context(node.inputs[0]), context(node.inputs[1]), path.steps);
    if (!value) return std::nullopt;
    return {{value}};
  });
}

void check_sound(const std::string& name, const Graph& graph, const SizeSymbol& symbol, const char* remedy) {
  auto report = check_padding(graph, symbol.name, std::vector<bool>(graph.inputs().size(), false));
  if (report.faults.empty()) return;
  throw_error(format("bucketed: {} gives wrong results where {} ({}) is padded. {}. {}", name, symbol.source,
                     symbol.name, report.faults[0].what, remedy));
}

}  // namespace

std::shared_ptr<const PaddingPlan> plan_padding(const std::string& name, const CacheEntry& entry,
                                                std::span<const TracedDim> dims, size_t groups) {
  auto plan = std::make_shared<PaddingPlan>();
  plan->places = places_of(entry, dims, groups);
  auto is_padded = [&](const Dim& d) {
    return std::any_of(plan->places.begin(), plan->places.end(),
                       [&](int place) { return d.depends_on(Dim::symbol(entry.sizes.symbols()[size_t(place)].name)); });
  };
  auto ready = [&](const Dim& d) {
    return DimProgram(d, [&](const std::string& s) { return entry.sizes.place_of(s); });
  };

  const Segment& segment = *entry.root;
  const Trace& trace = *entry.trace;
  Graph graph = without_writes(trace.graph);
  std::vector<Value> outputs = graph.outputs();
  for (int place : plan->places) {
    auto& symbol = entry.sizes.symbols()[size_t(place)];
    graph.set_outputs({outputs.begin(), outputs.end() - trace.gradients});
    check_sound(name, graph, symbol, "Mask the padding before that line, or leave the dimension out of the buckets");
    graph.set_outputs({outputs.end() - trace.gradients, outputs.end()});
    check_sound(name, graph, symbol, "This is in its gradients: call it under NoGradGuard if none are needed");
  }

  for (auto& result : trace.results) {
    auto& cuts = plan->cuts.emplace_back();
    for (size_t d = 0; result && d < result.type().shape.size(); ++d)
      if (is_padded(result.type().shape[d])) cuts.push_back({int(d), ready(result.type().shape[d])});
  }
  for (auto& size : segment.result_sizes) plan->sizes.push_back(ready(size));
  for (auto& fact : entry.sizes.facts())
    if (is_padded(fact.a) || is_padded(fact.b)) plan->asked.push_back({fact, ready(fact.a), ready(fact.b)});
  for (auto& [cell, source] : segment.bound) {
    if (source.kind != CellSource::Kind::kArgument) continue;
    auto is_its = [&, index = source.index](const TracedDim& d) { return d.tensor == index; };
    if (std::none_of(dims.begin(), dims.end(), is_its)) continue;
    for (auto& output : segment.outputs)
      if (output.written && output.cell == cell) plan->written.push_back(source.index);
    for (auto& effect : segment.grads)
      check(effect.leaf_cell != cell,
            "bucketed: {} calls backward() into {}, which is padded: its gradient would be that of the padded tensor. "
            "Return the loss and call backward() on it outside",
            name, source.name);
  }
  return plan;
}

void PaddingPlan::check_answers(const std::string& name, const SizeValues& truth) const {
  for (auto& [fact, a, b] : asked) {
    int64_t x = a(truth.data()), y = b(truth.data());
    bool holds = fact.op == DimCompare::kEqual ? x == y : fact.op == DimCompare::kLess ? x < y : x <= y;
    check(holds == fact.holds,
          "bucketed: {} relies on {} at {}, which holds for the padded size but not for the true one ({} and {}). Keep "
          "the size a Dim there, take it from a mask, or leave the dimension out of the buckets",
          name, fact.text(), fact.where, x, y);
  }
}

}  // namespace sinter::capture
