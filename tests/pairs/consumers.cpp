#include "tests/pairs/consumers.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "sinter/base/error.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::pairs {

Array numbers(DType dtype, const IntList& sizes, uint64_t seed, int64_t below) {
  Array out(dtype, sizes);
  std::mt19937_64 random(seed);
  for (int64_t at = 0; at < out.numel(); ++at) {
    double unit = double(random() >> 11) * 0x1p-53;
    if (below > 0)
      out.set(at, int64_t(unit * double(below)));
    else if (dtype == kBool)
      out.set(at, int64_t(unit < 0.5));
    else if (!out.floating())
      out.set(at, int64_t(std::floor(dtype == kUInt8 ? unit * 12 : unit * 13 - 6)));
    else
      out.set(at, std::round((unit * 6 - 3) * 64) / 64);  // exact in every floating dtype
  }
  return out;
}

namespace {

using Others = std::optional<std::vector<Array>>;
using Sizes = const IntList&;

bool known(Sizes sizes) {
  return std::none_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; });
}

// Reads nothing else, whatever the sizes.
Others alone(DType, Sizes, uint64_t) { return std::vector<Array>{}; }
// The same from this rank on.
auto alone_of_rank(size_t least) {
  return [least](DType, Sizes sizes, uint64_t) -> Others {
    if (sizes.size() < least) return std::nullopt;
    return std::vector<Array>{};
  };
}
// One tensor of the value's dtype, with sizes made from its own.
auto beside(size_t least_rank, std::function<IntList(IntList)> shape) {
  return [=](DType dtype, Sizes sizes, uint64_t seed) -> Others {
    if (sizes.size() < least_rank || !known(sizes)) return std::nullopt;
    return std::vector{numbers(dtype, shape(sizes), seed)};
  };
}
IntList same(IntList sizes) { return sizes; }

// A tensor of `rows` rows like the value's, and an index that sends each row of the value to one of them.
auto rows_beside(int64_t rows) {
  return [=](DType dtype, Sizes sizes, uint64_t seed) -> Others {
    if (sizes.empty() || !known(sizes)) return std::nullopt;
    IntList target = sizes;
    target[0] = rows;
    return std::vector{numbers(dtype, target, seed), numbers(kInt64, {sizes[0]}, seed + 1, rows)};
  };
}

Others row_index(DType, Sizes sizes, uint64_t seed) {
  if (sizes.empty() || !known(sizes) || sizes[0] == 0) return std::nullopt;
  return std::vector{numbers(kInt64, {7}, seed, sizes[0])};
}

// To an integer only what fits: beyond, a conversion gives what the machine gives.
Tensor cast(const Tensor& v, DType to) {
  if (!is_floating(v.dtype()) || is_floating(to) || to == kBool) return v.to(to);
  return clamp(where(v == v, v, 0), to == kUInt8 ? 0 : -100, 100).to(to);
}

std::vector<Consumer> make_consumers() {
  using T = const Tensor&;
  using L = const TensorList&;
  std::vector<Consumer> all = {
      // pointwise
      {"plus_number", alone, [](T v, L) { return v + 1; }},
      {"times_number", alone, [](T v, L) { return v * 0.75; }},
      {"plus_0d", beside(0, [](IntList) { return IntList{}; }), [](T v, L o) { return v + o[0]; }},
      {"plus_itself", alone, [](T v, L) { return v + v; }},
      {"minus_same", beside(1, same), [](T v, L o) { return o[0] - v; }},
      {"times_row", beside(1, [](IntList s) { return IntList{s.back()}; }), [](T v, L o) { return v * o[0]; }},
      {"plus_column",
       beside(2,
              [](IntList s) {
                s.back() = 1;
                return s;
              }),
       [](T v, L o) { return v + o[0]; }},
      {"widened",
       beside(0,
              [](IntList s) {
                s.insert(s.begin(), 3);
                return s;
              }),
       [](T v, L o) { return v * o[0]; }},
      {"function", alone, [](T v, L) { return tanh(v); }},
      {"chosen", beside(0, same), [](T v, L o) { return where(o[0] > 0, v, o[0]); }},
      {"chooses", beside(0, same), [](T v, L o) { return where(v > o[0], v * 2, o[0]); }},
      {"bits", beside(0, same), [](T v, L o) { return bitwise_xor(v, o[0]); }},
      {"compared", beside(0, same), [](T v, L o) { return v <= o[0]; }},
      {"turned",
       beside(2,
              [](IntList s) {
                std::swap(s.front(), s.back());
                return s;
              }),
       [](T v, L o) { return transpose(v, 0, -1) + o[0]; }},
      // reductions
      {"sum_last", alone_of_rank(1), [](T v, L) { return sum(v, {-1}); }},
      {"sum_first", alone_of_rank(1), [](T v, L) { return sum(v, {0}); }},
      {"sum_all", alone, [](T v, L) { return sum(v); }},
      {"largest_last", alone_of_rank(1), [](T v, L) { return amax(v, {-1}); }},
      {"sum_of_squares", alone_of_rank(1), [](T v, L) { return sum(v * v, {-1}); }},
      {"running_sum", alone_of_rank(1), [](T v, L) { return cumsum(v, -1); }},
      // operands of products
      {"left_operand",
       beside(1,
              [](IntList s) {
                return IntList{s.back(), 5};
              }),
       [](T v, L o) { return matmul(v, o[0]); }},
      {"right_operand",
       beside(1,
              [](IntList s) {
                return IntList{4, s[s.size() - std::min<size_t>(s.size(), 2)]};
              }),
       [](T v, L o) { return matmul(o[0], v); }},
      {"product_and_bias",
       beside(2,
              [](IntList s) {
                return IntList{s.back(), s.back()};
              }),
       [](T v, L o) { return matmul(v, o[0]) + v; }},
      // scatters and gathers
      {"added_to_rows", rows_beside(3), [](T v, L o) { return index_add(o[0], 0, o[1], v); }},
      {"scattered",
       [](DType dtype, Sizes sizes, uint64_t seed) -> Others {
         if (sizes.empty() || !known(sizes)) return std::nullopt;
         return std::vector{numbers(dtype, sizes, seed), numbers(kInt64, sizes, seed + 1, sizes.back())};
       },
       [](T v, L o) { return scatter_add(o[0], -1, o[1], v); }},
      {"placed",
       [](DType dtype, Sizes sizes, uint64_t seed) -> Others {
         if (sizes.empty() || !known(sizes)) return std::nullopt;
         IntList target = sizes;
         target[0] = 2 * sizes[0] + 1;
         Array to(kInt64, {sizes[0]});
         for (int64_t at = 0; at < sizes[0]; ++at) to.set(at, 2 * (sizes[0] - 1 - at));
         return std::vector{numbers(dtype, target, seed), to};
       },
       [](T v, L o) { return index_copy(o[0], 0, o[1], v); }},
      {"rows_taken", row_index, [](T v, L o) { return index_select(v, 0, o[0]) + 1; }},
      // copies
      {"joined", beside(1, same),
       [](T v, L o) {
         return cat({o[0], v}, -1);
       }},
      {"reversed", alone_of_rank(1), [](T v, L) { return flip(v, {-1}) * 2; }},
  };
  for (int d = 0; d < kRealDTypeCount; ++d)
    all.push_back({format("to_{}", DType(d)), alone, [d](T v, L) { return cast(v, DType(d)); }});
  return all;
}

}  // namespace

const std::vector<Consumer>& consumers() {
  static const std::vector<Consumer> all = make_consumers();
  return all;
}

}  // namespace sinter::pairs
