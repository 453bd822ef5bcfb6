#include "sinter/ops/control.h"

#include <algorithm>
#include <deque>

#include "sinter/graph/differentiate.h"
#include "sinter/graph/interpreter.h"
#include "sinter/graph/run.h"
#include "sinter/graph/trace.h"
#include "sinter/graph/verify.h"
#include "sinter/ops/control_attrs.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/results.h"

namespace sinter {

namespace {

std::string types_text(const std::vector<Type>& types) {
  std::string out;
  for (auto& type : types) out += (out.empty() ? "" : ", ") + to_string(type);
  return "(" + out + ")";
}

// Sizes are compared by asking, so that a capture remembers the answer.
bool same_type(const Type& a, const Type& b) {
  bool same = a.dtype == b.dtype && a.device == b.device && a.rank() == b.rank();
  for (size_t d = 0; same && d < a.shape.size(); ++d) same = a.shape[d] == b.shape[d];
  return same;
}
bool same_types(std::span<const Type> a, std::span<const Type> b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i) same = same_type(a[i], b[i]);
  return same;
}

void check_takes(const OpCall& call, const char* what, const SubGraph& graph, std::span<const Type> operands) {
  check(bool(graph), "{}: the {} is missing", call.name(), what);
  auto inputs = types_of(graph->inputs());
  check(same_types(inputs, operands), "{}: the {} takes {}, not {}", call.name(), what, types_text(inputs),
        types_text({operands.begin(), operands.end()}));
}

void check_predicate(const char* op, DType dtype, int64_t rank) {
  check(dtype == kBool && rank == 0, "{}: the predicate must be one bool (a 0-d tensor), not {} with {} dimensions", op,
        dtype, rank);
}

std::vector<Array> interpret_on(const SubGraph& graph, std::span<const Array* const> operands) {
  std::vector<Array> inputs;
  for (auto* array : operands) inputs.push_back(*array);
  return interpret(*graph, inputs);
}

TensorList run_on(const SubGraph& graph, std::span<const Tensor> operands) {
  return run_graph(*graph, std::vector<TensorArg>(operands.begin(), operands.end()));
}

// --- recording

// Functions as graphs that all take the same inputs: the arguments, then whatever of the outside any of them uses.
struct Recorded {
  std::vector<SubGraph> graphs;
  TensorList captured;
};

// The functions run without a position, so that what they do is reported by their own lines.
Recorded record_functions(const char* op, std::initializer_list<const ListFunction*> functions, const TensorList& args,
                          const Where& where) {
  struct Part {
    GraphTracer tracer{Tracer::current()};
    std::vector<Value> outputs;
  };
  std::deque<Part> parts;
  TensorList captured;
  for (auto* function : functions) {
    Part& part = parts.emplace_back();
    TracerScope scope(&part.tracer);
    TensorList inputs;
    for (auto& t : args) inputs.push_back(part.tracer.add_input({t.dtype(), t.sizes(), t.device()}));
    for (auto& t : captured) part.tracer.value_of(t);
    TensorList results = (*function)(inputs);
    UserPosition here(where);
    for (auto& t : results) {
      check(t.defined(), "{}: a function gives an undefined tensor", op);
      part.outputs.push_back(part.tracer.value_of(t));
    }
    captured = part.tracer.captured();
  }
  Recorded out{{}, captured};
  for (auto& part : parts) {
    for (auto& t : captured) part.tracer.value_of(t);
    part.tracer.graph().set_outputs(std::move(part.outputs));
    out.graphs.emplace_back(std::move(part.tracer.graph()));
  }
  return out;
}

std::vector<TensorArg> operands_of(const TensorList& args, const TensorList& captured, const Where& where) {
  std::vector<TensorArg> out;
  for (auto* list : {&args, &captured})
    for (auto& t : *list) out.emplace_back(t, where);
  return out;
}

void check_defined(const char* op, const TensorList& args) {
  for (size_t i = 0; i < args.size(); ++i) check(args[i].defined(), "{}: argument {} is an undefined tensor", op, i);
}

}  // namespace

// --- cond ------------------------------------------------------------------------------------------------------------

