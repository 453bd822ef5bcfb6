#include "sinter/capture/layouts.h"

#include <algorithm>
#include <set>

#include "sinter/capture/recorder_parts.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/control_attrs.h"
#include "sinter/ops/known_ops.h"

namespace sinter::capture {

namespace {

// The dimensions from the outermost in memory to the innermost; those of one element, which lie nowhere, left out.
IntList order_of(const Layout& layout) {
  IntList order;
  for (size_t d = 0; d < layout.sizes.size(); ++d)
    if (layout.sizes[d] != 1) order.push_back(int64_t(d));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return layout.strides[size_t(a)] > layout.strides[size_t(b)];
  });
  return order;
}

// Whether the elements fill a piece of memory.
bool is_dense(const Layout& layout) {
  IntList order = order_of(layout);
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    size_t d = size_t(order[i]);
    if (layout.strides[d] != expected) return false;
    expected *= layout.sizes[d];
  }
  return true;
}

// A tensor without gaps has none at other sizes; strides that are part of the guards stay as they are.
Layout resized(const Layout& now, const IntList& sizes) {
  if (!is_dense(now)) return {sizes, now.strides};
  Layout out{sizes, IntList(sizes.size(), 1)};
  IntList order = order_of(now);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    out.strides[size_t(order[i])] = stride;
    stride *= sizes[size_t(order[i])];
  }
  return out;
}

IntList pointwise_strides(std::span<const Layout* const> operands, const IntList& sizes) {
  std::vector<TensorImpl> bodies(operands.size());
  std::vector<const TensorImpl*> given(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) continue;
    set_layout(bodies[i], operands[i]->sizes, operands[i]->strides, 0);
    given[i] = &bodies[i];
  }
  return eager::pointwise_strides(given, sizes);
}

// The sizes of a program with one of them changed.
struct World {
  const SizeTable& table;
  const std::string& symbol;
  int64_t value;

  std::optional<int64_t> operator()(const Dim& d) const {
    if (d.is_number()) return d.number();
    bool known = true;
    Dim number = d.substitute([&](const std::string& name) {
      auto size = name == symbol ? std::optional(value) : table.value(Dim::symbol(name));
      known = known && size;
      return Dim(size.value_or(0));
    });
    return known ? std::optional(number.number()) : std::nullopt;
  }

  bool is_allowed() const {
    auto& known = table.symbols()[size_t(table.place_of(symbol))];
    if (value < known.low || value > known.high) return false;
    for (auto& fact : table.facts()) {
      auto a = (*this)(fact.a), b = (*this)(fact.b);
      if (!a || !b) continue;
      bool holds = fact.op == DimCompare::kEqual ? *a == *b : fact.op == DimCompare::kLess ? *a < *b : *a <= *b;
      if (holds != fact.holds) return false;
    }
    return true;
  }
};

// Nothing where there is no such look at these sizes.
std::optional<Layout> look_in(const World& world, const Storage& storage, const ViewPath& path) {
  IntList sizes;
  for (auto& d : storage.type.shape) {
    auto size = world(d);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  Layout layout = resized({storage.sizes, storage.strides}, sizes);
  DType dtype = storage.type.dtype;
  try {
    for (auto& step : path.steps) {
      Attrs attrs = step.attrs.substitute([&](const std::string& name) { return Dim(world(Dim::symbol(name)).value()); });
      Type types[] = {{dtype, Shape(std::span<const int64_t>(layout.sizes)), storage.type.device}};
      auto view = eager::find_view(OpCall{*step.op, types, attrs}, layout.strides);
      if (!view) return std::nullopt;
      layout = {view->sizes, view->strides};
      dtype = view->dtype;
    }
  } catch (const std::exception&) {  // an Error, or a size that nobody knows yet
    return std::nullopt;
  }
  return layout;
}

// The layouts of a graph's results, run op by op on operands of these; nothing where a size is not known.
std::optional<std::vector<Layout>> layouts_of(const Graph& graph, std::span<const Layout> operands, const SizeTable& table) {
  std::vector<std::vector<Layout>> known(graph.nodes().size());
  auto layout_of = [&](const Value& v) -> Layout& { return known[size_t(v.node->id)][size_t(v.index)]; };
  for (size_t i = 0; i < operands.size(); ++i) known[size_t(graph.inputs()[i].node->id)] = {operands[i]};
  for (auto& node : graph.nodes()) {
    if (node.op->kind == OpKind::kInput) continue;
    auto& results = known[size_t(node.id)];
    for (auto& type : node.types) {
      IntList sizes;
      for (auto& d : type.shape) {
        auto size = table.value(d);
        if (!size) return std::nullopt;
        sizes.push_back(*size);
      }
      results.push_back({sizes, contiguous_strides(sizes)});
    }
    if (node.op->aliases) {
      const Layout& from = layout_of(node.inputs[0]);
      Attrs attrs = node.attrs.substitute([&](const std::string& name) { return Dim(*table.value(Dim::symbol(name))); });
      Type types[] = {{node.inputs[0].type().dtype, Shape(std::span<const int64_t>(from.sizes)), {}}};
      auto view = eager::find_view(OpCall{*node.op, types, attrs}, from.strides);
      if (view) results[0].strides = view->strides;
    } else if (node.op->kind == OpKind::kPointwise) {
      std::vector<const Layout*> from;
      for (auto& input : node.inputs) from.push_back(input.node->op->kind == OpKind::kScalar ? nullptr : &layout_of(input));
      results[0].strides = pointwise_strides(from, results[0].sizes);
    }
  }
  std::vector<Layout> out;
  for (auto& output : graph.outputs()) out.push_back(layout_of(output));
  return out;
}

void add_symbols(const Dim& d, std::set<std::string>& names) {
  for (auto& name : d.symbols()) names.insert(name);
}

}  // namespace

