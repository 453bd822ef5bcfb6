#include "sinter/loops/fused.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"

namespace sinter {

namespace {

bool is_reduction(const Node& node) { return node.op->kind == OpKind::kReduce; }

// A value that one sweep computes and leaves in the memory of a result, for the sweeps after it; the result itself is
// stored by the last one.
struct KeptValue {
  const Node* node = nullptr;
  int operand = -1;
  Dim offset = 0;
};

// Turns values of the body at symbolic coordinates into instructions of one sweep.
class SweepBuilder {
 public:
  SweepBuilder(const Graph& body, FusedNest& nest, std::span<const Layout> layouts, const std::map<const Node*, int>& outers,
               Sweep& sweep)
      : body_(body), nest_(nest), layouts_(layouts), outers_(outers), sweep_(sweep) {
    for (size_t i = 0; i < body.inputs().size(); ++i) input_of_[body.inputs()[i].node] = int(i);
  }

  int element(Value v, const Index& at) {
    std::string key = std::to_string(v.node->id);
    for (auto& d : at) key += "," + to_string(d);
    auto known = done_.find(key);
    if (known != done_.end()) return known->second;
    int id = make(v, at);
    done_.emplace(std::move(key), id);
    return id;
  }

  // From here on the value is read from where it was kept.
  void read_kept(const KeptValue& kept) { kept_ = &kept; }

  // The value that a reduction combines, at the row's coordinates and those of the inner axes.
  int reduced(const Node& node, const Index& row, const Index& inner);

  int push(Instr instr) {
    sweep_.body.push_back(std::move(instr));
    return int(sweep_.body.size()) - 1;
  }
  DType dtype_of(int id) const { return sweep_.body[size_t(id)].dtype; }

 private:
  int make(Value v, const Index& at) {
    const Node& node = *v.node;
    if (kept_ && kept_->node == &node) {
      Instr instr{.kind = InstrKind::kLoad, .dtype = v.type().dtype};
      instr.operand = kept_->operand;
      instr.offset = kept_->offset;
      return push(std::move(instr));
    }
    switch (node.op->kind) {
      case OpKind::kInput: return load(input_of_.at(&node), at);
      case OpKind::kScalar: {
        Instr instr{.kind = InstrKind::kConstant, .dtype = v.type().dtype};
        instr.value = node.attrs.as<ScalarAttrs>().value;
        return push(std::move(instr));
      }
      case OpKind::kPointwise: return pointwise(node, at);
      case OpKind::kView:
        if (is_tile(&node)) return tile(node);
        return by_definition(node, at, {});
      case OpKind::kReduce: {
        Instr instr{.kind = InstrKind::kOuter, .dtype = v.type().dtype};
        instr.operand = outers_.at(&node);
        check_row(at);
        return push(std::move(instr));
      }
      default:
        return is_contraction(node) ? tile(node) : by_definition(node, at, {});
    }
  }

  // Whether a value is a contraction's result, perhaps with its rows counted in another way.
  static bool is_tile(const Node* node) {
    while (node->op->kind == OpKind::kView) node = node->inputs[0].node;
    return is_contraction(*node);
  }

  int tile(const Node& node) {
    const Node* from = &node;
    while (from->op->kind == OpKind::kView) from = from->inputs[0].node;
    auto all = contractions_of(body_);
    Instr instr{.kind = InstrKind::kTile, .dtype = node.types[0].dtype};
    instr.operand = int(std::find(all.begin(), all.end(), from) - all.begin());
    return push(std::move(instr));
  }

  int load(int operand, const Index& at) {
    Instr instr{.kind = InstrKind::kLoad, .dtype = body_.inputs()[size_t(operand)].type().dtype};
    instr.operand = operand;
    auto& layout = layouts_[size_t(operand)];
    if (!layout.scalar) {
      SINTER_INTERNAL_ASSERT(at.size() == layout.strides.size(), "{} coordinates for {} strides", at.size(),
                             layout.strides.size());
      for (size_t d = 0; d < at.size(); ++d) instr.offset += at[d] * layout.strides[d];
    }
    return push(std::move(instr));
  }

