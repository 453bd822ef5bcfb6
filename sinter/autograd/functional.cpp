#include "sinter/autograd/functional.h"

#include <numeric>
#include <unordered_set>

#include "sinter/autograd/history.h"
#include "sinter/ops/batching.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::func {

namespace {

using autograd::Edge;
using autograd::Node;

// Whether someone around a vmap() takes gradients of what is behind its tensors.
bool is_recorded_outside(const Tensor& tensor) {
  auto* batch = BatchTracer::current();
  if (!batch) return false;
  Tensor outside = batch->outside(tensor);
  TracerScope scope(batch->outer());
  return autograd::needs_gradient(outside) || is_recorded_outside(outside);
}

// A tensor that stands for an argument: gradients are taken of it, and flow on to the argument where that has a history.
Tensor own_leaf(const Tensor& x, std::unordered_set<const TensorImpl*>& own) {
  auto* batch = BatchTracer::current();
  Tensor here = batch && !batch->keeps_history(x) ? batch->enter(x, false) : x;
  if (autograd::needs_gradient(here)) return alias(here);
  Tensor leaf = autograd::detached(here);
  leaf.impl().requires_grad = true;
  own.insert(leaf.impl_ptr().get());
  return leaf;
}

// Whether gradients of the outputs would come to other leaves than these: then what is computed here is recorded, too.
bool leads_elsewhere(const TensorList& outputs, const std::unordered_set<const TensorImpl*>& own) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> pending;
  bool elsewhere = false;
  auto visit = [&](const Edge& edge) {
    if (edge.leaf && !own.contains(edge.leaf.get())) elsewhere = true;
    if (edge.node && seen.insert(edge.node.get()).second) pending.push_back(edge.node.get());
  };
  for (auto& edge : autograd::gradient_edges(outputs)) visit(edge);
  while (!pending.empty() && !elsewhere) {
    const Node* node = pending.back();
    pending.pop_back();
    for (auto& edge : node->edges()) visit(edge);
  }
  for (auto& output : outputs) elsewhere = elsewhere || is_recorded_outside(output);
  return elsewhere;
}

// f on tensors that stand for the inputs, recorded.
struct Recorded {
  Recorded(const Map& f, const TensorList& inputs, const std::vector<bool>& wanted) {
    EnableGradGuard recorded;
    std::unordered_set<const TensorImpl*> own;
    TensorList given = inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (wanted[i]) leaves.push_back(given[i] = own_leaf(inputs[i], own));
    outputs = f(given);
    for (auto& output : outputs) check(output.defined(), "a result of the function is undefined");
    again = leads_elsewhere(outputs, own);
  }

  // Gradients of the leaves; zeros of those that the outputs do not depend on.
  TensorList gradients(const TensorList& grads, bool create_graph, bool batched = false) const {
    TensorList of, from;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!autograd::needs_gradient(outputs[i])) continue;
      of.push_back(outputs[i]);
      from.push_back(grads[i]);
    }
    TensorList found(leaves.size());
    if (!of.empty()) found = autograd::grad(of, leaves, from, true, create_graph, true, batched);
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i].defined()) continue;
      Shape shape = leaves[i].sizes();
      if (batched) shape.insert(shape.begin(), grads[0].size(0));
      found[i] = zeros(shape, leaves[i].options());
    }
    return found;
  }

  // The outputs as the caller may have them: without the part of their history that ends here.
  TensorList results() const {
    TensorList out = outputs;
    if (!again)
      for (auto& t : out) t = t.detach();
    return out;
  }

  TensorList leaves, outputs;
  bool again = false;
};

bool records() { return autograd::grad_enabled(); }

Tensor flat_eye(const Tensor& like) {
  Dim n = like.numel();
  Shape shape{n};
  shape.append(like.sizes());
  return reshape(eye(n, like.options()), shape);
}

Shape joined(const Shape& a, const Shape& b) {
  Shape out = a;
  out.append(b);
  return out;
}

std::vector<bool> only(size_t argnum, size_t count, const char* name) {
  check(argnum < count, "{}: there is no argument {}, but {} in all", name, argnum, count);
  std::vector<bool> wanted(count);
  wanted[argnum] = true;
  return wanted;
}

}  // namespace

std::vector<int64_t> detail::positions_of(int64_t argnum, const std::vector<size_t>& counts) {
  check(argnum >= 0 && argnum < int64_t(counts.size()), "grad: there is no argument {}, but {} in all", argnum, counts.size());
  const auto at = counts.begin() + argnum;
  std::vector<int64_t> positions(*at);
  std::iota(positions.begin(), positions.end(), std::accumulate(counts.begin(), at, int64_t(0)));
  return positions;
}

std::vector<std::optional<int64_t>> detail::dims_of(const std::vector<std::optional<int64_t>>& in_dims,
                                                    const std::vector<size_t>& counts) {
  check(in_dims.size() == 1 || in_dims.size() == counts.size(), "vmap: {} in_dims for {} arguments", in_dims.size(), counts.size());
  std::vector<std::optional<int64_t>> all;
  for (size_t i = 0; i < counts.size(); ++i) all.insert(all.end(), counts[i], in_dims[in_dims.size() == 1 ? 0 : i]);
  return all;
}

