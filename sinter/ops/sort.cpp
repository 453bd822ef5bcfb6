#include "sinter/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sinter/base/thread_pool.h"
#include "sinter/graph/interpreter.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/search.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// The lines of a row-major tensor along one dimension: element j of line n is at start(n) + j * stride.
struct Lines {
  int64_t length = 1, stride = 1, count = 1;
  Lines(std::span<const int64_t> sizes, int64_t dim) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (int64_t(d) == dim)
        length = sizes[d];
      else
        count *= sizes[d];
      if (int64_t(d) > dim) stride *= sizes[d];
    }
  }
  int64_t start(int64_t line) const { return line / stride * stride * length + line % stride; }
};

// Half types compare as float; everything else as itself.
template <class T>
using KeyOf = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

template <class T>
struct Entry {
  KeyOf<T> key;
  int64_t at;
};

// Ascending with NaN as the largest, or descending with NaN first; equal keys by position.
template <class K>
bool key_less(K a, K b) {
  if constexpr (std::is_floating_point_v<K>) return a < b || (b != b && a == a);
  return a < b;
}
template <class T>
struct EntryBefore {
  bool descending;
  bool operator()(const Entry<T>& a, const Entry<T>& b) const {
    if (descending ? key_less(b.key, a.key) : key_less(a.key, b.key)) return true;
    if (descending ? key_less(a.key, b.key) : key_less(b.key, a.key)) return false;
    return a.at < b.at;
  }
};

// The first `keep` of every line in order: values and positions.
TensorList ordered(const Tensor& given, int64_t dim, int64_t keep, bool descending) {
  Tensor x = given.contiguous();
  IntList sizes = x.impl().sizes, out_sizes = sizes;
  Lines from(sizes, dim);
  if (!sizes.empty()) out_sizes[size_t(dim)] = keep;
  Lines to(out_sizes, dim);
  Tensor values = empty(Shape(out_sizes), x.dtype()), positions = empty(Shape(out_sizes), kInt64);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* source = x.data_ptr<T>();
    T* value = values.data_ptr<T>();
    int64_t* position = positions.data_ptr<int64_t>();
    parallel_for(0, from.count, std::max<int64_t>(1, 4096 / std::max<int64_t>(from.length, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<Entry<T>> line(size_t(from.length));
                   EntryBefore<T> before{descending};
                   for (int64_t n = begin; n < end; ++n) {
                     for (int64_t j = 0; j < from.length; ++j)
                       line[size_t(j)] = {source[from.start(n) + j * from.stride], j};
                     if (keep < from.length) std::nth_element(line.begin(), line.begin() + keep, line.end(), before);
                     std::sort(line.begin(), line.begin() + keep, before);
                     for (int64_t j = 0; j < keep; ++j) {
                       int64_t at = to.start(n) + j * to.stride;
                       value[at] = source[from.start(n) + line[size_t(j)].at * from.stride];
                       position[at] = line[size_t(j)].at;
                     }
                   }
                 });
  });
  return {values, positions};
}

// The referee: an element's place is the number of elements that come before it.
void interpret_ordered(InterpretCall& c, int64_t dim, int64_t keep, bool descending) {
  const Array& x = *c.inputs[0];
  Lines from(x.sizes, dim), to(c.outputs[0].sizes, dim);
  auto less = [&](int64_t a, int64_t b) {
    if (!x.floating()) return x.i[size_t(a)] < x.i[size_t(b)];
    double p = x.f[size_t(a)], q = x.f[size_t(b)];
    return std::isnan(p) ? false : std::isnan(q) ? true : p < q;
  };
  for (int64_t n = 0; n < from.count; ++n)
    for (int64_t j = 0; j < from.length; ++j) {
      int64_t place = 0, at = from.start(n) + j * from.stride;
      for (int64_t k = 0; k < from.length; ++k) {
        int64_t other = from.start(n) + k * from.stride;
        bool first = descending ? less(at, other) : less(other, at),
             last = descending ? less(other, at) : less(at, other);
        place += first || (!last && k < j);
      }
      if (place >= keep) continue;
      int64_t out = to.start(n) + place * to.stride;
      if (x.floating())
        c.outputs[0].f[size_t(out)] = x.f[size_t(at)];
      else
        c.outputs[0].i[size_t(out)] = x.i[size_t(at)];
      c.outputs[1].i[size_t(out)] = j;
    }
}

