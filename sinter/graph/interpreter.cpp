#include "sinter/graph/interpreter.h"

#include "sinter/graph/interpreter/kinds.h"
#include "sinter/graph/interpreter/number.h"
#include "sinter/graph/trace.h"

namespace sinter {

Array::Array(DType dtype, const IntList& sizes) : dtype(dtype), sizes(sizes) {
  size_t count = size_t(checked_numel("interpreter", sizes));
  if (floating())
    f.resize(count);
  else
    i.resize(count);
}

void Array::set(int64_t at, double value) {
  if (floating())
    f[size_t(at)] = value;
  else
    i[size_t(at)] = dtype == kBool ? value != 0 : interpreter::to_integer(dtype, value);
}

void Array::set(int64_t at, int64_t value) {
  if (floating())
    f[size_t(at)] = double(value);
  else
    i[size_t(at)] = interpreter::wrap_integer(dtype, value);
}

namespace {

// Calls f(offset in elements) for every element of a strided tensor, in row-major order.
template <class F>
void for_each_offset(const TensorImpl& impl, F&& f) {
  if (impl.numel == 0) return;
  if (impl.sizes.empty()) return f(impl.offset);
  size_t last = impl.sizes.size() - 1;
  const int64_t inner = impl.sizes[last], step = impl.strides[last];
  IntList at(impl.sizes.size(), 0);
  int64_t row = impl.offset;
  for (;;) {
    for (int64_t i = 0, offset = row; i < inner; ++i, offset += step) f(offset);
    size_t d = last;
    for (; d > 0; --d) {
      row += impl.strides[d - 1];
      if (++at[d - 1] < impl.sizes[d - 1]) break;
      row -= impl.strides[d - 1] * impl.sizes[d - 1];
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace

namespace {

// Complex numbers are pairs of doubles: what an array of them holds is that of the other look at it.
Array other_look(const Array& array, DType dtype, const IntList& sizes) {
  Array out;
  out.dtype = dtype;
  out.sizes = sizes;
  out.f = array.f;
  return out;
}

}  // namespace

Array to_array(const Tensor& given) {
  check(!given.is_traced(), "a traced tensor has no values yet");
  if (given.is_complex()) return other_look(to_array(given.view_as_real()), given.dtype(), given.impl().sizes);
  Tensor tensor = given.device().is_cpu() ? given : given.cpu();
  auto& impl = tensor.impl();
  Array out(impl.dtype, impl.sizes);
  int64_t at = 0;
  visit_dtype(impl.dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* data = static_cast<const T*>(impl.buffer->data());
    for_each_offset(impl, [&](int64_t offset) {
      if constexpr (is_floating(dtype_of<T>))
        out.f[size_t(at++)] = double(data[offset]);
      else
        out.i[size_t(at++)] = int64_t(data[offset]);
    });
  });
  return out;
}

Array to_array(const Scalar& number) {
  Array out(number.dtype(), {});
  if (number.is_floating())
    out.set(0, number.to_double());
  else
    out.set(0, number.to_int());
  return out;
}

Tensor to_tensor(const Array& array) { return to_tensor(array, array.dtype); }

Tensor to_tensor(const Array& array, DType dtype) {
  if (is_complex(dtype)) {
    IntList pairs = array.sizes;
    pairs.push_back(2);
    return to_tensor(other_look(array, real_dtype(dtype), pairs)).view_as_complex();
  }
  Tensor out = empty(Shape(array.sizes), dtype);
  auto& impl = out.impl();
  Array cast(dtype, {});
  int64_t at = 0;
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* data = static_cast<T*>(impl.buffer->data());
    for_each_offset(impl, [&](int64_t offset) {
      if (array.floating())
        cast.set(0, array.f[size_t(at++)]);
      else
        cast.set(0, array.i[size_t(at++)]);
      if constexpr (is_floating(dtype_of<T>))
        data[offset] = T(cast.f[0]);
      else
        data[offset] = T(cast.i[0]);
    });
  });
  return out;
}

namespace {

using interpreter::Arrays;

// One evaluation of a graph.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const std::map<std::string, int64_t>& sizes, bool as_stored)
      : graph_(graph), as_stored_(as_stored), results_(graph.nodes().size()), last_use_(results_.size(), -1),
        symbols_(sizes) {}

