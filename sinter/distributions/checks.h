#pragma once
// What parameters and values of distributions must obey, and formulas that several distributions share.
#include <cmath>
#include <numbers>

#include "sinter/base/fault.h"
#include "sinter/distributions/distribution.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::distributions {

namespace detail {

// What must be, and where it is.
struct Rule {
  const char* text;
  Tensor holds;
};

inline Rule real(const Tensor& x) { return {"numbers, not NaN", x == x}; }
inline Rule positive(const Tensor& x) { return {"positive", x > 0}; }
inline Rule nonnegative(const Tensor& x) { return {"not negative", x >= 0}; }
inline Rule share(const Tensor& x) { return {"between 0 and 1", (x >= 0) & (x <= 1)}; }
inline Rule truth(const Tensor& x) { return {"0 or 1", (x == 0) | (x == 1)}; }
inline Rule count(const Tensor& x) { return {"whole numbers that are not negative", (x >= 0) & (x == trunc(x))}; }
inline Rule simplex(const Tensor& x) {
  return {"not negative, with the sum 1", all(x >= 0, -1) & (abs(x.sum({-1}) - 1) < 1e-6)};
}
inline Rule weights(const Tensor& x) {
  return {"not negative, with a positive sum", all(x >= 0, -1) & (x.sum({-1}) > 0)};
}
inline Rule positive_vector(const Tensor& x) { return {"positive", all(x > 0, -1)}; }
inline Rule real_vector(const Tensor& x) { return {"numbers, not NaN", all(x == x, -1)}; }
inline Rule one_hot_vector(const Tensor& x) { return {"one-hot", all((x == 0) | (x == 1), -1) & (x.sum({-1}) == 1)}; }

struct Given {
  const char* name;
  const TensorArg& value;
  Rule (*rule)(const Tensor& x);
  int64_t event_dims = 0;
};

}  // namespace detail

// x, whose elements obey the rule, or an Error that says what they are.
Tensor obeying(const Tensor& x, const detail::Rule& rule, Fault fault, const char* distribution, const char* what);

// Uniform in (0, 1): both ends are a rounding away.
Tensor open_uniform(const Shape& shape, const TensorOptions& options);
// Exponential of rate 1.
Tensor exponential_noise(const Shape& shape, const TensorOptions& options);
// The sum over the last `count` dimensions.
Tensor sum_rightmost(const Tensor& x, int64_t count);

inline constexpr double kLog2 = std::numbers::ln2, kPi = std::numbers::pi, kEuler = std::numbers::egamma;
inline const double kLogPi = std::log(kPi), kHalfLogTwoPi = 0.5 * std::log(2 * kPi);

}  // namespace sinter::distributions