struct Cond : Opaque {
  static constexpr auto name = "cond";
  static constexpr int inputs = -1;
  using Attributes = CondAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<CondAttrs>();
    check(!call.inputs.empty(), "cond: the predicate is missing");
    check_predicate(name, call.inputs[0].dtype, call.rank(0));
    check_takes(call, "then branch", a.then_branch, call.inputs.subspan(1));
    check_takes(call, "else branch", a.else_branch, call.inputs.subspan(1));
    auto yes = types_of(a.then_branch->outputs()), no = types_of(a.else_branch->outputs());
    check(same_types(yes, no), "cond: the branches must give the same types, but then_f gives {} and else_f gives {}",
          types_text(yes), types_text(no));
    return yes;
  }
  static const SubGraph& chosen(const CondAttrs& a, bool predicate) {
    return predicate ? a.then_branch : a.else_branch;
  }
  static void interpret(InterpretCall& c) {
    c.outputs = interpret_on(chosen(c.call.as<CondAttrs>(), c.inputs[0]->integer(0) != 0), c.inputs.subspan(1));
  }
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    return fresh_results(run_on(chosen(attrs.as<CondAttrs>(), inputs[0].item<bool>()), inputs.subspan(1)), inputs);
  }

  // A cond over the branches' gradients, which take what the branches take and the gradients that flow.
  static TensorList grad(const GradCall& c) {
    size_t count = c.inputs.size() - 1;
    std::vector<bool> needed(c.needed.begin() + 1, c.needed.end());
    TensorList args;
    for (auto& input : c.inputs.subspan(1)) args.push_back(input.tensor());
    for (auto& g : c.grads)
      if (g.defined()) args.push_back(g);
    auto gradients_of = [&](const SubGraph& branch) {
      return [&](const TensorList& given) {
        TensorList operands(given.begin(), given.begin() + int64_t(count)), flowing, out;
        size_t next = count;
        for (auto& g : c.grads) flowing.push_back(g.defined() ? given[next++] : Tensor());
        auto grads = differentiate(*branch, operands, needed, flowing);
        for (size_t i = 0; i < count; ++i)
          if (needed[i]) out.push_back(grads[i].defined() ? grads[i] : zeros_like(operands[i]));
        return out;
      };
    };
    auto& a = c.as<CondAttrs>();
    TensorList grads = detail::cond(c[0], gradients_of(a.then_branch), gradients_of(a.else_branch), args);
    TensorList out(c.inputs.size());
    size_t next = 0;
    for (size_t i = 0; i < count; ++i)
      if (needed[i]) out[i + 1] = grads[next++];
    return out;
  }
  SINTER_SAMPLES(
      "bool[], x[3, 5] | then_branch={%0 = input : f32[3, 5]; %1 = tanh(%0) : f32[3, 5]; return %1}, "
      "else_branch={%0 = input : f32[3, 5]; %1 = neg(%0) : f32[3, 5]; return %1}",
      "bool[], f64[4], f64[4] | then_branch={%0 = input : f64[4]; %1 = input : f64[4]; %2 = mul(%0, %1) : f64[4]; "
      "return %2, %0}, else_branch={%0 = input : f64[4]; %1 = input : f64[4]; %2 = exp(%0) : f64[4]; return %2, %0}",
      "bool[], f64[4], f64[4] | then_branch={%0 = input : f64[4]; %1 = input : f64[4]; %2 = sin(%1) : f64[4]; "
      "return %2}, else_branch={%0 = input : f64[4]; %1 = input : f64[4]; %2 = div(%1, %0) : f64[4]; return %2}")
};

TensorList detail::cond(const TensorArg& predicate, const ListFunction& then_f, const ListFunction& else_f,
                        const TensorList& args) {
  if (predicate.is_scalar()) return (predicate.scalar().to_bool() ? then_f : else_f)(args);
  {
    UserPosition here(predicate.where());
    check_predicate("cond", predicate.dtype(), predicate.dim());
    check_defined("cond", args);
  }
  if (!Tracer::current()) return (predicate.tensor().item<bool>() ? then_f : else_f)(args);
  auto recorded = record_functions("cond", {&then_f, &else_f}, args, predicate.where());
  auto operands = operands_of(args, recorded.captured, predicate.where());
  operands.insert(operands.begin(), predicate);
  return call_op_many(op_of<Cond>, operands, CondAttrs{recorded.graphs[0], recorded.graphs[1]}, predicate.where());
}

// --- while_loop ------------------------------------------------------------------------------------------------------