  int pointwise(const Node& node, const Index& at) {
    SmallVector<int, 4> args;
    std::vector<Type> types;
    for (auto& v : node.inputs) {
      auto& shape = v.type().shape;
      size_t shift = at.size() - shape.size();
      Index part;
      for (size_t d = 0; d < shape.size(); ++d) part.push_back(shape[d].same_as(1) ? Dim(0) : at[d + shift]);
      args.push_back(element(v, part));
      types.push_back(v.type());
    }
    DType result = node.types[0].dtype, operands = types.empty() ? result : promote_operands(types);
    Instr instr{.kind = InstrKind::kApply, .dtype = result};
    instr.op = node.op;
    instr.compute = pointwise_compute_dtype(node.op->pointwise->typing, operands, result);
    instr.args = args;
    return push(std::move(instr));
  }

  // A view, a creation or the inside of a reduction: by the op's own definition, operands being values of the body.
  class Definition final : public ElementBuilder {
   public:
    Definition(const OpCall& call, SweepBuilder& builder, const Node& node)
        : ElementBuilder(call), builder_(builder), node_(node) {}
    Elem load(int operand, const Index& at) override { return {builder_.element(node_.inputs[size_t(operand)], at)}; }
    Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar&) override {
      SINTER_INTERNAL_ASSERT(inside.empty(), "{} reads under a condition and cannot be fused", call.op.name);
      return load(operand, at);
    }
    Dim load_index(int, const Index&, const Dim&) override {
      SINTER_INTERNAL_ASSERT(false, "{} reads by index and cannot be fused", call.op.name);
    }
    Elem select(const Conditions& conditions, Elem yes, Elem no) override {
      Instr instr{.kind = InstrKind::kSelect, .dtype = builder_.dtype_of(yes.id)};
      instr.conditions = conditions;
      instr.args = {yes.id, no.id};
      return {builder_.push(std::move(instr))};
    }
    Elem apply(const Op& op, DType dtype, std::initializer_list<Elem> args) override {
      Typing typing = op.pointwise->typing;
      Instr instr{.kind = InstrKind::kApply, .dtype = typing == Typing::kCompare || typing == Typing::kBool ? kBool : dtype};
      instr.op = &op;
      instr.compute = pointwise_compute_dtype(typing, dtype, instr.dtype);
      for (auto& a : args) instr.args.push_back(a.id);
      return {builder_.push(std::move(instr))};
    }
    Elem number(const Dim& value) override {
      Instr instr{.kind = InstrKind::kIndex, .dtype = kInt64};
      instr.offset = value;
      return {builder_.push(std::move(instr))};
    }
    Elem constant(const Scalar& value) override {
      Instr instr{.kind = InstrKind::kConstant, .dtype = value.dtype()};
      instr.value = value;
      return {builder_.push(std::move(instr))};
    }

   private:
    SweepBuilder& builder_;
    const Node& node_;
  };

  int by_definition(const Node& node, const Index& i, const Index& k) {
    std::vector<Type> types;
    for (auto& v : node.inputs) types.push_back(v.type());
    OpCall call{*node.op, types, node.attrs};
    Definition definition(call, *this, node);
    definition.i = i;
    definition.k = k;
    return node.op->element(definition).id;
  }

  // A row value is the same for the whole row, and exists for this row only.
  void check_row(const Index& at) const {
    for (auto& d : at) {
      bool own = d.same_as(0);
      for (auto& axis : nest_.rows) own = own || d.same_as(axis.symbol);
      // An inner dimension of one element has one place.
      for (auto& axis : nest_.inner) own = own || (d.same_as(axis.symbol) && axis.extent.same_as(1));
      SINTER_INTERNAL_ASSERT(own, "a fused kernel reads the row value of another row, at {}", d);
    }
  }

