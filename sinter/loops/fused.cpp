#include "sinter/loops/fused.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/loops/sweep_builder.h"
#include "sinter/ops/contract.h"

namespace sinter {

namespace {

bool is_reduction(const Node& node) { return node.op->kind == OpKind::kReduce; }

// Coordinates of a value over the domain: dimensions of size 1 are read again and again. Of `pair`ed places those of the
// last axis are counted in twos.
Index coordinates(const Shape& shape, std::optional<int> pair = {}) {
  Index at;
  for (size_t d = 0; d < shape.size(); ++d)
    at.push_back(shape[d].same_as(1) ? Dim(0) : Dim::symbol("i" + std::to_string(d)));
  if (pair) at.back() = at.back() * 2 + *pair;
  return at;
}

Dim offset_in(const Layout& layout, const Index& at) {
  Dim offset = 0;
  for (size_t d = 0; d < at.size(); ++d) offset += at[d] * layout.strides[d];
  return offset;
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
      if (out.node == &node || out.node->op->kind == OpKind::kScatter || !full(out) || out.type().dtype != node.types[0].dtype) continue;
      size_t operand = body.inputs().size() + j;
      Index at = coordinates(attrs.domain);
      return {{&node, at, int(operand), offset_in(layouts[operand], at)}, sweeps[0]};
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

// The columns of a convolution's result are the positions of a plane in row-major order: one axis.
void flatten_columns(FusedNest& nest) {
  auto& axes = nest.inner;
  for (size_t d = axes.size(); d-- > 0 && axes.size() > 1;)
    if (axes[d].extent.same_as(1)) axes.erase(axes.begin() + int64_t(d));
  join_axes(nest, axes);
  if (axes.size() == 1) return;
  const Dim position = Dim::symbol("position");
  std::map<std::string, Dim> places;
  Dim inside = 1;
  for (size_t d = axes.size(); d-- > 0; inside *= axes[d].extent)
    places[to_string(axes[d].symbol)] = position / inside % axes[d].extent;
  auto replace = [&](Dim& d) {
    d = d.substitute([&](const std::string& name) { return places.count(name) ? places[name] : Dim::symbol(name); });
  };
  each_offset(nest, replace);
  for (auto& sweep : nest.sweeps)
    for (auto& instr : sweep.body)
      for (auto& c : instr.conditions) replace(c.value);
  axes = {{position, inside}};
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

// Whether lanes along the last axis move by a stride, if at all, everywhere.
bool is_regular(const FusedNest& nest) {
  Dim axis = nest.inner.back().symbol;
  for (auto& sweep : nest.sweeps)
    for (auto& instr : sweep.body) {
      for (auto& c : instr.conditions)
        if (!c.value.coefficient_of(axis)) return false;
      if (!instr.offset.coefficient_of(axis)) return false;
    }
  return true;
}

// Nothing of a sweep over no elements is ever computed; but what does not move along an axis is computed before its loop.
void drop_unreached(const std::vector<Axis>& axes, Sweep& sweep) {
  if (std::none_of(axes.begin(), axes.end(), [](auto& axis) { return axis.extent.same_as(0); })) return;
  std::set<std::string> found;  // coordinates that were read
  for (auto& instr : sweep.body) {
    if (instr.kind == InstrKind::kLoadIndex) found.insert(to_string(instr.symbol));
    instr = {.kind = InstrKind::kConstant, .dtype = instr.dtype, .value = 0};
  }
  for (auto& store : sweep.stores)
    store.offset = store.offset.substitute([&](const std::string& name) { return found.contains(name) ? Dim(0) : Dim::symbol(name); });
}

FusedNest lower_places(const FusedAttrs& attrs, std::span<const Layout> layouts, const IntList& order, bool pairs) {
  const Graph& body = *attrs.body;
  FusedNest nest;
  nest.name = name_of(body);
  for (size_t i = 0; i < body.inputs().size(); ++i)
    nest.operands.push_back({.dtype = body.inputs()[i].type().dtype, .scalar = layouts[i].scalar});
  for (auto& v : body.outputs()) nest.operands.push_back({.dtype = v.type().dtype, .output = true});

  size_t rank = attrs.domain.size(), inner = size_t(attrs.inner);
  auto contractions = contractions_of(body);
  nest.tiles = int(contractions.size());
  const bool planes = nest.tiles && contractions[0]->op == &convolution_op();
  // Without reductions the last axis takes the lanes.
  size_t lanes = planes ? rank - 2 : inner ? inner : std::min<size_t>(rank, 1);
  for (size_t n = 0; n < rank; ++n) {
    size_t d = inner || order.empty() ? n : size_t(order[n]);
    (n + lanes < rank ? nest.rows : nest.inner).push_back({Dim::symbol("i" + std::to_string(d)), attrs.domain[d]});
  }
  if (pairs) nest.inner.back().extent = nest.inner.back().extent / 2;

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
    auto& layout = layouts[body.inputs().size() + j];
    int operand = int(body.inputs().size() + j);
    if (v.node->op->kind == OpKind::kScatter) {
      for (int place = 0; place < (pairs ? 2 : 1); ++place) {
        Index at = coordinates(attrs.domain, pairs ? std::optional(place) : std::nullopt);
        Dim offset = offset_in(layout, element_builder.target(*v.node, at));
        elements.stores.push_back({operand, offset, element_builder.scattered(*v.node, at)});
      }
      continue;
    }
    for (int place = 0; pairs && place < 2; ++place) {
      Index at = coordinates(shape, place);
      elements.stores.push_back({int(body.inputs().size() + j), offset_in(layout, at), element_builder.element(v, at)});
    }
    if (pairs) continue;
    Index at = coordinates(shape);
    Dim offset = offset_in(layout, at);
    // A contraction's result as it is, its rows counted in one.
    if (nest.tiles && !full) offset = Dim::symbol("r") * attrs.domain[rank - 1] + nest.inner.back().symbol;
    if (nest.tiles && nest.back < 0 && holds_product(v.type().dtype, contractions[0]->types[0].dtype)) nest.back = operand;
    if (full || nest.tiles)
      elements.stores.push_back({operand, offset, element_builder.element(v, at)});
    else
      once.stores.push_back({operand, offset, row_builder.element(v, at)});
  }
  if (!elements.stores.empty()) nest.sweeps.push_back(std::move(elements));
  if (!once.stores.empty()) nest.sweeps.push_back(std::move(once));
  if (planes) flatten_columns(nest);
  if (nest.tiles) return nest;
  for (auto& sweep : nest.sweeps)
    if (!sweep.once) drop_unreached(nest.inner, sweep);
  join_axes(nest, nest.inner);
  join_axes(nest, nest.rows);
  if (!inner && !nest.rows.empty() && !nest.inner.empty())
    if (try_join(nest, nest.rows.back(), nest.inner.front())) nest.rows.pop_back();
  return nest;
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
  FusedNest nest = lower_places(attrs, layouts, order, false);
  // Where neighbours take turns, each of the two is regular by itself.
  bool even = !attrs.inner && !nest.tiles && !attrs.domain.empty();
  even = even && (attrs.domain[attrs.domain.size() - 1] % 2).same_as(0);
  if (!even || nest.inner.empty() || is_regular(nest)) return nest;
  for (auto& v : attrs.body->outputs())
    even = even && (v.type().shape.same_as(attrs.domain) || v.node->op->kind == OpKind::kScatter);
  if (!even) return nest;
  FusedNest apart = lower_places(attrs, layouts, {}, true);
  return is_regular(apart) ? apart : nest;
}

std::optional<SinkNest> lower_sink(const FusedAttrs& attrs, std::span<const Layout> layouts) {
  const Graph& body = *attrs.body;
  const Node& sink = *body.outputs()[0].node;
  bool scan = sink.op->kind == OpKind::kScan;
  if (attrs.inner || body.outputs().size() != 1 || (!scan && !is_reduction(sink))) return std::nullopt;
  // As a fused nest of one sweep, for what they share.
  FusedNest whole;
  for (size_t i = 0; i < body.inputs().size(); ++i)
    whole.operands.push_back({.dtype = body.inputs()[i].type().dtype, .scalar = layouts[i].scalar});
  whole.operands.push_back({.dtype = sink.types[0].dtype, .output = true});
  std::vector<Type> types{sink.inputs[0].type()};
  OpCall call{*sink.op, types, sink.attrs};
  auto& shape = sink.types[0].shape;
  Index at = coordinates(shape), k;
  for (size_t d = 0; d < shape.size(); ++d)
    if (bool along = scan && d == size_t(sink.op->scan_dim(call)); along || !at[d].is_number())
      (along ? whole.inner : whole.rows).push_back({Dim::symbol("i" + std::to_string(d)), shape[d]});
  if (!scan) {
    auto extents = sink.op->reduction(call);
    for (size_t d = 0; d < extents.size(); ++d) {
      k.push_back(Dim::symbol("k" + std::to_string(d)));
      whole.inner.push_back({k[d], extents[d]});
    }
  }
  Sweep sweep;
  const std::map<const Node*, int> outers;
  SweepBuilder builder(body, whole, layouts, outers, sweep);
  LoopNest nest;
  nest.kind = scan ? NestKind::kScan : NestKind::kReduce;
  nest.value = builder.reduced(sink, at, k);
  nest.combine = sink.op->combine;
  DType result = sink.types[0].dtype;
  nest.accumulator = accumulator_dtype(nest.combine, scan ? result : builder.dtype_of(nest.value), result);
  if (sink.op->payload) nest.payload = builder.payload(sink, at, k);
  nest.output = int(body.inputs().size());
  sweep.stores.push_back({nest.output, offset_in(layouts.back(), at), nest.value});
  drop_unreached(whole.inner, sweep);
  whole.sweeps.push_back(std::move(sweep));
  if (!scan) join_axes(whole, whole.inner);
  join_axes(whole, whole.rows);
  nest.name = name_of(body);
  nest.operands = whole.operands;
  nest.parallel = whole.rows;
  nest.sequential = whole.inner;
  nest.body = std::move(whole.sweeps[0].body);
  nest.offset = whole.sweeps[0].stores[0].offset;
  return SinkNest{std::move(nest), whole.indexing};
}

std::vector<bool> read_elsewhere(const Graph& body) {
  static const Op* permute = find_op("permute");
  std::vector<const Node*> moved;
  for (auto& node : body.nodes()) {
    bool view = node.op->kind == OpKind::kView;
    bool plain = view && node.op != permute &&
                 without_ones(node.types[0].shape).same_as(without_ones(node.inputs[0].type().shape));
    if (node.op->kind == OpKind::kLoop || (view && !plain)) moved.push_back(&node);
  }
  auto behind = computed_for(moved);
  std::vector<bool> out;
  for (auto& v : body.inputs()) out.push_back(behind.count(v.node) != 0);
  return out;
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
        for (auto& instr : sweep.body) axis = axis || (instr.kind == InstrKind::kLoadIndex && to_string(instr.symbol) == name);
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