IntList pattern_of(const Layout& layout) {
  IntList pattern = order_of(layout);
  for (size_t i = pattern.size(), count = i; i-- > 0;) {
    size_t d = size_t(pattern[i]);
    int64_t below = i + 1 < count ? layout.strides[size_t(pattern[i + 1])] * layout.sizes[size_t(pattern[i + 1])] : 1;
    pattern.push_back(layout.strides[d] == below);
  }
  return pattern;
}

IntList result_order(const Layout& operand) {
  if (is_dense(operand)) return order_of(operand);
  return order_of({operand.sizes, contiguous_strides(operand.sizes)});
}

std::optional<IntList> control_strides(const Value& result, std::span<const TensorArg> inputs, const SizeTable& sizes) {
  const Op &cond = known_ops().cond, &loop = known_ops().while_loop;
  const Op* op = result.node->op;
  if (op != &cond && op != &loop) return std::nullopt;
  auto& attrs = result.node->attrs;
  std::vector<Layout> operands;
  for (auto& arg : inputs.subspan(op == &cond)) operands.push_back({arg.tensor().impl().sizes, arg.tensor().impl().strides});
  size_t index = size_t(result.index);
  std::optional<std::vector<Layout>> one, other;
  if (op == &cond) {
    one = layouts_of(*attrs.as<CondAttrs>().then_branch, operands, sizes);
    other = layouts_of(*attrs.as<CondAttrs>().else_branch, operands, sizes);
  } else {
    // A state that was not computed is cloned; one that was goes through the body again.
    const Graph& body = *attrs.as<WhileAttrs>().body;
    size_t count = body.outputs().size();
    one.emplace(operands.begin(), operands.begin() + int64_t(count));
    for (auto& state : *one) {
      const Layout* from[] = {&state};
      state.strides = pointwise_strides(from, state.sizes);
    }
    other = layouts_of(body, operands, sizes);
    if (other) std::copy(other->begin(), other->end(), operands.begin());
    auto again = layouts_of(body, operands, sizes);
    if (!again || (*again)[index].strides != (*other)[index].strides) other.reset();
  }
  if (one && other && (*one)[index].strides == (*other)[index].strides) {
    const Layout* from[] = {&(*one)[index]};
    return pointwise_strides(from, (*one)[index].sizes);
  }
  return std::nullopt;
}

std::string size_that_decides(const Storage& storage, const ViewPath& path, const SizeTable& sizes,
                              const std::function<IntList(const Layout&)>& decided) {
  std::set<std::string> names;
  for (auto& d : storage.type.shape) add_symbols(d, names);
  ViewPath copy = path;
  map_field([&](const Dim& d) { return add_symbols(d, names), d; }, copy);
  for (auto& name : names) {
    int place = sizes.place_of(name);
    if (place < 0 || sizes.symbols()[size_t(place)].word < 0) continue;
    int64_t now = sizes.symbols()[size_t(place)].value;
    auto present = look_in({sizes, name, now}, storage, path);
    if (!present) continue;
    IntList answer = decided(*present);
    // Where strides of two kinds agree at some size, it is a small one: of a step, of a diagonal.
    for (int64_t other : {now - 2, now - 1, now + 1, now + 2, now + 3, int64_t(2), int64_t(3), int64_t(4)}) {
      World world{sizes, name, other};
      if (other == now || !world.is_allowed()) continue;
      auto layout = look_in(world, storage, path);
      // A dimension of one element is another program's.
      if (!layout || std::count(layout->sizes.begin(), layout->sizes.end(), 1) !=
                         std::count(present->sizes.begin(), present->sizes.end(), 1))
        continue;
      if (decided(*layout) != answer) return name;
    }
  }
  return {};
}

}  // namespace sinter::capture
