#include "sinter/capture/layouts.h"

#include <algorithm>
#include <set>

#include "sinter/engine/eager/eager.h"

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
  try {
    for (auto& step : path.steps) {
      Attrs attrs = step.attrs.substitute([&](const std::string& name) { return Dim(world(Dim::symbol(name)).value()); });
      Type types[] = {{storage.type.dtype, Shape(std::span<const int64_t>(layout.sizes)), storage.type.device}};
      auto view = eager::find_view(OpCall{*step.op, types, attrs}, layout.strides);
      if (!view) return std::nullopt;
      layout = {view->sizes, view->strides};
    }
  } catch (const std::exception&) {  // an Error, or a size that nobody knows yet
    return std::nullopt;
  }
  return layout;
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
    for (int64_t other : {now - 1, now + 1, now + 2, now + 3}) {
      World world{sizes, name, other};
      if (!world.is_allowed()) continue;
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