struct WhileLoop : Opaque {
  static constexpr auto name = "while_loop";
  static constexpr int inputs = -1;
  using Attributes = WhileAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<WhileAttrs>();
    check_takes(call, "condition", a.condition, call.inputs);
    check_takes(call, "body", a.body, call.inputs);
    auto asked = types_of(a.condition->outputs());
    check(asked.size() == 1, "while_loop: cond_f must give one result, not {}", asked.size());
    check_predicate(name, asked[0].dtype, asked[0].rank());
    auto results = types_of(a.body->outputs());
    auto state = call.inputs.first(std::min(results.size(), call.inputs.size()));
    check(same_types(state, results), "while_loop: body_f must keep the types of the state, {}, but gives {}",
          types_text({state.begin(), state.end()}), types_text(results));
    return results;
  }

  static void interpret(InterpretCall& c) {
    auto& a = c.call.as<WhileAttrs>();
    std::vector<const Array*> operands(c.inputs.begin(), c.inputs.end());
    c.outputs.clear();
    for (size_t i = 0; i < a.body->outputs().size(); ++i) c.outputs.push_back(*operands[i]);
    for (size_t i = 0; i < c.outputs.size(); ++i) operands[i] = &c.outputs[i];
    while (interpret_on(a.condition, operands)[0].integer(0) != 0) {
      auto next = interpret_on(a.body, operands);
      for (size_t i = 0; i < next.size(); ++i) c.outputs[i] = std::move(next[i]);
    }
  }
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& a = attrs.as<WhileAttrs>();
    TensorList operands(inputs.begin(), inputs.end());
    size_t count = a.body->outputs().size();
    while (run_on(a.condition, operands)[0].item<bool>()) {
      TensorList next = run_on(a.body, operands);
      std::copy(next.begin(), next.end(), operands.begin());
    }
    operands.resize(count);
    return fresh_results(std::move(operands), inputs);
  }
  static constexpr NotDifferentiable grad{
      "how often a captured loop runs is not known to the graph; run it eagerly, or a fixed number of times with a "
      "plain for"};
  SINTER_SAMPLES(
      "x[3, 5] | condition={%0 = input : f32[3, 5]; %1 = amax(%0) : f32[]; %2 = scalar {value=9} : weak i64[]; "
      "%3 = lt(%1, %2) : bool[]; return %3}, body={%0 = input : f32[3, 5]; %1 = scalar {value=1} : weak i64[]; "
      "%2 = add(%0, %1) : f32[3, 5]; return %2}",
      "i64[], x[4] | condition={%0 = input : i64[]; %1 = input : f64[4]; %2 = scalar {value=3} : weak i64[]; "
      "%3 = lt(%0, %2) : bool[]; return %3}, body={%0 = input : i64[]; %1 = input : f64[4]; "
      "%2 = scalar {value=1} : weak i64[]; %3 = add(%0, %2) : i64[]; %4 = sin(%1) : f64[4]; return %3, %4}")
};

TensorList detail::while_loop(const ListFunction& cond_f, const ListFunction& body_f, const TensorList& state,
                              const Where& where) {
  {
    UserPosition here(where);
    check_defined("while_loop", state);
  }
  if (Tracer::current()) {
    auto recorded = record_functions("while_loop", {&cond_f, &body_f}, state, where);
    UserPosition here(where);
    check(recorded.graphs[1]->outputs().size() == state.size(), "while_loop: body_f gives {} results for a state of {}",
          recorded.graphs[1]->outputs().size(), state.size());
    auto operands = operands_of(state, recorded.captured, where);
    return call_op_many(op_of<WhileLoop>, operands, WhileAttrs{recorded.graphs[0], recorded.graphs[1]}, where);
  }
  TensorList now = state;
  for (;;) {
    TensorList answer = cond_f(now);
    {
      UserPosition here(where);
      check(answer.size() == 1, "while_loop: cond_f must give one result, not {}", answer.size());
      check_predicate("while_loop", answer[0].dtype(), answer[0].dim());
    }
    if (!answer[0].item<bool>()) break;
    now = body_f(now);
    UserPosition here(where);
    check(now.size() == state.size(), "while_loop: body_f gives {} results for a state of {}", now.size(),
          state.size());
  }
  // A result is never memory of the caller's, however often the loop ran: a captured one cannot be.
  for (auto& result : now)
    if (std::any_of(state.begin(), state.end(), [&](const Tensor& given) { return result.is_alias_of(given); }))
      result = result.clone();
  return now;
}

OpFamily control_ops() {
  static const Op* const ops[] = {&op_of<Cond>, &op_of<WhileLoop>};
  return ops;
}

}  // namespace sinter