std::pair<TensorList, TensorList> detail::grad_and_value(const Map& f, const TensorList& inputs,
                                                         const std::vector<int64_t>& positions) {
  std::vector<bool> wanted(inputs.size());
  for (int64_t at : positions) wanted[size_t(at)] = true;
  Recorded run(f, inputs, wanted);
  check(run.outputs[0].numel().same_as(1), "grad: the function gives a tensor of shape {}, not one number; see jacrev()",
        run.outputs[0].sizes());
  Tensor one = ones(run.outputs[0].sizes(), run.outputs[0].options());
  run.outputs.resize(1);
  return {run.gradients({one}, run.again && records()), run.results()};
}

std::pair<TensorList, Map> vjp(const Map& f, const TensorList& inputs) {
  auto run = std::make_shared<const Recorded>(f, inputs, std::vector<bool>(inputs.size(), true));
  Map pull = [run](const TensorList& grads) {
    check(grads.size() == run->outputs.size(), "vjp: {} gradients for {} results", grads.size(), run->outputs.size());
    bool recorded = run->again;
    for (auto& g : grads) recorded = recorded || autograd::needs_gradient(g) || is_recorded_outside(g);
    return run->gradients(grads, recorded && records());
  };
  return {run->results(), pull};
}

// The gradient u → vjp(u) is linear in u; its own vjp, whatever u is, is the jvp.
std::pair<TensorList, TensorList> jvp(const Map& f, const TensorList& inputs, const TensorList& tangents) {
  check(inputs.size() == tangents.size(), "jvp: {} tangents for {} inputs", tangents.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    check(inputs[i].sizes() == tangents[i].sizes(), "jvp: the tangent of input {} has shape {}, the input {}", i,
          tangents[i].sizes(), inputs[i].sizes());
  Recorded run(f, inputs, std::vector<bool>(inputs.size(), true));
  Map pull = [&](const TensorList& grads) {
    EnableGradGuard recorded;
    return run.gradients(grads, true);
  };
  TensorList any;
  for (auto& output : run.outputs) any.push_back(zeros(output.sizes(), output.options()));
  Recorded linear(pull, any, std::vector<bool>(any.size(), true));
  bool recorded = run.again;
  for (auto& t : tangents) recorded = recorded || autograd::needs_gradient(t) || is_recorded_outside(t);
  TensorList changes = linear.gradients(tangents, recorded && records());
  return {run.results(), changes};
}

TensorList detail::jacrev(const Map& f, const TensorList& inputs, size_t argnum) {
  Recorded run(f, inputs, only(argnum, inputs.size(), "jacrev"));
  TensorList out;
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    Recorded one = run;
    one.outputs = {run.outputs[i]};
    Tensor rows = one.gradients({flat_eye(run.outputs[i])}, run.again && records(), true)[0];
    out.push_back(reshape(rows, joined(run.outputs[i].sizes(), inputs[argnum].sizes())));
  }
  return out;
}

TensorList detail::jacfwd(const Map& f, const TensorList& inputs, size_t argnum) {
  only(argnum, inputs.size(), "jacfwd");
  const Tensor& x = inputs[argnum];
  auto column = [&](const TensorList& tangent) {
    auto of_one = [&](const TensorList& replaced) {
      TensorList given = inputs;
      given[argnum] = replaced[0];
      return f(given);
    };
    return jvp(of_one, {x}, tangent).second;
  };
  TensorList columns = over_batch({flat_eye(x)}, column), out;
  for (auto& each : columns) {
    Shape shape = each.sizes();
    Shape result(shape.begin() + 1, shape.end());
    out.push_back(reshape(movedim(each, 0, -1), joined(result, x.sizes())));
  }
  return out;
}

TensorList detail::vmap(const Map& f, const TensorList& inputs, const std::vector<std::optional<int64_t>>& in_dims,
                        const std::vector<int64_t>& out_dims, const std::string& randomness) {
  check(randomness == "error" || randomness == "different" || randomness == "same",
        "vmap: randomness is \"error\", \"different\" or \"same\", not \"{}\"", randomness);
  std::optional<Dim> size;
  TensorList moved = inputs;
  std::vector<bool> batched;
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto dim = in_dims[i];
    batched.push_back(dim.has_value() && inputs[i].defined());
    if (!batched.back()) continue;
    check(*dim >= -inputs[i].dim() && *dim < inputs[i].dim(), "vmap: argument {} of shape {} has no dimension {}", i,
          inputs[i].sizes(), *dim);
    moved[i] = *dim == 0 ? inputs[i] : movedim(inputs[i], *dim, 0);
    check(!size || *size == moved[i].size(0), "vmap: argument {} has {} elements along its batch dimension, those before {}", i,
          moved[i].size(0), size.value_or(0));
    size = moved[i].size(0);
  }
  check(size.has_value(), "vmap: at least one argument needs a batch dimension: in_dims are all empty");
  BatchTracer level(*size, randomness == "error"       ? Randomness::kError
                           : randomness == "different" ? Randomness::kDifferent
                                                       : Randomness::kSame);
  TensorList inside, results;
  for (size_t i = 0; i < moved.size(); ++i) inside.push_back(batched[i] ? level.enter(moved[i], true) : moved[i]);
  {
    TracerScope scope(&level);
    results = f(inside);
  }
  check(out_dims.size() == 1 || out_dims.size() == results.size(), "vmap: {} out_dims for {} results", out_dims.size(),
        results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    check(results[i].defined(), "vmap: result {} of the function is undefined", i);
    int64_t to = out_dims[out_dims.size() == 1 ? 0 : i];
    results[i] = level.leave(results[i]);
    if (to != 0) results[i] = movedim(results[i], 0, to);
  }
  return results;
}

}  // namespace sinter::func
