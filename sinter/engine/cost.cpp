#include "sinter/engine/cost.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "sinter/ops/fused.h"
#include "sinter/passes/decompose.h"
#include "sinter/runtime/device_runtime.h"

namespace sinter {

namespace {

// 0 where a size is a symbol.
int64_t count(const Shape& shape) {
  int64_t n = 1;
  for (auto& d : shape) n *= d.is_number() ? d.number() : 0;
  return n;
}

double flops_of(const OpCall& call, std::span<const Type> results);

double flops_of(const Graph& graph) {
  double flops = 0;
  for (auto& node : graph.nodes()) {
    std::vector<Type> types;
    for (auto& v : node.inputs) types.push_back(v.type());
    flops += flops_of(OpCall{*node.op, types, node.attrs}, node.types);
  }
  return flops;
}

double flops_of(const OpCall& call, std::span<const Type> results) {
  const Op& op = call.op;
  if (&op == &fused_op()) return flops_of(*call.as<FusedAttrs>().body);
  if (op.kind == OpKind::kLoop && op.combine == Combine::kSum && op.reduction && call.inputs.size() > 1)
    return 2.0 * double(points_of(call, results));
  if (op.kind != OpKind::kComposite) return 0;
  Graph whole;
  std::vector<Value> inputs;
  for (auto& type : call.inputs) inputs.push_back(whole.add_input(type));
  auto& node = whole.add(op, inputs, call.attrs);
  std::vector<Value> outputs;
  for (size_t r = 0; r < node.types.size(); ++r) outputs.push_back(node.result(int(r)));
  whole.set_outputs(std::move(outputs));
  Graph body = decompose(whole);
  // One that could not be taken apart stays, and would come here again.
  bool apart = std::none_of(body.nodes().begin(), body.nodes().end(),
                            [](auto& each) { return each.op->kind == OpKind::kComposite; });
  return apart ? flops_of(body) : 0;
}

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

// Of each operand of a fused body the elements that are read, at most: what is found by an index is read where it is.
// `scattered`, by result: the elements that a scatter writes.
std::vector<int64_t> elements_read(const Graph& body, bool in_place, std::vector<int64_t>& scattered) {
  std::vector<int64_t> out(body.inputs().size(), 0);
  auto place = [&](Value v) { return size_t(std::find(body.inputs().begin(), body.inputs().end(), v) - body.inputs().begin()); };
  auto note = [&](Value v, int64_t elements) {
    if (size_t i = place(v); i < out.size()) out[i] = out[i] == kAll || elements == kAll ? kAll : out[i] + elements;
  };
  for (auto& node : body.nodes()) {
    std::vector<Type> types;
    for (auto& v : node.inputs) types.push_back(v.type());
    OpCall call{*node.op, types, node.attrs};
    std::vector<int64_t> inner, inside;
    if (node.op == &fused_op()) inner = elements_read(*call.as<FusedAttrs>().body, in_place, inside);
    bool by_index = (node.op->kind == OpKind::kLoop && node.op->combine == Combine::kNone) || node.op->kind == OpKind::kScatter;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      bool self = node.op->kind == OpKind::kScatter && i == 0;
      note(node.inputs[i], !inner.empty() ? inner[i] : self ? (in_place ? 0 : kAll) : by_index ? points_of(call, node.types) : kAll);
    }
    for (size_t r = 0; r < body.outputs().size(); ++r)
      if (body.outputs()[r].node == &node) {
        scattered.resize(body.outputs().size(), kAll);
        if (node.op->kind == OpKind::kScatter && in_place) scattered[r] = points_of(call, node.types);
        if (!inside.empty()) scattered[r] = inside[size_t(body.outputs()[r].index)];
      }
  }
  for (auto& v : body.outputs()) note(v, kAll);
  return out;
}

Cost cost_of(const OpCall& call, std::span<const Type> results, std::span<const int64_t> operands,
             std::span<const int64_t> written, bool in_place) {
  if (&call.op == &fused_op()) {
    Cost cost;
    std::vector<int64_t> scattered;
    auto read = elements_read(*call.as<FusedAttrs>().body, in_place, scattered);
    auto at_most = [](int64_t bytes, int64_t elements, DType dtype) {
      return elements == kAll ? bytes : std::min(bytes, elements * item_size(dtype));
    };
    for (size_t i = 0; i < operands.size(); ++i) cost.read += at_most(operands[i], read[i], call.inputs[i].dtype);
    for (size_t r = 0; r < written.size(); ++r)
      cost.written += at_most(written[r], r < scattered.size() ? scattered[r] : kAll, results[r].dtype);
    cost.flops = flops_of(call, results);
    return cost;
  }
  Cost cost;
  const Op& op = call.op;
  bool by_index = op.kind == OpKind::kLoop || op.kind == OpKind::kScatter || op.kind == OpKind::kView;
  int64_t visited = by_index ? points_of(call, results) : 0;
  auto at_most = [&](int64_t bytes, DType dtype) {
    return by_index ? std::min(bytes, visited * item_size(dtype)) : bytes;
  };
  bool scatter = op.kind == OpKind::kScatter;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (scatter && i == 0)
      cost.read += in_place ? 0 : operands[i];
    else
      cost.read += at_most(operands[i], call.inputs[i].dtype);
  }
  for (size_t r = 0; r < written.size(); ++r)
    cost.written += scatter && in_place ? at_most(written[r], results[r].dtype) : written[r];
  cost.flops = flops_of(call, results);
  return cost;
}

}  // namespace