  const Graph& body_;
  FusedNest& nest_;
  std::span<const Layout> layouts_;
  const std::map<const Node*, int>& outers_;
  Sweep& sweep_;
  const KeptValue* kept_ = nullptr;
  std::map<const Node*, int> input_of_;
  std::map<std::string, int> done_;
};

int SweepBuilder::reduced(const Node& node, const Index& row, const Index& inner) { return by_definition(node, row, inner); }

// Coordinates of a value over the domain: dimensions of size 1 are read again and again.
Index coordinates(const Shape& shape) {
  Index at;
  for (size_t d = 0; d < shape.size(); ++d)
    at.push_back(shape[d].same_as(1) ? Dim(0) : Dim::symbol("i" + std::to_string(d)));
  return at;
}

Dim offset_in(const Layout& layout, const Index& at) {
  Dim offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += at[d] * layout.strides[d];
  return offset;
}

// Costs far more than a load and a store.
bool is_expensive(const Op& op) {
  static const std::set<std::string_view> names{"exp",  "exp2", "expm1", "log",  "log2",    "log10", "log1p", "pow",  "sin",
                                                "cos",  "tan",  "asin",  "acos", "atan",    "atan2", "sinh",  "cosh", "tanh",
                                                "erf",  "erfc", "erfinv", "gelu", "sigmoid", "silu",  "mish",  "softplus"};
  return op.kind == OpKind::kPointwise && names.count(op.name);
}

// What a sweep that needs these values computes: everything behind them up to reductions, and up to `kept`.
std::set<const Node*> computed_for(const std::vector<const Node*>& wanted, const Node* kept = nullptr) {
  std::set<const Node*> seen;
  std::vector<const Node*> left = wanted;
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    if (node == kept || is_reduction(*node) || !seen.insert(node).second) continue;
    for (auto& v : node->inputs) left.push_back(v.node);
  }
  return seen;
}

// The value worth keeping, and the first of the sweeps that compute it; `wanted` has for each sweep what it needs. Its
// place is a result of its own type. The plan may have put that into the memory of an operand of the same extent, so no
// later sweep may read one.
std::pair<KeptValue, size_t> find_kept(const FusedAttrs& attrs, std::span<const Layout> layouts,
                                       const std::vector<std::vector<const Node*>>& wanted) {
  const Graph& body = *attrs.body;
  auto full = [&](Value v) { return v.type().shape.same_as(attrs.domain); };
  for (size_t n = body.nodes().size(); n-- > 0;) {
    const Node& node = body.nodes()[n];
    if (!is_expensive(*node.op) || !full(node.result())) continue;
    if (node.types[0].dtype != compute_dtype(node.types[0].dtype)) continue;
    std::vector<size_t> sweeps;
    for (size_t s = 0; s < wanted.size(); ++s)
      if (computed_for(wanted[s]).count(&node)) sweeps.push_back(s);
    if (sweeps.size() < 2) continue;
    bool reads_operands = false;
    for (size_t s = sweeps[0] + 1; s < wanted.size(); ++s)
      for (auto* other : computed_for(wanted[s], &node))
        reads_operands = reads_operands || (other->op->kind == OpKind::kInput && !other->types[0].shape.empty() &&
                                            other->types[0].shape.numel().same_as(attrs.domain.numel()));
    if (reads_operands) continue;
    for (size_t j = 0; j < body.outputs().size(); ++j) {
      Value out = body.outputs()[j];
      if (out.node == &node || !full(out) || out.type().dtype != node.types[0].dtype) continue;
      size_t operand = body.inputs().size() + j;
      return {{&node, int(operand), offset_in(layouts[operand], coordinates(attrs.domain))}, sweeps[0]};
    }
  }
  return {};
}

template <class F>
void each_offset(FusedNest& nest, F f) {
  for (auto& sweep : nest.sweeps) {
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kLoad || instr.kind == InstrKind::kIndex) f(instr.offset);
    for (auto& store : sweep.stores) f(store.offset);
  }
}

