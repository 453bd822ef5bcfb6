#include "sinter/engine/referee/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sinter/base/hash.h"
#include "sinter/engine/cost.h"
#include "sinter/graph/interpreter/number.h"
#include "sinter/graph/tolerance.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/decompose.h"

namespace sinter::referee {

namespace {

constexpr double kAnything = std::numeric_limits<double>::infinity();
// How far operands of an op with code of its own (branches, loops, orderings) are moved, in units of the last place.
constexpr double kShake = 16;
constexpr int kPatterns = 6;

using Operands = std::span<const Bounded* const>;
using Errors = std::vector<double>;

bool is_exact(const Bounded& b) { return b.error.empty(); }

// How many terms a sum of the op has.
double terms_of(const OpCall& call, const Type& result) {
  if (call.op.kind == OpKind::kScan)
    return result.rank() ? double(result.shape[size_t(call.op.scan_dim(call))].number()) : 1;
  double results = 1;
  for (auto& d : result.shape) results *= double(d.number());
  double points = double(points_of(call, {&result, 1}));
  return call.op.kind == OpKind::kScatter ? points + 1 : points / std::max(results, 1.0);
}

Combine combine_of(const OpCall& call) {
  return call.op.kind == OpKind::kScatter ? call.op.scatter_combine(call) : call.op.combine;
}

double distance(const Array& a, const Array& b, int64_t at) {
  if (!a.floating()) return a.i[size_t(at)] == b.i[size_t(at)] ? 0 : std::abs(double(a.i[size_t(at)]) - double(b.i[size_t(at)]));
  double x = a.f[size_t(at)], y = b.f[size_t(at)];
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  double d = std::abs(x - y);
  return std::isnan(d) ? kAnything : d;
}

// The operand with every element moved by its error times what `by` gives: in [-1, 1]. A truth value turns around.
template <class F>
Array moved(const Bounded& b, F by) {
  Array out = b.value.array();
  for (size_t at = 0; at < b.error.size(); ++at) {
    double error = b.error[at];
    if (error == 0) continue;
    if (out.floating())
      out.f[at] += by(at) * error;
    else if (out.dtype == kBool)
      out.i[at] = !out.i[at];
    else
      out.i[at] = std::isfinite(error) ? out.i[at] + int64_t(by(at) * error) : by(at) > 0 ? 0 : 1;
  }
  return out;
}

// A number in [-1, 1] that depends on its place alone.
double pattern(int which, size_t at) { return double(hash_mix(uint64_t(which) + 77, at) >> 11) * 0x1p-52 - 1; }

class OpBounds {
 public:
  OpBounds(const OpCall& call, Operands inputs) : call_(call), inputs_(inputs), types_(infer_types(call.op, call.inputs, call.attrs)) {
    for (auto* input : inputs) {
      values_.push_back(&input->value);
      exact_ = exact_ && is_exact(*input);
      exact_integers_ = exact_integers_ && (is_exact(*input) || is_floating(input->value.dtype()));
    }
  }

  std::vector<Bounded> run() {
    outputs_ = evaluate(call_, values_);
    for (auto& output : outputs_) errors_.emplace_back(size_t(output.numel()), 0.0);
    switch (call_.op.kind) {
      case OpKind::kPointwise: pass_on_pointwise(); break;
      case OpKind::kOpaque:
      case OpKind::kComposite: shake(); break;
      default: pass_on(); break;
    }
    std::vector<Bounded> out;
    for (size_t r = 0; r < outputs_.size(); ++r) {
      add_own(r);
      bool exact = std::all_of(errors_[r].begin(), errors_[r].end(), [](double e) { return e == 0; });
      out.push_back({std::move(outputs_[r]), exact ? Errors() : std::move(errors_[r])});
    }
    return out;
  }

 private:
  // The op on other operands.
  std::vector<Array> on(std::vector<Array> arrays) const {
    std::vector<Known> known(std::make_move_iterator(arrays.begin()), std::make_move_iterator(arrays.end()));
    std::vector<const Known*> pointers;
    for (auto& k : known) pointers.push_back(&k);
    return evaluate(call_, pointers);
  }

  // One operand after the other, each moved up and down, and to zero where that is as near.
  void pass_on_pointwise() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (is_exact(*inputs_[i])) continue;
      Errors worst(errors_[0].size(), 0.0);
      for (auto& there : moves_of(*inputs_[i])) {
        auto operands = values_;
        operands[i] = &there;
        note(evaluate(call_, operands)[0], worst, 0, !is_floating(there.dtype()) && there.dtype() != kBool);
        // Two values are equal in none of these places, however near they are: what counts is whether their order changes.
        if (call_.op.pointwise->typing == Typing::kCompare) note_order(operands, worst);
      }
      for (size_t at = 0; at < worst.size(); ++at) errors_[0][at] += worst[at];
    }
  }

