#include "sinter/loops/fused.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/loops/instr_builder.h"
#include "sinter/loops/sweep_builder.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

bool is_reduction(const Node& node) { return node.op->kind == OpKind::kReduce; }

// Coordinates of a value over the domain: dimensions of size 1 are read again and again. Of `pair`ed places those of the
// last axis are counted in twos.
Index coordinates(const Shape& shape, std::optional<int> pair = {}) {
  Index at;
  for (size_t d = 0; d < shape.size(); ++d)
    at.push_back(shape[d].same_as(1) ? Dim(0) : Dim::symbol("i" + std::to_string(d)));
  if (pair) at.back() = shape[shape.size() - 1].same_as(2) ? Dim(*pair) : at.back() * 2 + *pair;
  return at;
}

// What a sweep that needs these values computes: everything behind them up to reductions, and up to `spilled`.
std::set<const Node*> computed_for(const std::vector<const Node*>& wanted, const Node* spilled = nullptr) {
  std::set<const Node*> seen;
  std::vector<const Node*> left = wanted;
  while (!left.empty()) {
    const Node* node = left.back();
    left.pop_back();
    if (node == spilled || is_reduction(*node) || !seen.insert(node).second) continue;
    for (auto& v : node->inputs) left.push_back(v.node);
  }
  return seen;
}

// The value worth spilling, and the first of the sweeps that compute it; `wanted` has for each sweep what it needs. Its
// place is a result of its own type. The plan may have put that into the memory of an operand of the same extent, so no
// later sweep may read one.
std::pair<SpilledValue, size_t> find_spilled(const FusedAttrs& attrs, std::span<const Layout> layouts,
                                       const std::vector<std::vector<const Node*>>& wanted) {
  const Graph& body = *attrs.body;
  auto full = [&](Value v) { return v.type().shape.same_as(attrs.domain); };
  for (size_t n = body.nodes().size(); n-- > 0;) {
    const Node& node = body.nodes()[n];
    if (!node.op->pointwise || !node.op->pointwise->expensive || !full(node.result())) continue;
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
      if (out.node == &node || out.node->op->kind == OpKind::kScatter) continue;
      if (!full(out) || out.type().dtype != node.types[0].dtype) continue;
      size_t operand = layouts.size() - body.outputs().size() + j;
      Index at = coordinates(attrs.domain);
      return {{&node, at, int(operand), layouts[operand].offset_of(at)}, sweeps[0]};
    }
  }
  return {};
}

template <class F>
void each_offset(LoopNest& nest, F f) {
  for (auto& sweep : nest.sweeps) {
    for (auto& instr : sweep.body)
      if (instr.kind == InstrKind::kLoad || instr.kind == InstrKind::kIndex) f(instr.offset);
    for (auto& store : sweep.stores) f(store.offset);
  }
}