// Joins two neighbouring axes where every access walks them as one.
bool try_join(FusedNest& nest, Axis& outer, Axis& inner) {
  bool fits = true;
  each_offset(nest, [&](Dim& offset) {
    auto a = offset.coefficient_of(outer.symbol), b = offset.coefficient_of(inner.symbol);
    fits = fits && a && b && a->same_as(*b * inner.extent);
  });
  for (auto& sweep : nest.sweeps)
    for (auto& instr : sweep.body)
      for (auto& c : instr.conditions) fits = fits && !c.value.depends_on(outer.symbol) && !c.value.depends_on(inner.symbol);
  if (!fits) return false;
  std::string gone = to_string(outer.symbol);
  each_offset(nest, [&](Dim& offset) {
    offset = offset.substitute([&](const std::string& name) { return name == gone ? Dim(0) : Dim::symbol(name); });
  });
  inner.extent = outer.extent * inner.extent;
  return true;
}

void join_axes(FusedNest& nest, std::vector<Axis>& axes) {
  for (size_t d = axes.size(); d-- > 1;)
    if (try_join(nest, axes[d - 1], axes[d])) axes.erase(axes.begin() + int64_t(d) - 1);
}

std::string name_of(const Graph& body) {
  std::string name;
  int count = 0;
  for (auto& node : body.nodes()) {
    auto kind = node.op->kind;
    if (kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView) continue;
    if (++count <= 5) name += (name.empty() ? "" : "_") + std::string(node.op->name);
  }
  return count > 5 ? name + "_and_" + std::to_string(count - 5) : name;
}

}  // namespace

bool is_contraction(const Node& node) { return node.op->kind == OpKind::kLoop && node.op->combine != Combine::kNone; }

std::vector<const Node*> contractions_of(const Graph& body) {
  std::vector<const Node*> out;
  for (auto& node : body.nodes())
    if (is_contraction(node)) out.push_back(&node);
  return out;
}

FusedNest lower_fused(const FusedAttrs& attrs, std::span<const Layout> layouts, const IntList& order) {
  const Graph& body = *attrs.body;
  FusedNest nest;
  nest.name = name_of(body);
  for (size_t i = 0; i < body.inputs().size(); ++i)
    nest.operands.push_back({.dtype = body.inputs()[i].type().dtype, .scalar = layouts[i].scalar});
  for (auto& v : body.outputs()) nest.operands.push_back({.dtype = v.type().dtype, .output = true});

  size_t rank = attrs.domain.size(), inner = size_t(attrs.inner);
  nest.tiles = int(contractions_of(body).size());
  // Without reductions the last axis takes the lanes.
  size_t lanes = inner ? inner : std::min<size_t>(rank, 1);
  for (size_t n = 0; n < rank; ++n) {
    size_t d = inner || order.empty() ? n : size_t(order[n]);
    (n + lanes < rank ? nest.rows : nest.inner).push_back({Dim::symbol("i" + std::to_string(d)), attrs.domain[d]});
  }

  // Reductions by how many others they wait for: those of one depth share a sweep.
  std::map<const Node*, int> depth, outers;
  int deepest = 0;
  for (auto& node : body.nodes()) {
    int d = 0;
    for (auto& v : node.inputs) d = std::max(d, depth[v.node]);
    if (is_reduction(node)) {
      outers[&node] = int(outers.size());
      deepest = std::max(deepest, ++d);
    }
    depth[&node] = d;
  }
  std::vector<std::vector<const Node*>> wanted(size_t(deepest) + 1);
  for (auto& [node, outer] : outers) wanted[size_t(depth[node]) - 1].push_back(node->inputs[0].node);
  for (auto& v : body.outputs()) wanted.back().push_back(v.node);
  auto [kept, kept_by] = find_kept(attrs, layouts, wanted);

  Index inner_at;
  for (auto& axis : nest.inner) inner_at.push_back(axis.symbol);
  for (int d = 1; d <= deepest; ++d) {
    Sweep sweep;
    SweepBuilder builder(body, nest, layouts, outers, sweep);
    if (kept.node && size_t(d) - 1 > kept_by) builder.read_kept(kept);
    for (auto& [node, outer] : outers) {
      if (depth[node] != d) continue;
      DType result = node->types[0].dtype;
      int value = builder.reduced(*node, coordinates(node->types[0].shape), inner_at);
      sweep.reductions.push_back({outer, value, node->op->combine, accumulator_dtype(node->op->combine, builder.dtype_of(value), result), result});
    }
    std::sort(sweep.reductions.begin(), sweep.reductions.end(), [](auto& a, auto& b) { return a.outer < b.outer; });
    if (kept.node && size_t(d) - 1 == kept_by)
      sweep.stores.push_back({kept.operand, kept.offset, builder.element(kept.node->result(), coordinates(attrs.domain))});
    nest.sweeps.push_back(std::move(sweep));
  }
  Sweep elements, once;
  once.once = true;
  SweepBuilder element_builder(body, nest, layouts, outers, elements), row_builder(body, nest, layouts, outers, once);
  if (kept.node) element_builder.read_kept(kept);
  for (size_t j = 0; j < body.outputs().size(); ++j) {
    Value v = body.outputs()[j];
    auto& shape = v.type().shape;
    bool full = shape.same_as(attrs.domain);
    Index at = coordinates(shape);
    auto& layout = layouts[body.inputs().size() + j];
    Dim offset = offset_in(layout, at);
    // A contraction's result as it is, its rows counted in one.
    if (nest.tiles && !full) offset = Dim::symbol("r") * attrs.domain[rank - 1] + nest.inner.back().symbol;
    int operand = int(body.inputs().size() + j);
    if (nest.tiles && nest.back < 0 && is_floating(v.type().dtype)) nest.back = operand;
    if (full || nest.tiles)
      elements.stores.push_back({operand, offset, element_builder.element(v, at)});
    else
      once.stores.push_back({operand, offset, row_builder.element(v, at)});
  }
  if (!elements.stores.empty()) nest.sweeps.push_back(std::move(elements));
  if (!once.stores.empty()) nest.sweeps.push_back(std::move(once));
  if (nest.tiles) return nest;
  join_axes(nest, nest.inner);
  join_axes(nest, nest.rows);
  if (!inner && !nest.rows.empty() && !nest.inner.empty())
    if (try_join(nest, nest.rows.back(), nest.inner.front())) nest.rows.pop_back();
  return nest;
}

