// Ops of the sort family that find elements: nonzero and unique, whose sizes only the data knows, and searchsorted.
#include "sinter/ops/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sinter/base/thread_pool.h"
#include "sinter/graph/interpreter.h"
#include "sinter/ops/complex_math.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// The name of a size that is known once the op has run. A string and not a Dim: no one can substitute it before.
struct CountAttrs {
  std::string count = "u0";
  SINTER_FIELDS(count)
};

CountAttrs fresh_count() { return Tracer::current() ? CountAttrs{Tracer::current()->fresh_size()} : CountAttrs(); }

// How many there are of a tensor's elements: of none, none.
Dim count_of(const OpCall& call) {
  return call.shape(0).numel().same_as(0) ? Dim(0) : Dim::symbol(call.as<CountAttrs>().count);
}

struct NonZero : Opaque {
  static constexpr auto name = "nonzero";
  using Attributes = CountAttrs;
  static constexpr NotDifferentiable grad{"its result are coordinates"};
  static TensorList on_complex(const ComplexCall& c) { return {call<NonZero>({complex_math::truth(c.parts(0))}, c.attrs)}; }
  static std::vector<Type> infer(const OpCall& call) {
    return {Type{kInt64, {count_of(call), call.rank(0)}, call.inputs[0].device}};
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs&) {
    Tensor x = inputs[0].contiguous();
    auto& sizes = x.impl().sizes;
    int64_t rank = int64_t(sizes.size()), numel = x.impl().numel;
    return visit_dtype(x.dtype(), [&](auto zero) -> TensorList {
      using T = decltype(zero);
      const T* data = x.data_ptr<T>();
      auto is_set = [&](int64_t j) { return data[j] != zero; };
      int64_t count = 0;
      for (int64_t j = 0; j < numel; ++j) count += is_set(j);
      Tensor out = empty({count, rank}, kInt64);
      int64_t* row = out.data_ptr<int64_t>();
      for (int64_t j = 0; j < numel; ++j) {
        if (!is_set(j)) continue;
        int64_t rest = j;
        for (int64_t d = rank; d-- > 0; rest /= sizes[size_t(d)]) row[d] = rest % sizes[size_t(d)];
        row += rank;
      }
      return {out};
    });
  }
  static void interpret(InterpretCall& c) {
    const Array& x = *c.inputs[0];
    std::vector<int64_t> rows;
    IntList at(x.sizes.size());
    int64_t count = 0;
    for (int64_t j = 0; j < x.numel(); ++j) {
      if (x.number(j) != 0) {
        rows.insert(rows.end(), at.begin(), at.end());
        ++count;
      }
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] < x.sizes[d]) break;
        at[d] = 0;
      }
    }
    c.outputs[0] = Array(kInt64, {count, int64_t(x.sizes.size())});
    c.outputs[0].i = rows;
  }
  SINTER_SAMPLES("bool[5] |", "i64[3, 7]<2 |", "x[2, 3, 4] |", "i64[]<2 |", "bool[0, 3] |", "bool[40] |")
};

