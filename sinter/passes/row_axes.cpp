#include "sinter/passes/row_axes.h"

#include <algorithm>

#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

std::vector<Type> operand_types(const Node& node) {
  std::vector<Type> types;
  for (auto& v : node.inputs) types.push_back(v.type());
  return types;
}

Index symbols(const char* letter, size_t count) {
  Index out;
  for (size_t d = 0; d < count; ++d) out.push_back(Dim::symbol(letter + std::to_string(d)));
  return out;
}

// Notes in which dimension of each operand the symbol stands; it may stand nowhere else.
class RowProbe final : public ElementBuilder {
 public:
  RowProbe(const OpCall& call, const Dim& row) : ElementBuilder(call), axes(call.inputs.size(), kUnread), row_(row) {}

  Elem load(int operand, const Index& at) override {
    int axis = kWhole;
    for (size_t d = 0; d < at.size(); ++d) {
      if (!at[d].depends_on(row_)) continue;
      plain = plain && axis == kWhole && at[d].same_as(row_);
      axis = int(d);
    }
    int& known = axes[size_t(operand)];
    plain = plain && (known == kUnread || known == axis);
    known = axis;
    return {0};
  }
  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar&) override {
    look_at(inside);
    return load(operand, at);
  }
  Dim load_index(int operand, const Index& at, const Dim&) override {
    load(operand, at);
    return Dim::symbol("x" + std::to_string(indices_++));
  }
  Elem select(const Conditions& conditions, Elem, Elem) override {
    look_at(conditions);
    return {0};
  }
  Elem apply(const Op&, DType, std::initializer_list<Elem>) override { return {0}; }
  Elem number(const Dim& value) override {
    plain = plain && !value.depends_on(row_);
    return {0};
  }
  Elem constant(const Scalar&) override { return {0}; }

  RowAxes finish() const {
    RowAxes out = axes;
    std::replace(out.begin(), out.end(), kUnread, kWhole);
    return out;
  }

  static constexpr int kUnread = -2;
  RowAxes axes;
  bool plain = true;

 private:
  void look_at(const Conditions& conditions) {
    for (auto& c : conditions) plain = plain && !c.value.depends_on(row_) && !c.extent.depends_on(row_);
  }
  Dim row_;
  int indices_ = 0;
};

// Operands are broadcast: their last dimensions are those of the result.
RowAxes pointwise_rows(const Node& node, int axis) {
  RowAxes out;
  for (auto& v : node.inputs) {
    const int its = axis - int(node.types[0].rank() - v.type().rank());
    const bool along = its >= 0 && v.type().shape[size_t(its)].same_as(node.types[0].shape[size_t(axis)]);
    out.push_back(along ? its : kWhole);
  }
  return out;
}

// The dimension of `of` that is dimension `axis` of `to`, where only the shape differs.
std::optional<int> reshaped_axis(const Shape& of, const Shape& to, int axis) {
  Dim before = 1;
  for (int d = 0; d < axis; ++d) before *= to[size_t(d)];
  Dim reached = 1;
  for (size_t d = 0; d < of.size(); ++d) {
    if (reached.same_as(before) && of[d].same_as(to[size_t(axis)])) return int(d);
    reached *= of[d];
  }
  return std::nullopt;
}

std::optional<RowAxes> scattered_rows(const Node& node, const OpCall& call, int axis) {
  const Index domain = symbols("i", node.op->domain(call).size());
  for (auto& row : domain) {
    RowProbe probe(call, row);
    probe.i = domain;
    const Index target = node.op->target(probe);
    if (!target[size_t(axis)].same_as(row)) continue;
    for (size_t d = 0; d < target.size(); ++d)
      if (int(d) != axis && target[d].depends_on(row)) return std::nullopt;
    node.op->element(probe);
    if (!probe.plain || probe.axes[0] != RowProbe::kUnread) return std::nullopt;
    RowAxes out = probe.finish();
    out[0] = axis;  // what is changed
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::optional<RowAxes> rows_of_result(const Node& node, int axis) {
  if (node.types.size() != 1 || node.op->random) return std::nullopt;
  if (node.op->kind == OpKind::kPointwise) return pointwise_rows(node, axis);
  if (known_ops().is_reshape(*node.op)) {
    auto from = reshaped_axis(node.inputs[0].type().shape, node.types[0].shape, axis);
    return from ? std::optional(RowAxes{*from}) : std::nullopt;
  }
  if (!node.op->element || node.op->kind == OpKind::kScan) return std::nullopt;
  const auto types = operand_types(node);
  const OpCall call{*node.op, types, node.attrs};
  if (node.op->kind == OpKind::kScatter) return scattered_rows(node, call, axis);
  const Index i = symbols("i", node.types[0].shape.size());
  RowProbe probe(call, i[size_t(axis)]);
  probe.i = i;
  if (node.op->reduction) probe.k = symbols("k", node.op->reduction(call).size());
  node.op->element(probe);
  return probe.plain ? std::optional(probe.finish()) : std::nullopt;
}

std::vector<RowAxes> rows_summed(const Node& node) {
  if (node.op->combine != Combine::kSum || !node.op->reduction || node.op->payload || node.types.size() != 1) return {};
  const auto types = operand_types(node);
  const OpCall call{*node.op, types, node.attrs};
  const Index k = symbols("k", node.op->reduction(call).size());
  std::vector<RowAxes> out;
  for (auto& row : k) {
    RowProbe probe(call, row);
    probe.i = symbols("i", node.types[0].shape.size());
    probe.k = k;
    node.op->element(probe);
    if (probe.plain) out.push_back(probe.finish());
  }
  return out;
}

}  // namespace sinter
