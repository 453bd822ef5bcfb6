// Windows: computed in f64, and rounded once.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/pointwise.h"

namespace sinter {

namespace {

// shape(steps, N) for the steps 0, 1, … of a window whose N-th step is that at which it ends, or would end.
template <class F>
Tensor window(const char* op, int64_t length, bool periodic, const TensorOptions& options, F&& shape) {
  check(length >= 0, "{}: a window cannot have {} elements", op, length);
  check(is_floating(options.dtype_), "{}: windows are of floating numbers, not of {}", op, options.dtype_);
  if (length <= 1) return ones({length}, options);
  Tensor steps = arange_of_size(length, TensorOptions(kInt64).device(options.device_)).to(kFloat64);
  Tensor out = shape(steps, double(periodic ? length : length - 1)).to(options.dtype_);
  if (options.requires_grad_) out.requires_grad_();
  return out;
}

// The modified Bessel function of the first kind and of order 0, by its series, whose terms are positive.
double bessel_i0(double x) {
  double sum = 1, term = 1;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

}  // namespace

Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, const TensorOptions& options,
                      Where where) {
  UserPosition here(where);
  return window("hamming_window", window_length, periodic, options,
                [&](const Tensor& k, double n) { return alpha - beta * cos(k * (2 * std::numbers::pi / n)); });
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, const TensorOptions& options, Where where) {
  return hamming_window(window_length, periodic, alpha, 0.46, options, where);
}
Tensor hamming_window(int64_t window_length, bool periodic, const TensorOptions& options, Where where) {
  return hamming_window(window_length, periodic, 0.54, 0.46, options, where);
}
Tensor hamming_window(int64_t window_length, const TensorOptions& options, Where where) {
  return hamming_window(window_length, true, options, where);
}

Tensor hann_window(int64_t window_length, bool periodic, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return window("hann_window", window_length, periodic, options,
                [](const Tensor& k, double n) { return square(sin(k * (std::numbers::pi / n))); });
}
Tensor hann_window(int64_t window_length, const TensorOptions& options, Where where) {
  return hann_window(window_length, true, options, where);
}

Tensor blackman_window(int64_t window_length, bool periodic, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return window("blackman_window", window_length, periodic, options, [](const Tensor& k, double n) {
    const Tensor angle = k * (2 * std::numbers::pi / n);
    return 0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle);
  });
}
Tensor blackman_window(int64_t window_length, const TensorOptions& options, Where where) {
  return blackman_window(window_length, true, options, where);
}

Tensor bartlett_window(int64_t window_length, bool periodic, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return window("bartlett_window", window_length, periodic, options,
                [](const Tensor& k, double n) { return 1 - abs(k * (2 / n) - 1); });
}
Tensor bartlett_window(int64_t window_length, const TensorOptions& options, Where where) {
  return bartlett_window(window_length, true, options, where);
}

Tensor kaiser_window(int64_t window_length, bool periodic, double beta, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return window("kaiser_window", window_length, periodic, options, [&](const Tensor& k, double n) {
    std::vector<double> values;
    for (int64_t i = 0; i < window_length; ++i) {
      const double place = 2 * double(i) / n - 1;
      values.push_back(bessel_i0(beta * std::sqrt(std::max(0.0, 1 - place * place))) / bessel_i0(beta));
    }
    return from_data(values, {window_length}).to(k.device());
  });
}
Tensor kaiser_window(int64_t window_length, bool periodic, const TensorOptions& options, Where where) {
  return kaiser_window(window_length, periodic, 12, options, where);
}
Tensor kaiser_window(int64_t window_length, const TensorOptions& options, Where where) {
  return kaiser_window(window_length, true, 12, options, where);
}

}  // namespace sinter