  static std::vector<Known> moves_of(const Bounded& operand) {
    std::vector<Known> out;
    if (operand.value.dtype() == kBool) {
      out.emplace_back(moved(operand, [](size_t) { return 1; }));
      return out;
    }
    for (double by : {1.0, -1.0}) out.emplace_back(moved(operand, [by](size_t) { return by; }));
    if (operand.value.array().floating()) {
      Array zeros = operand.value.array();
      bool any = false;
      for (size_t at = 0; at < zeros.f.size(); ++at)
        if (zeros.f[at] != 0 && std::abs(zeros.f[at]) <= operand.error[at]) zeros.f[at] = 0, any = true;
      if (any) out.emplace_back(std::move(zeros));
    }
    return out;
  }

  void note_order(const std::vector<const Known*>& there, Errors& worst) const {
    const Op& less = known_ops().lt;
    OpCall call{less, call_.inputs, {}};
    Array before = std::move(evaluate(call, values_)[0]), after = std::move(evaluate(call, there)[0]);
    for (size_t at = 0; at < worst.size(); ++at)
      if (before.i[at] != after.i[at]) worst[at] = std::max(worst[at], 1.0);
  }

  void note(const Array& there, Errors& worst, size_t r, bool or_anything = false) const {
    if (there.sizes != outputs_[r].sizes) {
      std::fill(worst.begin(), worst.end(), kAnything);
      return;
    }
    for (size_t at = 0; at < worst.size(); ++at) {
      double d = distance(there, outputs_[r], int64_t(at));
      worst[at] = std::max(worst[at], or_anything && d > 0 ? kAnything : d);
    }
  }

  void pass_on() {
    Combine combine = combine_of(call_);
    bool sums = combine == Combine::kSum && outputs_[0].floating();
    if (!exact_integers_) {
      bool truths = combine == Combine::kAny || combine == Combine::kAll;
      truths ? pass_on_truths() : std::fill(errors_[0].begin(), errors_[0].end(), kAnything);
    } else if (sums) {
      pass_on_sum();
    } else if (exact_) {
      return;
    } else if (combine == Combine::kArgMax || combine == Combine::kArgMin) {
      pass_on_search();
    } else {
      for (double by : {1.0, -1.0}) note(on(all_moved([by](size_t) { return by; }))[0], errors_[0], 0);
      if (combine == Combine::kAny || combine == Combine::kAll) note_zeros();
    }
    if (combine == Combine::kProd) add_terms(outputs_[0]);
  }

  template <class F>
  std::vector<Array> all_moved(F by) const {
    std::vector<Array> out;
    for (auto* input : inputs_) out.push_back(moved(*input, by));
    return out;
  }

  // Every term of a sum or of a sum of products grows with the magnitudes of the operands.
  void pass_on_sum() {
    auto magnitudes = [&](bool with_errors) {
      std::vector<Array> out;
      for (auto* input : inputs_) {
        out.push_back(input->value.array());
        for (double& value : out.back().f) value = std::abs(value);
        for (size_t at = 0; with_errors && at < input->error.size(); ++at) out.back().f[at] += input->error[at];
      }
      return out;
    };
    Array magnitude = std::move(on(magnitudes(false))[0]);
    if (!exact_) note_growth(on(magnitudes(true))[0], magnitude);
    add_terms(magnitude);
  }

  void note_growth(const Array& most, const Array& least) {
    for (size_t at = 0; at < errors_[0].size(); ++at) errors_[0][at] += distance(most, least, int64_t(at));
  }

  void add_terms(const Array& magnitude) {
    if (!magnitude.floating()) return;
    Precision p = precision_of(magnitude.dtype);
    double unit = call_.op.tolerance.partial ? std::max(p.computing, p.storing) : p.computing;
    double each = (8 + 4 * std::sqrt(terms_of(call_, types_[0]))) * unit;
    for (size_t at = 0; at < errors_[0].size(); ++at) errors_[0][at] += each * std::abs(magnitude.f[at]);
  }

  void pass_on_truths() {
    for (int64_t truth : {0, 1}) {
      std::vector<Array> set;
      for (auto* input : inputs_) {
        set.push_back(input->value.array());
        for (size_t at = 0; at < input->error.size(); ++at)
          if (input->error[at] > 0) set.back().i[at] = truth;
      }
      note(on(set)[0], errors_[0], 0);
    }
  }

  // Truth values of numbers that may as well be zero.
  void note_zeros() {
    std::vector<Array> operands;
    for (auto* input : inputs_) operands.push_back(is_exact(*input) ? input->value.array() : moves_of(*input).back().array());
    note(on(operands)[0], errors_[0], 0);
  }

  void pass_on_search() {
    for (int which = 0; which < kPatterns; ++which)
      note(on(all_moved([which](size_t at) { return pattern(which, at); }))[0], errors_[0], 0, true);
  }