struct Unique : Opaque {
  static constexpr auto name = "_unique2";
  using Attributes = CountAttrs;
  static constexpr NotDifferentiable grad{"which elements are equal does not change smoothly"};
  static std::vector<Type> infer(const OpCall& call) {
    auto& x = call.inputs[0];
    Dim count = count_of(call);
    return {Type{x.dtype, {count}, x.device}, Type{kInt64, x.shape, x.device}, Type{kInt64, {count}, x.device}};
  }
  // Values in order, the place of each element among them, and how often each occurs. NaNs all differ.
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs&) {
    Tensor x = inputs[0].contiguous();
    Tensor flat = make_view(x, {x.impl().numel}, {1}, x.impl().offset);
    const Op& sort_op = *find_op("sort");
    static const Attrs ascending = sort_op.parse({});
    auto sorted = sort_op.run_cpu(std::span(&flat, 1), ascending);
    int64_t numel = x.impl().numel;
    const int64_t* from = sorted[1].data_ptr<int64_t>();
    Tensor inverse = empty(x.sizes(), kInt64);
    int64_t* place = inverse.data_ptr<int64_t>();
    return visit_dtype(x.dtype(), [&](auto zero) -> TensorList {
      using T = decltype(zero);
      const T* data = sorted[0].data_ptr<T>();
      std::vector<int64_t> firsts;
      for (int64_t j = 0; j < numel; ++j) {
        if (j == 0 || data[j] != data[j - 1]) firsts.push_back(j);
        place[from[j]] = int64_t(firsts.size()) - 1;
      }
      int64_t count = int64_t(firsts.size());
      Tensor values = empty({count}, x.dtype()), counts = empty({count}, kInt64);
      for (int64_t j = 0; j < count; ++j) {
        values.data_ptr<T>()[j] = data[firsts[size_t(j)]];
        counts.data_ptr<int64_t>()[j] = (j + 1 < count ? firsts[size_t(j) + 1] : numel) - firsts[size_t(j)];
      }
      return {values, inverse, counts};
    });
  }
  // By insertion into a growing list.
  static void interpret(InterpretCall& c) {
    const Array& x = *c.inputs[0];
    std::vector<std::vector<int64_t>> groups;  // positions of equal elements, groups in order
    auto before = [&](int64_t a, int64_t b) {
      if (!x.floating()) return x.i[size_t(a)] < x.i[size_t(b)];
      return x.f[size_t(a)] < x.f[size_t(b)] || (std::isnan(x.f[size_t(b)]) && !std::isnan(x.f[size_t(a)]));
    };
    auto same = [&](int64_t a, int64_t b) {
      return x.floating() ? x.f[size_t(a)] == x.f[size_t(b)] : x.i[size_t(a)] == x.i[size_t(b)];
    };
    for (int64_t j = 0; j < x.numel(); ++j) {
      size_t g = 0;
      while (g < groups.size() && !same(groups[g][0], j) && !before(j, groups[g][0])) ++g;
      if (g < groups.size() && same(groups[g][0], j))
        groups[g].push_back(j);
      else
        groups.insert(groups.begin() + int64_t(g), {j});
    }
    Array values(x.dtype, {int64_t(groups.size())}), counts(kInt64, {int64_t(groups.size())}), inverse(kInt64, x.sizes);
    for (size_t g = 0; g < groups.size(); ++g) {
      if (x.floating())
        values.f[g] = x.f[size_t(groups[g][0])];
      else
        values.i[g] = x.i[size_t(groups[g][0])];
      counts.i[g] = int64_t(groups[g].size());
      for (int64_t j : groups[g]) inverse.i[size_t(j)] = int64_t(g);
    }
    c.outputs = {values, inverse, counts};
  }
  SINTER_SAMPLES("i64[20]<5 |", "i64[3, 4]<3 |", "x[6] |", "bool[7] |", "i64[0]<3 |", "i32[]<4 |")
};

struct SearchSorted : Opaque {
  static constexpr auto name = "searchsorted";
  static constexpr int inputs = 2;
  using Attributes = SearchAttrs;
  static constexpr NotDifferentiable grad{"its result are positions"};
  static std::vector<Type> infer(const OpCall& call) {
    auto &sorted = call.inputs[0], &values = call.inputs[1];
    check(sorted.rank() > 0, "searchsorted: the sorted sequence must have a dimension");
    bool fits = sorted.rank() == 1 || sorted.rank() == values.rank();
    for (size_t d = 0; fits && sorted.rank() > 1 && d + 1 < sorted.shape.size(); ++d)
      fits = sorted.shape[d] == values.shape[d];
    check(fits, "searchsorted: {} and the values {} must agree in all dimensions but the last", sorted.shape,
          values.shape);
    check(sorted.dtype == values.dtype, "searchsorted: dtypes {} and {} differ", sorted.dtype, values.dtype);
    return {Type{kInt64, values.shape, values.device}};
  }
  static constexpr bool reads_host_memory = true;
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    bool right = attrs.as<SearchAttrs>().right;
    Tensor sorted = inputs[0].contiguous(), values = inputs[1].contiguous(), out = empty(values.sizes(), kInt64);
    int64_t length = sorted.impl().sizes.back(), numel = values.impl().numel;
    int64_t row = sorted.dim() == 1 ? std::max<int64_t>(numel, 1) : values.impl().sizes.back();
    visit_dtype(values.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T *from = sorted.data_ptr<T>(), *value = values.data_ptr<T>();
      int64_t* place = out.data_ptr<int64_t>();
      auto less = [](const T& a, const T& b) { return a < b || (b != b && a == a); };
      parallel_for(0, numel, 1024, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) {
          const T* first = from + j / row * length;
          place[j] = (right ? std::upper_bound(first, first + length, value[j], less)
                            : std::lower_bound(first, first + length, value[j], less)) -
                     first;
        }
      });
    });
    return {out};
  }
  // Halves the range as the others do: a sequence that is not sorted has positions too, and they are the same.
  static void interpret(InterpretCall& c) {
    bool right = c.call.as<SearchAttrs>().right;
    const Array &sorted = *c.inputs[0], &values = *c.inputs[1];
    int64_t length = sorted.sizes.back(),
            row = sorted.sizes.size() == 1 ? std::max<int64_t>(values.numel(), 1) : values.sizes.back();
    auto less = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
    for (int64_t j = 0; j < values.numel(); ++j) {
      double v = values.number(j);
      int64_t begin = 0, end = length;
      while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        double a = sorted.number(j / row * length + middle);
        if (right ? !less(v, a) : less(a, v))
          begin = middle + 1;
        else
          end = middle;
      }
      c.outputs[0].i[size_t(j)] = begin;
    }
  }
  SINTER_SAMPLES("i64[1]<9, i64[20]<9 |", "x[1], x[3, 4] | right=true", "x[2, 1], x[2, 5] |", "x[0], x[3] |",
                 "x[1], x[] |")
};

}  // namespace