  std::vector<Array> run(std::span<const Array> inputs) {
    bind_inputs(inputs);
    find_last_uses();
    for (auto& node : graph_.nodes()) {
      size_t id = size_t(node.id);
      if (last_use_[id] < 0 || node.op->kind == OpKind::kInput) continue;
      results_[id] = evaluate(node);
      if (as_stored_ && node.op->kind != OpKind::kScalar)
        for (auto& array : results_[id])
          for (double& value : array.f) value = interpreter::round_to(array.dtype, value);
      for (auto& v : node.inputs)
        if (last_use_[size_t(v.node->id)] == node.id) results_[size_t(v.node->id)].clear();
    }
    std::vector<Array> out;
    for (auto& v : graph_.outputs()) out.push_back(array_of(v));
    return out;
  }

 private:
  const Array& array_of(Value v) const { return results_[size_t(v.node->id)][size_t(v.index)]; }

  Dim bound(const std::string& symbol) const {
    auto it = symbols_.find(symbol);
    check(it != symbols_.end(), "interpreter: no input gives the symbolic size {} a value", symbol);
    return it->second;
  }

  // Sizes that are plain symbols take the value seen.
  void bind_symbols(const Type& type, const IntList& sizes) {
    for (size_t d = 0; d < sizes.size() && d < type.shape.size(); ++d) {
      auto names = type.shape[d].symbols();
      if (names.size() == 1 && type.shape[d].same_as(Dim::symbol(names[0]))) symbols_.try_emplace(names[0], sizes[d]);
    }
  }

  void bind_inputs(std::span<const Array> inputs) {
    auto& values = graph_.inputs();
    check(inputs.size() == values.size(), "interpreter: the graph takes {} inputs, not {}", values.size(),
          inputs.size());
    for (size_t n = 0; n < inputs.size(); ++n) {
      auto& type = values[n].type();
      check(inputs[n].dtype == type.dtype && int64_t(inputs[n].sizes.size()) == type.rank(),
            "interpreter: input {} is {}{}, the graph takes {}", n, inputs[n].dtype, inputs[n].sizes, type);
      bind_symbols(type, inputs[n].sizes);
    }
    for (size_t n = 0; n < inputs.size(); ++n) {
      auto& type = values[n].type();
      for (size_t d = 0; d < type.shape.size(); ++d) {
        Dim expected = type.shape[d].substitute([&](const std::string& name) { return bound(name); });
        check(expected == inputs[n].sizes[d],
              "interpreter: input {} has shape {}, the graph takes {}: size {} should be {}", n, inputs[n].sizes, type,
              d, expected);
      }
      results_[size_t(values[n].node->id)] = {inputs[n]};
    }
  }

  // The node after which a result is no longer needed; -1 for what no output depends on.
  void find_last_uses() {
    int end = int(graph_.nodes().size());
    for (auto& v : graph_.outputs()) last_use_[size_t(v.node->id)] = end;
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      if (last_use_[size_t(it->id)] < 0) continue;
      for (auto& v : it->inputs) last_use_[size_t(v.node->id)] = std::max(last_use_[size_t(v.node->id)], it->id);
    }
  }

