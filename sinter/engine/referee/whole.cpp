#include "sinter/engine/referee/whole.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/engine/cost.h"
#include "sinter/graph/tolerance.h"

namespace sinter::referee {

namespace {

constexpr int kTrials = 3;
// Allowed beyond what the trials have moved: there are few of them.
constexpr double kMargin = 8;

// One run; trial 0 disturbs nothing.
class Run {
 public:
  Run(const Graph& graph, std::map<std::string, int64_t> sizes, int trial)
      : graph_(graph), symbols_(std::move(sizes)), trial_(uint64_t(trial)), results_(graph.nodes().size()) {}

  std::vector<Array> operator()(std::span<const Known> inputs) {
    check(inputs.size() == graph_.inputs().size(), "the graph takes {} inputs, not {}", graph_.inputs().size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      results_[size_t(graph_.inputs()[i].node->id)] = {&inputs[i]};
      bind(graph_.inputs()[i].type(), inputs[i].sizes());
    }
    find_last_uses();
    for (auto& node : graph_.nodes()) {
      if (last_use_[size_t(node.id)] < 0 || node.op->kind == OpKind::kInput) continue;
      run(node);
      for (auto& v : node.inputs)
        if (last_use_[size_t(v.node->id)] == node.id) made_.erase(v.node->id);
    }
    std::vector<Array> out;
    for (auto& v : graph_.outputs()) out.push_back(known(v).array());
    return out;
  }

 private:
  const Known& known(Value v) const { return *results_[size_t(v.node->id)][size_t(v.index)]; }

  void bind(const Type& type, const IntList& sizes) {
    for (size_t d = 0; d < sizes.size() && d < type.shape.size(); ++d) {
      auto names = type.shape[d].symbols();
      if (names.size() == 1 && type.shape[d].same_as(Dim::symbol(names[0]))) symbols_.try_emplace(names[0], sizes[d]);
    }
  }

  void find_last_uses() {
    last_use_.assign(graph_.nodes().size(), -1);
    for (auto& v : graph_.outputs()) last_use_[size_t(v.node->id)] = int(graph_.nodes().size());
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
      if (last_use_[size_t(it->id)] >= 0)
        for (auto& v : it->inputs) last_use_[size_t(v.node->id)] = std::max(last_use_[size_t(v.node->id)], it->id);
  }

  void keep(const Node& node, std::vector<Array> arrays) {
    auto& own = made_[node.id];
    own.assign(std::make_move_iterator(arrays.begin()), std::make_move_iterator(arrays.end()));
    for (size_t r = 0; r < own.size(); ++r) {
      bind(node.types[r], own[r].sizes());
      results_[size_t(node.id)].push_back(&own[r]);
    }
  }

  void run(const Node& node) {
    if (node.op->kind == OpKind::kScalar) return keep(node, {to_array(node.attrs.as<ScalarAttrs>().value)});
    std::vector<Type> types;
    std::vector<const Known*> operands;
    for (auto& v : node.inputs) {
      types.push_back({known(v).dtype(), Shape(known(v).sizes()), v.type().device, v.type().weak});
      operands.push_back(&known(v));
    }
    Attrs attrs = symbols_.empty() ? node.attrs : node.attrs.substitute([&](const std::string& name) {
      auto it = symbols_.find(name);
      check(it != symbols_.end(), "no input of the graph gives the symbolic size {} a value", name);
      return Dim(it->second);
    });
    OpCall call{*node.op, types, attrs};
    std::vector<Known> disturbed;
    if (trial_ && node.op->combine == Combine::kSum) disturbed = disturbed_terms(call, operands);
    if (trial_ && compares_computed(node)) disturbed = coarsened(operands);
    auto results = evaluate(call, operands);
    if (trial_)
      for (auto& array : results) disturb(node, array);
    keep(node, std::move(results));
  }

  // In [-1, 1], by trial, node and element.
  double pattern(int node, size_t at) const {
    return double(hash_mix(hash_mix(trial_, uint64_t(node)), at) >> 11) * 0x1p-52 - 1;
  }

  void disturb(const Node& node, Array& array) const {
    Tolerance tolerance = node.op->tolerance;
    if (node.op->combine == Combine::kSum) tolerance.absolute = 0;  // its terms say how much
    if (!array.floating() || node.op->kind == OpKind::kView) return;
    Precision p = precision_of(array.dtype);
    for (size_t at = 0; at < array.f.size(); ++at) {
      double& value = array.f[at];
      if (value == 0 || !std::isfinite(value)) continue;
      value += pattern(node.id, at) * allowed_error(array.dtype, tolerance, value);
      // What the dtype cannot hold.
      if (std::abs(value) > p.largest) value = std::copysign(std::numeric_limits<double>::infinity(), value);
      if (std::abs(value) < p.smallest) value = 0;
    }
  }

