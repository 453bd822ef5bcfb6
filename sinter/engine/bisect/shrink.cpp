#include "sinter/engine/bisect/shrink.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/engine/bisect/edit.h"
#include "sinter/engine/bisect/plain_data.h"
#include "sinter/graph/rewrite.h"
#include "sinter/graph/run.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/pointwise.h"
#include "sinter/tensor/tracer.h"

namespace sinter::bisection {

namespace {

using Clock = std::chrono::steady_clock;

bool is_op(const Node& node) { return node.op->kind != OpKind::kInput && node.op->kind != OpKind::kScalar; }

class Shrinker {
 public:
  Shrinker(Trial trial, const std::function<bool(const Trial&)>& fails, const ShrinkOptions& options)
      : trial_(std::move(trial)), fails_(fails), options_(options) {}

  Trial run() {
    attempt(edited(trial_, {}));  // numbers become constants, dead nodes go
    cut_behind();
    cut_before();
    for (bool smaller = true; smaller && !late();) {
      smaller = keep_one_output();
      smaller |= cut_nodes();
      smaller |= leave_out_nodes();
      smaller |= shrink_sizes();
    }
    simplify_data();
    return std::move(trial_);
  }

 private:
  bool late() const { return std::chrono::duration<double>(Clock::now() - began_).count() > options_.seconds; }

  bool attempt(std::optional<Trial> candidate) {
    if (!candidate || late()) return false;
    bool fails = false;
    try {
      fails = fails_(*candidate);
    } catch (const Error&) {
      // What cannot be judged is no example.
    }
    if (!fails) return false;
    trial_ = std::move(*candidate);
    values_.clear();
    if (options_.on_progress) options_.on_progress(trial_);
    return true;
  }

  const Graph& graph() const { return *trial_.graph; }

  // What each node gives, eagerly.
  const TensorList& values_of(const Node& node) {
    if (values_.empty()) {
      NoGradGuard no_history;
      TracerScope none(nullptr);
      std::vector<TensorArg> inputs;
      for (auto& input : trial_.inputs) inputs.push_back(input.value);
      auto sizes = trial_.known_sizes();
      auto size_of = [&](const std::string& name) { return Dim(sizes.at(name)); };
      run_graph(graph(), inputs, size_of, [&](const Node& n, auto, auto&, std::span<const Tensor> results) {
        values_[n.id].assign(results.begin(), results.end());
      });
    }
    return values_[node.id];
  }