  std::vector<Array> evaluate(const Node& node) {
    if (node.op->kind == OpKind::kScalar) return {to_array(node.attrs.as<ScalarAttrs>().value)};
    std::vector<Type> types;
    std::vector<const Array*> arrays;
    for (auto& v : node.inputs) {
      auto& array = array_of(v);
      types.push_back(
          {.dtype = array.dtype, .shape = Shape(array.sizes), .device = v.type().device, .weak = v.type().weak});
      arrays.push_back(&array);
    }
    Attrs attrs = symbols_.empty() ? node.attrs : node.attrs.substitute([&](const std::string& s) { return bound(s); });
    auto results = infer_types(*node.op, types, attrs);
    OpCall call{*node.op, types, attrs};
    switch (node.op->kind) {
      case OpKind::kPointwise:
        return {interpreter::run_pointwise(call, arrays, results[0])};
      case OpKind::kView:
        if (node.op->sees_complex) return {other_look(*arrays[0], results[0].dtype, results[0].shape.numbers())};
        [[fallthrough]];
      case OpKind::kLoop:
      case OpKind::kReduce:
        return {interpreter::run_loop(call, arrays, results[0])};
      case OpKind::kScatter:
        return {interpreter::run_scatter(call, arrays, results[0])};
      case OpKind::kScan:
        return {interpreter::run_scan(call, arrays, results[0])};
      case OpKind::kComposite:
        return run_composite(call, arrays);
      default:
        return run_opaque(node, call, arrays, results);
    }
  }

  std::vector<Array> run_opaque(const Node& node, const OpCall& call, Arrays arrays, const std::vector<Type>& types) {
    SINTER_INTERNAL_ASSERT(call.op.interpret, "{} has no referee", call.op.name);
    std::vector<Array> outputs;
    for (auto& t : types) {
      outputs.push_back(t.shape.is_static() ? Array(t.dtype, t.shape.numbers()) : Array());
      outputs.back().dtype = t.dtype;
    }
    InterpretCall interpret{call, arrays, outputs};
    call.op.interpret(interpret);
    SINTER_INTERNAL_ASSERT(outputs.size() == types.size(), "{} gives {} results, not {}", call.op.name, outputs.size(),
                           types.size());
    for (size_t n = 0; n < outputs.size(); ++n) {
      auto& array = outputs[n];
      SINTER_INTERNAL_ASSERT(array.dtype == types[n].dtype && array.numel() == checked_numel(call.name(), array.sizes),
                             "result {} of {} is not filled in", n, call.op.name);
      for (auto& element : array.i) element = interpreter::wrap_integer(array.dtype, element);
      bind_symbols(node.types[n], array.sizes);
    }
    return outputs;
  }

  // The decomposition on the sizes at hand.
  std::vector<Array> run_composite(const OpCall& call, Arrays arrays) {
    GraphTracer tracer;
    std::vector<Array> inputs;
    {
      TracerScope scope(&tracer);
      std::vector<TensorArg> args;
      for (size_t n = 0; n < arrays.size(); ++n) {
        if (call.inputs[n].weak) {
          auto& number = *arrays[n];
          args.emplace_back(number.floating()       ? Scalar(number.f[0])
                            : number.dtype == kBool ? Scalar(number.i[0] != 0)
                                                    : Scalar(number.i[0]));
        } else {
          args.emplace_back(tracer.add_input(call.inputs[n]));
          inputs.push_back(*arrays[n]);
        }
      }
      std::vector<Value> outputs;
      for (auto& tensor : call.op.decompose(args, call.attrs)) outputs.push_back(tracer.value_of(tensor));
      tracer.graph().set_outputs(std::move(outputs));
    }
    for (auto& tensor : tracer.captured()) inputs.push_back(to_array(tensor));
    return interpret(tracer.graph(), inputs);
  }

  const Graph& graph_;
  const bool as_stored_;
  std::vector<std::vector<Array>> results_;
  std::vector<int> last_use_;
  std::map<std::string, int64_t> symbols_;
};

}  // namespace

std::vector<Array> interpret(const Graph& graph, std::span<const Array> inputs,
                             const std::map<std::string, int64_t>& sizes, bool as_stored) {
  return Interpreter(graph, sizes, as_stored).run(inputs);
}

}  // namespace sinter