  static bool compares_computed(const Node& node) {
    bool compares = node.op->pointwise && node.op->pointwise->typing == Typing::kCompare;
    auto given = [](const Value& v) { return v.node->op->kind == OpKind::kInput || v.node->op->kind == OpKind::kScalar; };
    return compares && !std::all_of(node.inputs.begin(), node.inputs.end(), given);
  }

  // Values that are nearly equal become equal: disturbed ones never are. Two grids, for what lies beside a step of one.
  std::vector<Known> coarsened(std::vector<const Known*>& operands) const {
    std::vector<Known> out;
    out.reserve(operands.size());
    for (auto& operand : operands) {
      if (!is_floating(operand->dtype())) continue;
      Array array = operand->array();
      double steps = 1 / (64 * std::max(precision_of(array.dtype).computing, precision_of(array.dtype).storing));
      double shift = trial_ % 2 ? 0 : 0.5;
      for (double& value : array.f) {
        int exponent;
        double mantissa = std::frexp(value, &exponent);
        if (value != 0 && std::isfinite(value)) value = std::ldexp((std::floor(mantissa * steps + shift) + 0.5 - shift) / steps, exponent);
      }
      out.emplace_back(std::move(array));
      operand = &out.back();
    }
    return out;
  }

  // What the rounding of many additions amounts to.
  std::vector<Known> disturbed_terms(const OpCall& call, std::vector<const Known*>& operands) const {
    auto types = infer_types(call.op, call.inputs, call.attrs);
    double results = 1, points = double(points_of(call, types));
    for (auto& d : types[0].shape) results *= double(d.number());
    double each = (4 + std::sqrt(points / std::max(results, 1.0))) * precision_of(types[0].dtype).computing;
    // One factor will do: the smallest.
    size_t least = operands.size();
    for (size_t i = 0; i < operands.size(); ++i)
      if (is_floating(operands[i]->dtype()) && (least == operands.size() || operands[i]->numel() < operands[least]->numel())) least = i;
    std::vector<Known> out;
    if (least == operands.size()) return out;
    Array array = operands[least]->array();
    for (size_t at = 0; at < array.f.size(); ++at) array.f[at] *= 1 + each * pattern(-1, at);
    out.emplace_back(std::move(array));
    operands[least] = &out.back();
    return out;
  }

  const Graph& graph_;
  std::map<std::string, int64_t> symbols_;
  const uint64_t trial_;
  std::vector<int> last_use_;
  std::vector<std::vector<const Known*>> results_;  // by node
  std::map<int, std::vector<Known>> made_;          // by node: those that are still needed
};

void note_moves(const Array& base, const Array& there, std::vector<double>& moves) {
  constexpr double kAnything = std::numeric_limits<double>::infinity();
  if (base.sizes != there.sizes || (!base.floating() && base.i != there.i)) {
    std::fill(moves.begin(), moves.end(), kAnything);
    return;
  }
  if (!base.floating()) return;
  for (size_t at = 0; at < moves.size(); ++at) {
    double x = base.f[at], y = there.f[at], d = x == y || (std::isnan(x) && std::isnan(y)) ? 0 : std::abs(x - y);
    moves[at] = std::max(moves[at], std::isnan(d) ? kAnything : d);
  }
}

// What is allowed where rounding moves elements by so much. Few trials may leave one out that its neighbours move like.
void allow(const Array& base, std::vector<double>& moves) {
  if (!base.floating()) return;
  double squares = 0, count = 0;
  for (double d : moves)
    if (std::isfinite(d)) squares += d * d, ++count;
  double usual = count > 0 ? std::sqrt(squares / count) : 0;
  for (size_t at = 0; at < moves.size(); ++at) {
    moves[at] *= kMargin;
    if (!std::isfinite(base.f[at])) continue;
    moves[at] += 2 * usual + allowed_error(base.dtype, {.ulp = 4}, base.f[at]);
    if (std::abs(base.f[at]) > precision_of(base.dtype).largest) moves[at] = std::numeric_limits<double>::infinity();
  }
}

}  // namespace

std::vector<Array> evaluate_graph(const Graph& graph, std::span<const Known> inputs, const std::map<std::string, int64_t>& sizes) {
  return Run(graph, sizes, 0)(inputs);
}

Whole evaluate_whole(const Graph& graph, std::span<const Known> inputs, const std::map<std::string, int64_t>& sizes) {
  Whole out{evaluate_graph(graph, inputs, sizes), {}};
  for (auto& result : out.results) out.allowed.emplace_back(size_t(result.numel()), 0.0);
  for (int trial = 1; trial <= kTrials; ++trial) {
    auto there = Run(graph, sizes, trial)(inputs);
    for (size_t r = 0; r < there.size(); ++r) note_moves(out.results[r], there[r], out.allowed[r]);
  }
  for (size_t r = 0; r < out.results.size(); ++r) allow(out.results[r], out.allowed[r]);
  return out;
}

}  // namespace sinter::referee
