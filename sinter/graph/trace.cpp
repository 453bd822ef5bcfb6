#include "sinter/graph/trace.h"

#include <atomic>

#include "sinter/graph/nodes.h"

namespace sinter {

namespace {

// What a traced tensor stands for.
class GraphValue final : public TracedValue {
 public:
  GraphValue(uint64_t tracer, Value value) : tracer(tracer), value(value) {}
  uint64_t tracer;
  Value value;
};

std::string user_line() {
  auto* where = UserPosition::current();
  return where ? to_string(*where) : std::string();
}

std::atomic<uint64_t> next_id{1};

}  // namespace

GraphTracer::GraphTracer(Tracer* outer) : outer_(outer), id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}

Tensor GraphTracer::tensor_of(Value value) {
  auto& type = value.type();
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = type.dtype;
  impl->device = type.device;
  impl->traced_shape = type.shape;
  impl->traced = make_intrusive<GraphValue>(id_, value);
  return Tensor(std::move(impl));
}

Value GraphTracer::value_of(const Tensor& tensor) {
  if (!tensor.is_traced()) return capture(tensor);
  auto* traced = dynamic_cast<const GraphValue*>(tensor.impl().traced.get());
  if (traced && traced->tracer == id_) return traced->value;
  // Of the outside, or of a capture that ended: the outermost tracer knows, once this graph is recorded there.
  check(outer_,
        "a traced tensor is used outside the capture that made it; return it from the captured function instead");
  return capture(tensor);
}

Value GraphTracer::capture(const Tensor& tensor) {
  const void* key = tensor.is_traced() ? static_cast<const void*>(tensor.impl().traced.get()) : tensor.impl_ptr().get();
  auto [it, fresh] = captured_values_.try_emplace(key);
  if (fresh) {
    Type type{.dtype = tensor.dtype(), .shape = tensor.sizes(), .device = tensor.device()};
    it->second = graph_.add_input(type, "captured" + std::to_string(captured_.size()));
    captured_.push_back(tensor);
  }
  return it->second;
}

Tensor GraphTracer::add_input(const Type& type, const std::string& name) {
  return tensor_of(graph_.add_input(type, name));
}

std::vector<TensorArg> GraphTracer::draw() {
  check(!outer_,
        "a captured branch or loop cannot draw random numbers, which would be the same in every run: draw them before it");
  return {};
}

std::vector<Tensor> GraphTracer::record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (auto& arg : inputs) values.push_back(arg.is_scalar() ? graph_.add_scalar(arg.scalar()) : value_of(arg.tensor()));
  if (auto before = undone_look(op, values)) return {tensor_of(*before)};
  const Node& node = graph_.add(op, std::move(values), attrs, user_line());
  std::vector<Tensor> results;
  results.reserve(node.types.size());
  for (size_t i = 0; i < node.types.size(); ++i) results.push_back(tensor_of(node.result(int(i))));
  return results;
}

bool GraphTracer::decide(DimCompare op, const Dim& a, const Dim& b) {
  if (outer_) return outer_->decide(op, a, b);
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

int64_t GraphTracer::specialize(const Dim& d, const std::source_location* where, const void* return_address) {
  if (outer_) return outer_->specialize(d, where, return_address);
  return d
      .substitute([&](const std::string& name) {
        auto hint = hints_.find(name);
        check(hint != hints_.end(), "the symbolic size {} is used as a number, and nothing is known of {}", d, name);
        return Dim(hint->second);
      })
      .number();
}

std::string GraphTracer::fresh_size() {
  check(!outer_,
        "the size of this result depends on the data, which a captured branch or loop cannot have inside: "
        "compute it before, or use a form with a fixed size (where, a mask)");
  return Tracer::fresh_size();
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