  // An op whose inside nobody sees. What it gives in integers is either exact or could be anything.
  void shake() {
    std::vector<Bounded> shaken;
    for (auto* input : inputs_) {
      Bounded b{input->value.array(), input->error};
      if (b.value.array().floating()) {
        double unit = kShake * precision_of(b.value.dtype()).computing;
        b.error.resize(size_t(b.value.numel()), 0.0);
        for (size_t at = 0; at < b.error.size(); ++at) b.error[at] += unit * std::abs(b.value.array().f[at]);
      }
      shaken.push_back(std::move(b));
    }
    std::vector<Errors> worst;
    for (size_t r = 0; r < outputs_.size(); ++r) worst.emplace_back(errors_[r].size(), 0.0);
    bool floating = std::any_of(outputs_.begin(), outputs_.end(), [](auto& o) { return o.floating(); });
    for (int which = 0; floating && which < kPatterns / 2; ++which) {
      std::vector<Array> operands;
      for (auto& b : shaken) operands.push_back(moved(b, [which](size_t at) { return pattern(which, at); }));
      auto there = on(operands);
      for (size_t r = 0; r < outputs_.size(); ++r) note(there[r], worst[r], r);
    }
    for (size_t r = 0; r < outputs_.size(); ++r)
      for (size_t at = 0; at < worst[r].size(); ++at)
        errors_[r][at] = outputs_[r].floating() ? 4 * worst[r][at] : exact_ ? 0 : kAnything;
  }

  // What the op itself may be off by.
  void add_own(size_t r) {
    const Array& out = outputs_[r];
    if (!out.floating()) return;
    Precision p = precision_of(out.dtype);
    Tolerance tolerance = call_.op.tolerance;
    if (combine_of(call_) == Combine::kSum && call_.op.kind != OpKind::kOpaque) tolerance.absolute = 0;  // its terms say how much
    bool rounds_right = tolerance.ulp <= 2 && tolerance.absolute == 0;
    for (size_t at = 0; at < errors_[r].size(); ++at) {
      double w = out.f[at], &error = errors_[r][at];
      if (std::isnan(error) || (std::isfinite(w) && std::abs(w) > p.largest)) error = kAnything;
      bool exact = error == 0 && rounds_right && interpreter::round_to(out.dtype, w) == w;
      if (!exact && std::isfinite(w)) error += allowed_error(out.dtype, tolerance, w);
    }
  }

  const OpCall& call_;
  Operands inputs_;
  const std::vector<Type> types_;
  std::vector<const Known*> values_;
  std::vector<Array> outputs_;
  std::vector<Errors> errors_;
  bool exact_ = true, exact_integers_ = true;
};

// The body of a composite on the sizes at hand; nothing where it needs more than these.
std::optional<Graph> body_of(const OpCall& call) {
  Graph whole = graph_of(call.op, call.inputs, call.attrs);
  Graph body = decompose(whole);
  for (auto& node : body.nodes())
    if (node.op->kind == OpKind::kComposite) return {};
  if (body.inputs().size() != call.inputs.size()) return {};
  return body;
}

std::vector<Bounded> walk(const Graph& graph, std::vector<Bounded> inputs) {
  std::vector<std::vector<Bounded>> results(graph.nodes().size());
  std::vector<int> last_use(graph.nodes().size(), -1);
  for (auto& node : graph.nodes())
    for (auto& v : node.inputs) last_use[size_t(v.node->id)] = node.id;
  for (auto& v : graph.outputs()) last_use[size_t(v.node->id)] = int(graph.nodes().size());
  for (size_t i = 0; i < inputs.size(); ++i) results[size_t(graph.inputs()[i].node->id)].push_back(std::move(inputs[i]));
  for (auto& node : graph.nodes()) {
    if (node.op->kind == OpKind::kInput) continue;
    auto& own = results[size_t(node.id)];
    if (node.op->kind == OpKind::kScalar) {
      own.push_back({to_array(node.attrs.as<ScalarAttrs>().value)});
      continue;
    }
    std::vector<Type> types;
    std::vector<const Bounded*> operands;
    for (auto& v : node.inputs) {
      types.push_back(v.type());
      operands.push_back(&results[size_t(v.node->id)][size_t(v.index)]);
    }
    own = evaluate_bounded(OpCall{*node.op, types, node.attrs}, operands);
    for (auto& v : node.inputs)
      if (last_use[size_t(v.node->id)] == node.id) results[size_t(v.node->id)].clear();
  }
  std::vector<Bounded> out;
  for (auto& v : graph.outputs()) out.push_back(results[size_t(v.node->id)][size_t(v.index)]);
  return out;
}

}  // namespace

std::vector<Bounded> evaluate_bounded(const OpCall& call, std::span<const Bounded* const> inputs) {
  auto copies = [&] {
    std::vector<Bounded> out;
    for (auto* input : inputs) out.push_back(*input);
    return out;
  };
  if (&call.op == &fused_op()) return walk(*call.as<FusedAttrs>().body, copies());
  if (call.op.kind == OpKind::kComposite)
    if (auto body = body_of(call)) return walk(*body, copies());
  return OpBounds(call, inputs).run();
}

std::vector<Bounded> evaluate_bounded(const Graph& graph, std::vector<Known> inputs) {
  std::vector<Bounded> operands;
  for (auto& input : inputs) operands.push_back({std::move(input)});
  return walk(graph, std::move(operands));
}

}  // namespace sinter::referee
