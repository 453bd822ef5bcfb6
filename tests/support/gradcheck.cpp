#include "tests/support/gradcheck.h"

#include <cmath>
#include <random>

#include "sinter/autograd/autograd.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/creation.h"

namespace sinter {

namespace {

// Reproducible numbers in [-1, 1].
Array random_array(DType dtype, const IntList& sizes, uint32_t seed) {
  Array out(dtype, sizes);
  std::mt19937 bits(seed);
  for (int64_t at = 0; at < out.numel(); ++at) out.set(at, double(bits()) / double(UINT32_MAX) * 2 - 1);
  return out;
}

// A traced function of the inputs, and the arrays of eager tensors that it met on the way: the graph's last inputs.
struct Traced {
  Graph graph;
  std::vector<Array> captured;
};

Traced trace_with(const TensorFunction& f, std::span<const Array> inputs) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  TensorList arguments;
  for (auto& array : inputs) {
    arguments.push_back(tracer.add_input({.dtype = array.dtype, .shape = Shape(array.sizes), .device = {}}));
    if (array.floating()) arguments.back().requires_grad_();
  }
  std::vector<Value> outputs;
  for (auto& tensor : f(arguments)) outputs.push_back(tracer.value_of(tensor));
  tracer.graph().set_outputs(std::move(outputs));
  Traced out;
  for (auto& tensor : tracer.captured()) out.captured.push_back(to_array(tensor));
  out.graph = std::move(tracer.graph());
  return out;
}

std::vector<Array> evaluate(const Traced& traced, std::span<const Array> inputs) {
  std::vector<Array> all(inputs.begin(), inputs.end());
  all.insert(all.end(), traced.captured.begin(), traced.captured.end());
  return interpret(traced.graph, all);
}

TensorList floating_results(const TensorList& results) {
  TensorList out;
  for (auto& t : results)
    if (t.is_floating_point() && t.requires_grad()) out.push_back(t);
  return out;
}

TensorList floating_inputs(const TensorList& inputs) {
  TensorList out;
  for (auto& t : inputs)
    if (t.is_floating_point()) out.push_back(t);
  return out;
}

double dot(const std::vector<Array>& a, std::span<const Array> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (int64_t at = 0; at < a[i].numel(); ++at) sum += a[i].number(at) * b[i].number(at);
  return sum;
}

}  // namespace

::testing::AssertionResult gradcheck(const TensorFunction& f, std::span<const Array> inputs,
                                     const GradcheckOptions& options) {
  Traced forward = trace_with([&](const TensorList& x) { return floating_results(f(x)); }, inputs);
  auto results = evaluate(forward, inputs);
  if (results.empty()) {
    if (options.allow_constant) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "no result depends on a floating input";
  }

  // The cotangents are further inputs, so that the second order also goes through the gradient of them.
  std::vector<Array> with_cotangents(inputs.begin(), inputs.end());
  for (size_t i = 0; i < results.size(); ++i)
    with_cotangents.push_back(random_array(results[i].dtype, results[i].sizes, uint32_t(i + 1)));
  std::span<const Array> cotangents = std::span(with_cotangents).subspan(inputs.size());

  TensorFunction gradient = [&](const TensorList& x) {
    TensorList given(x.begin(), x.begin() + long(inputs.size())), seeds(x.begin() + long(inputs.size()), x.end());
    auto wanted = floating_inputs(given);
    auto grads = autograd::grad(floating_results(f(given)), wanted, seeds, {}, options.second_order, true);
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined()) grads[i] = zeros_like(wanted[i]);
    return grads;
  };
  Traced backward = trace_with(gradient, with_cotangents);
  auto analytic = evaluate(backward, with_cotangents);

  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].floating()) continue;
    const Array& grad = analytic[next++];
    if (!(grad.sizes == inputs[i].sizes))
      return ::testing::AssertionFailure() << "the gradient of input " << i << " has shape " << to_string(grad.sizes)
                                           << ", the input " << to_string(inputs[i].sizes);
    std::vector<Array> moved(inputs.begin(), inputs.end());
    for (int64_t at = 0; at < inputs[i].numel(); ++at) {
      double x = inputs[i].number(at);
      moved[i].set(at, x + options.step);
      double above = dot(evaluate(forward, moved), cotangents);
      moved[i].set(at, x - options.step);
      double below = dot(evaluate(forward, moved), cotangents);
      moved[i].set(at, x);
      double expected = (above - below) / (2 * options.step), got = grad.number(at);
      double allowed = options.absolute + options.relative * std::max(std::abs(expected), std::abs(got));
      if (!(std::abs(expected - got) <= allowed))
        return ::testing::AssertionFailure() << "input " << i << ", element " << at << ": the gradient is " << got
                                             << ", finite differences give " << expected << "\n"
                                             << backward.graph.text();
    }
  }
  if (!options.second_order) return ::testing::AssertionSuccess();
  GradcheckOptions first = options;
  first.second_order = false;
  first.allow_constant = true;
  return gradcheck(gradient, with_cotangents, first);
}

::testing::AssertionResult gradcheck(const TensorFunction& f, const TensorList& inputs,
                                     const GradcheckOptions& options) {
  std::vector<Array> arrays;
  for (auto& t : inputs) arrays.push_back(to_array(t));
  return gradcheck(f, arrays, options);
}

::testing::AssertionResult gradcheck_op(const Op& op, const std::vector<TensorArg>& operands, const Attrs& attrs,
                                        const GradcheckOptions& options) {
  TensorList inputs;
  for (auto& arg : operands)
    if (!arg.is_scalar()) inputs.push_back(arg.tensor());
  auto f = [&](const TensorList& x) {
    std::vector<TensorArg> args;
    size_t next = 0;
    for (auto& arg : operands) args.push_back(arg.is_scalar() ? arg : TensorArg(x[next++]));
    return Dispatcher::instance().run(op, args, attrs);
  };
  return gradcheck(f, inputs, options);
}

}  // namespace sinter
