#include "sinter/engine/referee/one_op.h"

#include "sinter/engine/cost.h"
#include "sinter/ops/dequantize.h"
#include "sinter/tensor/tracer.h"

namespace sinter::referee {

namespace {

Scalar scalar_of(const Array& number) {
  if (number.floating()) return number.f[0];
  return number.dtype == kBool ? Scalar(number.i[0] != 0) : Scalar(number.i[0]);
}

// Floating values as they are: in f64, over the array's own memory where that is on the device.
Tensor tensor_of(const Array& array, Device device) {
  Tensor out = array.floating() && !array.f.empty() ? from_blob(const_cast<double*>(array.f.data()), Shape(array.sizes), kFloat64)
               : array.floating()                   ? empty(Shape(array.sizes), kFloat64)
                                                    : to_tensor(array);
  return device.is_cpu() ? out : out.to(device);
}

// How many scalar operations, in those of a pointwise op: an element in index notation takes the interpreter longer.
int64_t work_of(const OpCall& call, std::span<const Type> results, std::span<const Known* const> inputs) {
  constexpr int64_t kByIndex = 16, kByBody = 1024;
  int64_t points = results.empty() ? 0 : points_of(call, results);
  for (auto* input : inputs) points = std::max(points, input->numel());
  return points * (call.op.kind == OpKind::kPointwise ? 1 : call.op.kind == OpKind::kComposite ? kByBody : kByIndex);
}

// Whether the op only moves elements: then another precision would tell nothing more.
bool moves_elements(const Op& op) {
  if (&op == &dequantize_op()) return false;
  return op.kind == OpKind::kView || (op.kind == OpKind::kLoop && op.combine == Combine::kNone);
}

// Those of an op that computes in a type which it is told, for results that are not rounded to it.
Attrs attrs_in_double(const OpCall& call) {
  if (&call.op != &dequantize_op()) return call.attrs;
  DequantizeAttrs attrs = call.as<DequantizeAttrs>();
  attrs.dtype = kFloat64;
  return attrs;
}

std::vector<Array> run_eagerly(const OpCall& call, std::span<const Type> results, std::span<const Known* const> inputs) {
  std::vector<TensorArg> args;
  bool as_they_are = moves_elements(call.op);
  for (size_t i = 0; i < inputs.size(); ++i)
    as_they_are = as_they_are && (call.inputs[i].weak || inputs[i]->tensor().defined());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.inputs[i].weak)
      args.emplace_back(scalar_of(inputs[i]->array()));
    else
      args.emplace_back(as_they_are ? inputs[i]->tensor() : tensor_of(inputs[i]->array(), call.inputs[i].device));
  }
  std::vector<Array> out;
  for (auto& tensor : Dispatcher::instance().run(call.op, args, attrs_in_double(call))) {
    out.push_back(to_array(tensor));
    DType dtype = results[out.size() - 1].dtype;
    SINTER_INTERNAL_ASSERT(out.back().floating() == is_floating(dtype), "{} gives {} in double precision and {} else",
                           call.op.name, tensor.dtype(), dtype);
    out.back().dtype = dtype;
  }
  return out;
}

std::vector<Array> run_interpreted(const OpCall& call, std::span<const Known* const> inputs) {
  Graph graph = graph_of(call.op, call.inputs, call.attrs);
  std::vector<Array> arrays;
  for (auto* input : inputs) arrays.push_back(input->array());
  return interpret(graph, arrays);
}

}  // namespace

const Array& Known::array() const {
  if (!array_) array_ = to_array(tensor_);
  return *array_;
}

Graph graph_of(const Op& op, std::span<const Type> inputs, const Attrs& attrs, const std::string& where) {
  Graph graph;
  std::vector<Value> operands, results;
  for (auto& type : inputs) operands.push_back(graph.add_input(type));
  const Node& node = graph.add(op, operands, attrs, where);
  for (size_t r = 0; r < node.types.size(); ++r) results.push_back(node.result(int(r)));
  graph.set_outputs(std::move(results));
  return graph;
}

std::vector<Array> evaluate(const OpCall& call, std::span<const Known* const> inputs) {
  auto results = infer_types(call.op, call.inputs, call.attrs);
  bool has_referee = call.op.kind != OpKind::kOpaque || call.op.interpret;
  bool interpreted = has_referee && work_of(call, results, inputs) <= kMostOperations;
  return interpreted ? run_interpreted(call, inputs) : run_eagerly(call, results, inputs);
}

}  // namespace sinter::referee