// Joins two neighbouring axes where every access walks them as one.
bool try_join(LoopNest& nest, Axis& outer, Axis& inner) {
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

void join_axes(LoopNest& nest, std::vector<Axis>& axes) {
  for (size_t d = axes.size(); d-- > 1;)
    if (try_join(nest, axes[d - 1], axes[d])) axes.erase(axes.begin() + int64_t(d) - 1);
}

// The columns of a tile are one axis: those of a convolution are the positions of a plane in row-major order.
void flatten_columns(LoopNest& nest) {
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

// Whether lanes along the last axis move by a stride, if at all, everywhere.
bool is_regular(const LoopNest& nest) {
  Dim axis = nest.inner.back().symbol;
  for (auto& sweep : nest.sweeps)
    for (auto& instr : sweep.body) {
      for (auto& c : instr.conditions)
        if (!c.value.coefficient_of(axis)) return false;
      if (!instr.offset.coefficient_of(axis)) return false;
    }
  return true;
}

bool has_conditions(const LoopNest& nest) {
  return std::any_of(nest.sweeps.begin(), nest.sweeps.end(), [](auto& sweep) {
    return std::any_of(sweep.body.begin(), sweep.body.end(), [](auto& instr) { return !instr.conditions.empty(); });
  });
}

// Nothing of a sweep over no elements is ever computed; but what does not move along an axis is computed before its loop.
void drop_unreached(const std::vector<Axis>& axes, Sweep& sweep) {
  if (std::none_of(axes.begin(), axes.end(), [](auto& axis) { return axis.extent.same_as(0); })) return;
  std::set<std::string> found;  // coordinates that were read
  for (auto& instr : sweep.body) {
    if (instr.kind == InstrKind::kLoadIndex) found.insert(to_string(instr.symbol));
    instr = {.kind = InstrKind::kConstant, .dtype = instr.dtype, .value = 0};
  }
  auto place = [&](const std::string& name) { return found.contains(name) ? Dim(0) : Dim::symbol(name); };
  for (auto& store : sweep.stores) store.offset = store.offset.substitute(place);
}

// A fused node's nest in the making. `pairs`: even and odd places of the last axis apart.
class FusedLowering {
 public:
  FusedLowering(const FusedAttrs& attrs, std::span<const Layout> layouts, bool pairs)
      : attrs_(attrs),
        body_(*attrs.body),
        layouts_(layouts),
        pairs_(pairs),
        inputs_(body_.inputs().size() - size_t(attrs.tiles)) {
    nest_.name = fused_name(body_);
    nest_.tiles = int(attrs.tiles);
    for (size_t i = 0; i < inputs_; ++i)
      nest_.operands.push_back({.dtype = body_.inputs()[i + size_t(attrs.tiles)].type().dtype, .scalar = layouts[i].scalar});
    for (auto& v : body_.outputs()) nest_.operands.push_back({.dtype = v.type().dtype, .output = true});
  }

  LoopNest rows_and_elements(const IntList& order) {
    domain(order);
    find_reductions();
    reductions();
    results();
    if (nest_.tiles) {
      flatten_columns(nest_);
      return std::move(nest_);
    }
    for (auto& sweep : nest_.sweeps)
      if (!sweep.once) drop_unreached(nest_.inner, sweep);
    join_axes(nest_, nest_.inner);
    join_axes(nest_, nest_.rows);
    if (!attrs_.inner && !nest_.rows.empty() && !nest_.inner.empty())
      if (try_join(nest_, nest_.rows.back(), nest_.inner.front())) nest_.rows.pop_back();
    return std::move(nest_);
  }

  // Of a node whose only result is a reduction over other than the last dimensions, a search or a scan: everything before it
  // is computed where it is read.
  LoopNest one_combination() {
    const Node& sink = *body_.outputs()[0].node;
    const bool scan = sink.op->kind == OpKind::kScan;
    std::vector<Type> types{sink.inputs[0].type()};
    OpCall call{*sink.op, types, sink.attrs};
    auto& shape = sink.types[0].shape;
    Index at = coordinates(shape), k;
    for (size_t d = 0; d < shape.size(); ++d)
      if (bool along = scan && d == size_t(sink.op->scan_dim(call)); along || !at[d].is_number())
        (along ? nest_.inner : nest_.rows).push_back({Dim::symbol("i" + std::to_string(d)), shape[d], int(d)});
    if (!scan)
      for (auto& extent : sink.op->reduction(call)) {
        k.push_back(Dim::symbol("k" + std::to_string(k.size())));
        nest_.inner.push_back({k.back(), extent});
      }
    Sweep sweep;
    SweepBuilder builder(body_, nest_, layouts_, outers_, sweep);
    const Combine combine = sink.op->combine;
    const DType result = sink.types[0].dtype;
    const int value = builder.reduced(sink, at, k);
    RowReduction r{0, value, combine, accumulator_dtype(combine, scan ? result : builder.dtype_of(value), result), result};
    if (sink.op->payload) r.payload = builder.payload(sink, at, k);
    sweep.reductions.push_back(r);
    Store store{.operand = int(inputs_), .offset = layouts_.back().offset_of(at), .value = -1};
    if (scan) {
      store.running = 0;
      sweep.stores.push_back(store);
    }
    drop_unreached(nest_.inner, sweep);
    nest_.sweeps.push_back(std::move(sweep));
    if (!scan) store_row(nest_, r, store);
    if (!scan) join_axes(nest_, nest_.inner);
    join_axes(nest_, nest_.rows);
    return std::move(nest_);
  }

 private:
  // Without reductions the last axis takes the lanes. What is reduced is inside, whatever the order; an axis of one place is
  // left out where there are others.
  void domain(const IntList& order) {
    const size_t rank = attrs_.domain.size(), inner = size_t(attrs_.inner);
    for (size_t n = 0; n < rank; ++n) {
      size_t d = order.empty() ? n : size_t(order[n]);
      auto& axes = d + inner < rank ? nest_.rows : nest_.inner;
      axes.push_back({Dim::symbol("i" + std::to_string(d)), attrs_.domain[d], int(d)});
    }
    if (!nest_.tiles) {
      drop_ones(nest_.rows, inner ? 0 : 1);
      drop_ones(nest_.inner, 1);
    }
    if (nest_.inner.empty() && !nest_.rows.empty()) {
      nest_.inner.push_back(nest_.rows.back());
      nest_.rows.pop_back();
    }
    if (!pairs_) return;
    nest_.inner.back().extent = nest_.inner.back().extent / 2;
    // One pair in each row: the rows take the lanes.
    if (nest_.inner.back().extent.same_as(1) && !nest_.rows.empty()) {
      nest_.inner.back() = nest_.rows.back();
      nest_.rows.pop_back();
    }
  }

  static void drop_ones(std::vector<Axis>& axes, size_t least) {
    for (size_t d = axes.size(); d-- > 0 && axes.size() > least;)
      if (axes[d].extent.same_as(1)) axes.erase(axes.begin() + int64_t(d));
  }

  // Reductions by how many others they wait for: those of one depth share a sweep.
  void find_reductions() {
    for (auto& node : body_.nodes()) {
      int d = 0;
      for (auto& v : node.inputs) d = std::max(d, depth_[v.node]);
      if (is_reduction(node)) {
        outers_[&node] = int(outers_.size());
        deepest_ = std::max(deepest_, ++d);
      }
      depth_[&node] = d;
    }
    std::vector<std::vector<const Node*>> wanted(size_t(deepest_) + 1);
    for (auto& [node, outer] : outers_) wanted[size_t(depth_[node]) - 1].push_back(node->inputs[0].node);
    for (auto& v : body_.outputs()) wanted.back().push_back(v.node);
    std::tie(spilled_, spilled_by_) = find_spilled(attrs_, layouts_, wanted);
    nest_.sweeps.resize(size_t(deepest_));
  }

  void reductions() {
    const Index all = coordinates(attrs_.domain);
    const Index inner_at(all.end() - attrs_.inner, all.end());
    for (size_t n = 0; n < nest_.sweeps.size(); ++n) {
      Sweep& sweep = nest_.sweeps[n];
      SweepBuilder builder(body_, nest_, layouts_, outers_, sweep);
      if (spilled_.node && n > spilled_by_) builder.read_spilled(spilled_);
      // In the body's order: equal bodies have equal texts.
      for (auto& node : body_.nodes()) {
        if (!is_reduction(node) || size_t(depth_[&node]) != n + 1) continue;
        const Combine combine = node.op->combine;
        const DType result = node.types[0].dtype;
        int value = builder.reduced(node, coordinates(node.types[0].shape), inner_at);
        sweep.reductions.push_back(
            {outers_.at(&node), value, combine, accumulator_dtype(combine, builder.dtype_of(value), result), result});
      }
      if (spilled_.node && n == spilled_by_)
        sweep.stores.push_back({spilled_.operand, spilled_.offset, builder.element(spilled_.node->result(), all)});
      if (!stores_early()) continue;
      for (size_t j = 0; j < body_.outputs().size(); ++j)
        if (Value v = body_.outputs()[j]; is_full(v))
          sweep.stores.push_back({int(inputs_ + j), layouts_[inputs_ + j].offset_of(all), builder.element(v, all)});
    }
  }

  bool is_full(Value v) const { return v.type().shape.same_as(attrs_.domain); }

  // Whether elements wait for none of the row's values, so that the one walk which reduces it stores them.
  bool stores_early() const {
    if (nest_.tiles || spilled_.node || deepest_ != 1) return false;
    return std::all_of(body_.outputs().begin(), body_.outputs().end(), [&](Value v) {
      return v.node->op->kind != OpKind::kScatter && (!is_full(v) || depth_.at(v.node) == 0);
    });
  }

  // Elements, and what there is one of a row.
  void results() {
    Sweep elements, once;
    once.once = true;
    SweepBuilder element(body_, nest_, layouts_, outers_, elements), row(body_, nest_, layouts_, outers_, once);
    if (spilled_.node) element.read_spilled(spilled_);
    for (size_t j = 0; j < body_.outputs().size(); ++j) {
      Value v = body_.outputs()[j];
      auto& shape = v.type().shape;
      auto& layout = layouts_[inputs_ + j];
      const int operand = int(inputs_ + j);
      const bool scatters = v.node->op->kind == OpKind::kScatter;
      if (scatters || pairs_) {
        for (int place = 0; place < (pairs_ ? 2 : 1); ++place) {
          Index at = coordinates(scatters ? attrs_.domain : shape, pairs_ ? std::optional(place) : std::nullopt);
          Dim offset = layout.offset_of(scatters ? element.target(*v.node, at) : at);
          elements.stores.push_back({operand, offset, scatters ? element.scattered(*v.node, at) : element.element(v, at)});
        }
        continue;
      }
      const bool full = is_full(v);
      if (full && stores_early()) continue;
      Index at = coordinates(shape);
      Dim offset = layout.offset_of(at);
      // A contraction's result as it is, its rows counted in one.
      if (nest_.tiles && !full)
        offset = Dim::symbol("r") * attrs_.domain[attrs_.domain.size() - 1] + nest_.inner.back().symbol;
      const bool goes_back = nest_.tiles && holds_product(v.type().dtype, body_.inputs()[0].type().dtype);
      if (goes_back && nest_.back < 0) nest_.back = operand;
      if ((full && !nest_.inner.empty()) || nest_.tiles)
        elements.stores.push_back({operand, offset, element.element(v, at)});
      else
        once.stores.push_back({operand, offset, row.element(v, at)});
    }
    if (!elements.stores.empty()) nest_.sweeps.push_back(std::move(elements));
    if (!once.stores.empty()) nest_.sweeps.push_back(std::move(once));
  }

  const FusedAttrs& attrs_;
  const Graph& body_;
  const std::span<const Layout> layouts_;
  const bool pairs_;
  const size_t inputs_;
  LoopNest nest_;
  std::map<const Node*, int> depth_, outers_;
  int deepest_ = 0;
  SpilledValue spilled_;
  size_t spilled_by_ = 0;
};

LoopNest lower_places(const FusedAttrs& attrs, std::span<const Layout> layouts, const IntList& order) {
  SINTER_INTERNAL_ASSERT(attrs.is_one_nest() || attrs.kind == FusedKind::kEpilogue,
                         "a kernel of kind {} is not one nest", field_text(attrs.kind));
  if (attrs.kind == FusedKind::kCombination) return FusedLowering(attrs, layouts, false).one_combination();
  LoopNest nest = FusedLowering(attrs, layouts, false).rows_and_elements(order);
  // Where neighbours take turns, each of the two is regular by itself.
  bool even = !attrs.inner && !nest.tiles && !attrs.domain.empty();
  even = even && (attrs.domain[attrs.domain.size() - 1] % 2).same_as(0);
  if (!even || nest.inner.empty()) return nest;
  // Two lanes are few, and different work in each is none for lanes.
  const bool in_twos = nest.inner.back().extent.same_as(2) && has_conditions(nest);
  if (is_regular(nest) && !in_twos) return nest;
  for (auto& v : attrs.body->outputs())
    even = even && (v.type().shape.same_as(attrs.domain) || v.node->op->kind == OpKind::kScatter);
  if (!even) return nest;
  LoopNest apart = FusedLowering(attrs, layouts, true).rows_and_elements({});
  return is_regular(apart) ? apart : nest;
}

}  // namespace

LoopNest lower_fused(const FusedAttrs& attrs, std::span<const Layout> layouts, const Parameters& named, const IntList& order) {
  LoopNest nest = lower_places(attrs, layouts, order);
  nest.take_parameters(named);
  return nest;
}

std::vector<bool> read_elsewhere(const Graph& body) {
  std::vector<const Node*> moved;
  for (auto& node : body.nodes()) {
    bool view = node.op->kind == OpKind::kView;
    bool plain = view && known_ops().keeps_order(node) &&
                 without_ones(node.types[0].shape).same_as(without_ones(node.inputs[0].type().shape));
    if (node.op->kind == OpKind::kLoop || (view && !plain)) moved.push_back(&node);
  }
  auto behind = computed_for(moved);
  std::vector<bool> out;
  for (auto& v : body.inputs()) out.push_back(behind.count(v.node) != 0);
  return out;
}

}  // namespace sinter