Tensor nonzero(const TensorArg& x) { return call<NonZero>({x}, fresh_count()); }
Tensor nonzero_static(const TensorArg& given, int64_t size, int64_t fill_value) {
  UserPosition here(given.where());
  check(size >= 0, "nonzero_static: {} is not a number of rows", size);
  Tensor found = ne(given, 0).flatten(), number = cumsum(found, 0);
  // Each goes to the row of its number; the others, and those for which there is none, to a row more.
  Tensor row = where(found & (number <= size), number - 1, size);
  Tensor rest = arange_of_size(found.size(0), TensorOptions(kInt64).device(found.device()));
  TensorList columns;
  for (int64_t d = given.dim() - 1; d >= 0; --d) {
    const Dim length = max(given.size(d), 1);  // without elements there is nothing to divide
    Tensor all = full({size + 1}, fill_value, rest.options());
    columns.push_back(index_copy(all, 0, row, remainder(rest, length)).slice(0, 0, size));
    rest = floor_divide(rest, length);
  }
  if (columns.empty()) return empty({size, 0}, rest.options());
  std::reverse(columns.begin(), columns.end());
  return stack(columns, 1);
}
TensorList nonzero_numpy(const TensorArg& x) {
  UserPosition here(x.where());
  return unbind(nonzero(x.dim() == 0 ? TensorArg(unsqueeze(x, 0), x.where()) : x), 1);
}

std::tuple<Tensor, Tensor, Tensor> unique(const TensorArg& x, bool, bool return_inverse, bool return_counts) {
  auto out = call_many<Unique>({x}, fresh_count());
  return {out[0], return_inverse ? out[1] : Tensor(), return_counts ? out[2] : Tensor()};
}
std::tuple<Tensor, Tensor> _unique(const TensorArg& x, bool sorted, bool return_inverse) {
  auto [values, inverse, counts] = unique(x, sorted, return_inverse);
  return {values, inverse};
}

Tensor searchsorted(const TensorArg& sorted, const TensorArg& values, bool out_int32, bool right,
                    std::optional<std::string_view> side, const Tensor& sorter) {
  UserPosition here(sorted.where());
  check(!side || *side == "left" || *side == "right", "searchsorted: side '{}' is neither 'left' nor 'right'",
        side.value_or(""));
  check(!side || !right || *side == "right", "searchsorted: right and side 'left' contradict each other");
  Tensor sequence = sorter.defined() ? gather(sorted, -1, sorter) : sorted.tensor();
  Tensor wanted = values.is_scalar() ? full({}, values, sequence.options()) : values.tensor();
  DType dtype = promote_types(sequence.dtype(), wanted.dtype());
  Tensor at = call<SearchSorted>({sequence.to(dtype), wanted.to(dtype)}, SearchAttrs{right || side == "right"});
  return out_int32 ? at.to(kInt32) : at;
}
Tensor bucketize(const TensorArg& values, const TensorArg& boundaries, bool out_int32, bool right) {
  UserPosition here(values.where());
  check(boundaries.dim() == 1, "bucketize: the boundaries must be a vector, not of shape {}", boundaries.sizes());
  return searchsorted(boundaries, values, out_int32, right);
}
Tensor bincount(const TensorArg& x, int64_t minlength) { return bincount(x, Tensor(), minlength); }
Tensor bincount(const TensorArg& x, const Tensor& weights, int64_t minlength) {
  UserPosition here(x.where());
  check(x.dim() == 1 && is_integral(x.dtype()), "bincount: expects a vector of integers, not {} {}", x.dtype(),
        x.sizes());
  check(minlength >= 0, "bincount: the least length {} is negative", minlength);
  int64_t length = minlength;
  if (x.tensor().numel() != 0) {
    check(x.tensor().amin().item<int64_t>(x.where()) >= 0, "bincount: an element is negative");
    length = std::max(length, x.tensor().amax().item<int64_t>(x.where()) + 1);
  }
  if (weights.defined()) {
    check(weights.dim() == 1 && weights.size(0) == x.size(0), "bincount: weights of shape {} for {}", weights.sizes(),
          x.sizes());
    Tensor given = weights.detach();
    if (given.dtype() != kFloat32) given = given.to(kFloat64);
    return index_add(zeros({length}, given.options()), 0, x, given);
  }
  Tensor ones = expand(full({}, 1, TensorOptions(kInt64).device(x.tensor().device())), x.sizes());
  return index_add(zeros({length}, TensorOptions(kInt64).device(x.tensor().device())), 0, x, ones);
}

OpFamily search_ops() {
  static constexpr const Op* kOps[] = {&op_of<NonZero>, &op_of<Unique>, &op_of<SearchSorted>};
  return kOps;
}

}  // namespace sinter
