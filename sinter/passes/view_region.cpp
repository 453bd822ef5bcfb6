#include "sinter/passes/view_region.h"

#include <algorithm>

#include "sinter/ops/attributes.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

Type type_after(const ViewStep& step, const Type& before) { return infer_types(*step.op, {&before, 1}, step.attrs)[0]; }

ViewStep canonical_step(const ViewStep& step, const Type& before) {
  auto& ops = known_ops();
  auto wrapped = [&](int64_t dim) { return wrap_dim(step.op->name.data(), dim, before.rank()); };
  if (step.op == &ops.select) {
    auto a = step.attrs.as<SelectAttrs>();
    a.dim = wrapped(a.dim);
    if (a.index.is_number() && a.index.number() < 0) a.index += before.shape[size_t(a.dim)];
    return {step.op, a};
  }
  if (step.op == &ops.slice) {
    auto a = step.attrs.as<SliceAttrs>();
    a.dim = wrapped(a.dim);
    a.end = a.end.value_or(before.shape[size_t(a.dim)]);
    return {step.op, a};
  }
  if (step.op == &ops.permute)
    return {step.op, PermuteAttrs{wrap_dims(step.op->name.data(), step.attrs.as<PermuteAttrs>().dims, before.rank())}};
  if (step.op == &ops.view) return {step.op, ViewAttrs{type_after(step, before).shape}};
  return step;
}

// Positions first, first + step, … of one dimension of the base, `count` of them.
struct Range {
  Dim first = 0, count;
  int64_t step = 1;
};

// The positions that a path may reach, dimension by dimension: a box around what it looks at. Steps after the first one
// that is not understood only narrow it.
std::vector<Range> box_around(const ViewPath& path, const Type& base) {
  auto& ops = known_ops();
  std::vector<Range> box;
  std::vector<size_t> seen;  // the base's dimension behind each dimension of the view
  for (size_t d = 0; d < base.shape.size(); ++d) {
    box.push_back({.count = base.shape[d]});
    seen.push_back(d);
  }
  Type type = base;
  for (auto& given : path.steps) {
    ViewStep step = canonical_step(given, type);
    type = type_after(step, type);
    if (step.op == &ops.select) {
      auto& a = step.attrs.as<SelectAttrs>();
      Range& range = box[seen[size_t(a.dim)]];
      range.first += a.index * range.step;
      range.count = 1;
      seen.erase(seen.begin() + a.dim);
    } else if (step.op == &ops.slice) {
      auto& a = step.attrs.as<SliceAttrs>();
      Range& range = box[seen[size_t(a.dim)]];
      range.first += a.start * range.step;
      range.count = type.shape[size_t(a.dim)];
      range.step *= a.step;
    } else if (step.op == &ops.permute) {
      std::vector<size_t> before = seen;
      auto& dims = step.attrs.as<PermuteAttrs>().dims;
      for (size_t d = 0; d < dims.size(); ++d) seen[d] = before[size_t(dims[d])];
    } else if (step.op != &ops.alias) {
      break;
    }
  }
  return box;
}

// a < b for every value of their symbols, as far as the difference tells.
bool certainly_less(const Dim& a, const Dim& b) {
  Dim difference = b - a;
  return difference.is_number() && difference.number() > 0;
}

bool disjoint(const Range& a, const Range& b) {
  Dim last_a = a.first + (a.count - 1) * a.step, last_b = b.first + (b.count - 1) * b.step;
  if (certainly_less(last_a, b.first) || certainly_less(last_b, a.first)) return true;
  // Interleaved: every second position from 0 and every second from 1.
  Dim apart = a.first - b.first;
  return a.step == b.step && apart.is_number() && apart.number() % a.step != 0;
}

}  // namespace

ViewPath canonical(const ViewPath& path, const Type& base) {
  ViewPath out;
  Type type = base;
  for (auto& step : path.steps) {
    out.steps.push_back(canonical_step(step, type));
    type = type_after(step, type);
  }
  return out;
}

bool disjoint(const ViewPath& a, const ViewPath& b, const Type& base) {
  auto around_a = box_around(a, base), around_b = box_around(b, base);
  for (size_t d = 0; d < around_a.size(); ++d)
    if (disjoint(around_a[d], around_b[d])) return true;
  return false;
}

bool shows_each_once(const ViewPath& path) {
  auto& ops = known_ops();
  return std::all_of(path.steps.begin(), path.steps.end(), [&](const ViewStep& step) {
    return ops.is_reshape(*step.op) || step.op == &ops.permute || step.op == &ops.slice || step.op == &ops.select;
  });
}

std::optional<ViewPath> inverse(const ViewPath& path, const Type& base) {
  auto& ops = known_ops();
  ViewPath out;
  Type type = base;
  for (auto& given : path.steps) {
    ViewStep step = canonical_step(given, type);
    Type after = type_after(step, type);
    if (step.op == &ops.permute) {
      auto& dims = step.attrs.as<PermuteAttrs>().dims;
      PermuteAttrs back{IntList(dims.size())};
      for (size_t d = 0; d < dims.size(); ++d) back.dims[size_t(dims[d])] = int64_t(d);
      out = out.then(ops.permute, back);
    } else if (ops.is_reshape(*step.op)) {
      out = out.then(ops.view, ViewAttrs{type.shape});
    } else if (step.op != &ops.slice || after != type) {
      return std::nullopt;
    }
    type = after;
  }
  std::reverse(out.steps.begin(), out.steps.end());
  return out;
}

}  // namespace sinter