  // The values that nodes up to `at` make and later ones, or the caller, need.
  std::vector<Value> crossing(int at) const {
    std::vector<Value> out;
    auto add = [&](Value v) {
      bool made_here = v.node->id <= at && is_op(*v.node);
      if (made_here && std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
    };
    for (auto& node : graph().nodes())
      if (node.id > at)
        for (auto& v : node.inputs) add(v);
    for (auto& v : graph().outputs()) add(v);
    return out;
  }

  // Only the first part of the graph: the shortest that fails.
  void cut_behind() {
    int low = 0, high = int(graph().nodes().size()) - 1;
    while (low < high && !late()) {
      int at = (low + high) / 2;
      auto outputs = crossing(at);
      bool shorter = !outputs.empty() && attempt(edited(trial_, {.outputs = outputs}));
      if (shorter)
        high = std::min(at, int(graph().nodes().size()) - 1);
      else
        low = at + 1;
    }
  }

  // Only the last part: what comes before stands as operands.
  void cut_before() {
    for (int step = int(graph().nodes().size()) / 2; step > 0 && !late(); step /= 2) {
      int at = std::min(step, int(graph().nodes().size()) - 1);
      Edit edit;
      for (auto& v : crossing(at)) give(edit, v);
      if (!edit.given.empty() && attempt(edited(trial_, edit))) step = int(graph().nodes().size());
    }
  }

  void give(Edit& edit, Value v) {
    try {
      auto& made = values_of(*v.node);
      if (size_t(v.index) < made.size()) edit.given[v] = made[size_t(v.index)].clone();
    } catch (const Error&) {
      // An op that fails by itself has no value.
    }
  }

  bool keep_one_output() {
    if (graph().outputs().size() < 2) return false;
    for (auto& v : graph().outputs())
      if (attempt(edited(trial_, {.outputs = {v}}))) return true;
    return false;
  }

  // Every node by itself becomes an operand, the last ones first.
  bool cut_nodes() {
    bool any = false;
    for (int id = int(graph().nodes().size()); id-- > 0 && !late();) {
      if (id >= int(graph().nodes().size())) continue;
      auto& node = graph().nodes()[size_t(id)];
      if (!is_op(node)) continue;
      Edit edit;
      for (size_t r = 0; r < node.types.size(); ++r) give(edit, node.result(int(r)));
      any |= !edit.given.empty() && attempt(edited(trial_, edit));
    }
    return any;
  }

  // An operand of the same type in the place of the result.
  bool leave_out_nodes() {
    bool any = false;
    for (int id = int(graph().nodes().size()); id-- > 0 && !late();) {
      if (id >= int(graph().nodes().size())) continue;
      auto& node = graph().nodes()[size_t(id)];
      if (!is_op(node) || node.types.size() != 1) continue;
      for (auto& v : node.inputs) {
        if (!(v.type() == node.types[0])) continue;
        if (attempt(edited(trial_, {.instead = {{node.result(), v}}}))) {
          any = true;
          break;
        }
      }
    }
    return any;
  }

  bool shrink_sizes() {
    std::set<int64_t, std::greater<>> sizes;
    for (auto& v : graph().inputs())
      for (auto& d : v.type().shape)
        if (d.is_number() && d.number() > 1) sizes.insert(d.number());
    bool any = false;
    for (int64_t size : sizes)
      for (int64_t smaller : {int64_t(1), int64_t(2), int64_t(3), int64_t(5), int64_t(8), int64_t(17), size / 4, size / 2}) {
        if (smaller >= size || smaller < 1) continue;
        if (attempt(with_size(size, smaller))) {
          any = true;
          break;
        }
      }
    return any;
  }

  std::optional<Trial> with_size(int64_t size, int64_t smaller) const {
    NoGradGuard no_history;
    Edit edit;
    edit.sizes = [=](const Dim& d) { return d.is_number() && d.number() == size ? Dim(smaller) : d; };
    edit.inputs = [=](size_t, const TrialInput& before) {
      if (before.value.is_scalar()) return before;
      Tensor tensor = before.value.tensor();
      for (int64_t d = 0; d < tensor.dim(); ++d)
        if (tensor.impl().sizes[size_t(d)] == size) tensor = tensor.slice(d, 0, smaller);
      // Positions stay inside.
      if (!is_floating(tensor.dtype()) && tensor.dtype() != kBool) tensor = remainder(tensor, smaller);
      return TrialInput{TensorArg(tensor.clone())};
    };
    return edited(trial_, edit);
  }

  void simplify_data() {
    for (size_t i = 0; i < trial_.inputs.size(); ++i) {
      if (trial_.inputs[i].value.is_scalar()) continue;
      auto with = [&](const TrialInput& plain) {
        Edit edit;
        edit.inputs = [&](size_t at, const TrialInput& before) { return at == i ? plain : before; };
        return attempt(edited(trial_, edit));
      };
      Tensor tensor = trial_.inputs[i].value.tensor();
      if (!tensor.is_contiguous() && with({TensorArg(tensor.contiguous())})) tensor = trial_.inputs[i].value.tensor();
      for (auto& plain : plain_inputs(tensor))
        if (with(plain)) break;
    }
  }

  Trial trial_;
  const std::function<bool(const Trial&)>& fails_;
  const ShrinkOptions& options_;
  const Clock::time_point began_ = Clock::now();
  std::map<int, TensorList> values_;  // by node
};

}  // namespace

int64_t op_count(const Graph& graph) { return std::count_if(graph.nodes().begin(), graph.nodes().end(), is_op); }

Trial shrink(Trial trial, const std::function<bool(const Trial& trial)>& fails, const ShrinkOptions& options) {
  return Shrinker(std::move(trial), fails, options).run();
}

}  // namespace sinter::bisection