int64_t points_of(const OpCall& call, std::span<const Type> results) {
  if (call.op.kind == OpKind::kScatter) return count(call.op.domain(call));
  bool reduces = call.op.combine != Combine::kNone && call.op.reduction;
  return count(results[0].shape) * (reduces ? count(call.op.reduction(call)) : 1);
}

Cost& Cost::operator+=(const Cost& other) {
  read += other.read;
  written += other.written;
  flops += other.flops;
  return *this;
}

int64_t footprint(const TensorImpl& t) {
  int64_t n = 1;
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (t.strides[d] != 0 || t.sizes[d] == 0) n *= t.sizes[d];
  return n * item_size(t.dtype);
}

Cost cost_of(const Op& op, const Attrs& attrs, std::span<const TensorImpl* const> inputs,
             std::span<const TensorImpl* const> outputs, bool in_place) {
  std::vector<Type> types, results;
  std::vector<int64_t> operands, written;
  std::set<std::tuple<const void*, int64_t, int64_t>> seen;
  for (auto* t : inputs) {
    types.push_back(t ? Type{t->dtype, Shape(t->sizes), t->device, false} : Type{kFloat32, {}, {}, true});
    // The same tensor twice is read once.
    const void* memory = t && t->buffer ? static_cast<const void*>(t->buffer.get()) : t;
    bool fresh = t && seen.emplace(memory, t->offset * item_size(t->dtype), t->numel).second;
    operands.push_back(fresh ? footprint(*t) : 0);
  }
  for (auto* t : outputs) {
    results.push_back({t->dtype, Shape(t->sizes), t->device, false});
    written.push_back(footprint(*t));
  }
  return cost_of(OpCall{op, types, attrs}, results, operands, written, in_place);
}

Cost cost_of(const Node& node) {
  if (node.op->kind == OpKind::kView || node.op->kind == OpKind::kInput || node.op->kind == OpKind::kScalar) return {};
  std::vector<Type> types;
  std::vector<int64_t> operands, written;
  std::set<std::pair<const Node*, int>> seen;
  auto bytes = [](const Type& type) { return type.weak ? 0 : count(type.shape) * item_size(type.dtype); };
  for (auto& v : node.inputs) {
    types.push_back(v.type());
    operands.push_back(seen.emplace(v.node, v.index).second ? bytes(v.type()) : 0);
  }
  for (auto& type : node.types) written.push_back(bytes(type));
  return cost_of(OpCall{*node.op, types, node.attrs}, node.types, operands, written, false);
}

double least_seconds(const Node& node) {
  Cost cost = cost_of(node);
  // A draw computes for as long as it would take to move so many times its bytes.
  constexpr double kDraw = 8;
  double drawn = node.op->random ? kDraw * double(cost.written) : 0;
  return runtime::ceilings_of(node.types[0].device).seconds(double(cost.read) + drawn, double(cost.written), cost.flops, 0x1p60);
}

}  // namespace sinter
