#include "sinter/graph/trace.h"

namespace sinter {

namespace {

// What a traced tensor stands for.
class GraphValue final : public TracedValue {
 public:
  GraphValue(const GraphTracer* tracer, Value value) : tracer(tracer), value(value) {}
  const GraphTracer* tracer;
  Value value;
};

std::string user_line() {
  auto* where = UserPosition::current();
  return where ? to_string(*where) : std::string();
}

}  // namespace

Tensor GraphTracer::tensor_of(Value value) {
  auto& type = value.type();
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = type.dtype;
  impl->device = type.device;
  impl->traced_shape = type.shape;
  impl->traced = make_intrusive<GraphValue>(this, value);
  return Tensor(std::move(impl));
}

Value GraphTracer::value_of(const Tensor& tensor) {
  if (tensor.is_traced()) {
    auto* traced = dynamic_cast<const GraphValue*>(tensor.impl().traced.get());
    check(traced && traced->tracer == this,
          "a traced tensor is used outside the capture that made it; return it from the captured function instead");
    return traced->value;
  }
  auto [it, fresh] = captured_values_.try_emplace(tensor.impl_ptr().get());
  if (fresh) {
    Type type{.dtype = tensor.dtype(), .shape = Shape(tensor.impl().sizes), .device = tensor.device()};
    it->second = graph_.add_input(type, "captured" + std::to_string(captured_.size()));
    captured_.push_back(tensor);
  }
  return it->second;
}

Tensor GraphTracer::add_input(const Type& type, const std::string& name) {
  return tensor_of(graph_.add_input(type, name));
}

std::vector<Tensor> GraphTracer::record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (auto& arg : inputs) values.push_back(arg.is_scalar() ? graph_.add_scalar(arg.scalar()) : value_of(arg.tensor()));
  const Node& node = graph_.add(op, std::move(values), attrs, user_line());
  std::vector<Tensor> results;
  results.reserve(node.types.size());
  for (size_t i = 0; i < node.types.size(); ++i) results.push_back(tensor_of(node.result(int(i))));
  return results;
}

bool GraphTracer::decide(DimCompare op, const Dim& a, const Dim& b) {
  auto number = [&](const Dim& d) {
    return d.substitute([&](const std::string& name) {
      auto hint = hints_.find(name);
      check(hint != hints_.end(), "sizes {} and {} cannot be compared: nothing is known of {}", a, b, name);
      return Dim(hint->second);
    });
  };
  Dim x = number(a), y = number(b);
  return op == DimCompare::kEqual ? x == y : op == DimCompare::kLess ? x < y : x <= y;
}

int64_t GraphTracer::specialize(const Dim& d, const std::source_location*, const void*) {
  return d
      .substitute([&](const std::string& name) {
        auto hint = hints_.find(name);
        check(hint != hints_.end(), "the symbolic size {} is used as a number, and nothing is known of {}", d, name);
        return Dim(hint->second);
      })
      .number();
}

Graph trace(const std::function<TensorList(const TensorList&)>& f, std::span<const Type> inputs) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  TensorList arguments;
  for (auto& type : inputs) arguments.push_back(tracer.add_input(type));
  std::vector<Value> outputs;
  for (auto& tensor : f(arguments)) outputs.push_back(tracer.value_of(tensor));
  tracer.graph().set_outputs(std::move(outputs));
  return std::move(tracer.graph());
}

}  // namespace sinter