LoopNest FusedNest::as_nest(const Sweep& sweep) const {
  LoopNest out;
  out.name = name;
  out.operands = operands;
  out.parallel = rows;
  if (!sweep.once) out.sequential = inner;
  out.body = sweep.body;
  return out;
}

std::vector<std::string> FusedNest::params() const {
  std::vector<std::string> out;
  auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for (auto& sweep : sweeps) {
    LoopNest nest = as_nest(sweep);
    nest.sequential = inner;
    for (auto& name : nest.params()) add(name);
    for (auto& store : sweep.stores)
      for (auto& name : store.offset.symbols()) {
        bool axis = tiles && name == "r";
        for (auto* axes : {&rows, &inner})
          for (auto& a : *axes) axis = axis || to_string(a.symbol) == name;
        if (!axis) add(name);
      }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string FusedNest::text() const {
  std::string out = "kernel " + name + "\n", indent = "  ";
  for (auto& axis : rows) {
    out += indent + format("for {} < {} (parallel)\n", axis.symbol, axis.extent);
    indent += "  ";
  }
  for (auto& sweep : sweeps) {
    std::string axes;
    if (!sweep.once)
      for (auto& axis : inner) axes += format(" {} < {}", axis.symbol, axis.extent);
    out += indent + (sweep.once ? "once" : "sweep" + axes) + "\n";
    LoopNest nest = as_nest(sweep);
    for (size_t i = 0; i < sweep.body.size(); ++i) out += indent + "  " + instr_text(nest, sweep.body[i], int(i)) + "\n";
    for (auto& r : sweep.reductions)
      out += indent + format("  row value {} = {} %{}\n", r.outer, combine_name(r.combine), r.value);
    for (auto& s : sweep.stores)
      out += indent + format("  store {} out{}[{}] = %{}\n", operands[size_t(s.operand)].dtype, s.operand, s.offset, s.value);
  }
  return out;
}

}  // namespace sinter