struct Sort : Opaque {
  static constexpr auto name = "sort";
  using Attributes = SortAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    wrap_dim("sort", call.as<SortAttrs>().dim, call.rank(0));
    auto& x = call.inputs[0];
    return {Type{x.dtype, x.shape, x.device}, Type{kInt64, x.shape, x.device}};
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& a = attrs.as<SortAttrs>();
    int64_t dim = wrap_dim("sort", a.dim, inputs[0].dim());
    return ordered(inputs[0], dim, inputs[0].dim() ? inputs[0].impl().sizes[size_t(dim)] : 1, a.descending);
  }
  static void interpret(InterpretCall& c) {
    auto& a = c.call.as<SortAttrs>();
    interpret_ordered(c, wrap_dim("sort", a.dim, c.call.rank(0)), INT64_MAX, a.descending);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      return c[0].dim() == 0 ? c.grad() : scatter(zeros_like(c[0]), c.as<SortAttrs>().dim, c.out(1), c.grad());
    });
  }
  SINTER_SAMPLES("x[7] |", "x[3, 40] | descending=true", "x[5, 4, 3] | dim=1", "x[6, 2] | dim=0, descending=true",
                 "x[] |", "x[0] |", "x[2, 0] |", "i64[30]<4 |", "bool[9] | descending=true")
};

struct Topk : Opaque {
  static constexpr auto name = "topk";
  using Attributes = TopkAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<TopkAttrs>();
    auto& x = call.inputs[0];
    int64_t dim = wrap_dim("topk", a.dim, x.rank());
    Dim size = x.rank() ? x.shape[size_t(dim)] : Dim(1);
    check(possibly_le(0, a.k) && possibly_le(a.k, size), "topk: {} elements do not fit dimension {} of {}", a.k, dim,
          x.shape);
    Shape shape = x.rank() ? replaced(x.shape, dim, a.k) : x.shape;
    return {Type{x.dtype, shape, x.device}, Type{kInt64, shape, x.device}};
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& a = attrs.as<TopkAttrs>();
    return ordered(inputs[0], wrap_dim("topk", a.dim, inputs[0].dim()), count_of(a, inputs[0].dim()), a.largest);
  }
  static void interpret(InterpretCall& c) {
    auto& a = c.call.as<TopkAttrs>();
    interpret_ordered(c, wrap_dim("topk", a.dim, c.call.rank(0)), count_of(a, c.call.rank(0)), a.largest);
  }
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      return c[0].dim() == 0 ? c.grad() : scatter(zeros_like(c[0]), c.as<TopkAttrs>().dim, c.out(1), c.grad());
    });
  }
  SINTER_SAMPLES("x[7] | k=3", "x[3, 40] | k=5, largest=false", "x[6, 4, 3] | k=2, dim=1", "x[4, 5] | k=5",
                 "x[3] | k=0", "i64[20]<5 | k=6")
};

}  // namespace

std::tuple<Tensor, Tensor> sort(const TensorArg& x, GivenDim dim, bool descending, bool) {
  auto out = call_many<Sort>({x}, SortAttrs{dim.value, descending});
  return {out[0], out[1]};
}
Tensor argsort(const TensorArg& x, GivenDim dim, bool descending, bool stable) {
  return std::get<1>(sort(x, dim, descending, stable));
}
std::tuple<Tensor, Tensor> topk(const TensorArg& x, Dim k, int64_t dim, bool largest, bool) {
  auto out = call_many<Topk>({x}, TopkAttrs{k, dim, largest});
  return {out[0], out[1]};
}
std::tuple<Tensor, Tensor> kthvalue(const TensorArg& x, Dim k, int64_t dim, bool keepdim) {
  UserPosition here(x.where());
  int64_t d = wrap_dim("kthvalue", dim, x.dim());
  check(k >= 1 && k <= (x.dim() ? x.size(d) : Dim(1)), "kthvalue: there is no element number {} in dimension {} of {}",
        k, d, x.sizes());
  auto [values, positions] = topk(x, k, d, false);
  if (x.dim() == 0) return {values, positions};
  values = narrow(values, d, k - 1, 1);
  positions = narrow(positions, d, k - 1, 1);
  if (keepdim) return {values, positions};
  return {squeeze(values, d), squeeze(positions, d)};
}
std::tuple<Tensor, Tensor> median(const TensorArg& x, int64_t dim, bool keepdim) {
  UserPosition here(x.where());
  if (x.dim() == 0) return sort(x, dim);
  int64_t d = wrap_dim("median", dim, x.dim());
  Dim size = x.size(d);
  check(size > 0, "median: dimension {} of {} is empty", d, x.sizes());
  auto [values, positions] = sort(x, d);
  Tensor middle = narrow(positions, d, (size - 1) / 2, 1);
  if (is_floating(x.dtype())) {
    // NaNs are sorted to the end; the first of them wins over the middle.
    Tensor numbers = logical_not(isnan(values)).sum({d}, true);
    Tensor first_nan = gather(positions, d, minimum(numbers, size - 1));
    middle = where(numbers.lt(size), first_nan, middle);
  }
  Tensor value = gather(x, d, middle);
  if (keepdim) return {value, middle};
  return {squeeze(value, d), squeeze(middle, d)};
}
Tensor median(const TensorArg& x) {
  UserPosition here(x.where());
  return std::get<0>(median(flatten(x), 0));
}

OpFamily sort_ops() {
  static const auto all = [] {
    std::vector<const Op*> ops{&op_of<Sort>, &op_of<Topk>};
    ops.insert(ops.end(), search_ops().begin(), search_ops().end());
    return ops;
  }();
  return all;
}

}  // namespace sinter
