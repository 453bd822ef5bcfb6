#include "sinter/nn/init.h"

#include <cmath>
#include <numbers>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"

namespace sinter::nn::init {

double calculate_gain(Nonlinearity nonlinearity, double param) {
  switch (nonlinearity) {
    case Nonlinearity::kLinear:
    case Nonlinearity::kSigmoid:
      return 1;
    case Nonlinearity::kTanh:
      return 5.0 / 3;
    case Nonlinearity::kReLU:
      return std::sqrt(2.0);
    case Nonlinearity::kLeakyReLU:
      return std::sqrt(2 / (1 + param * param));
    case Nonlinearity::kSELU:
      return 0.75;
  }
  throw_error("calculate_gain: an unknown nonlinearity");
}

std::pair<int64_t, int64_t> calculate_fan_in_and_fan_out(const Tensor& weight) {
  check(weight.dim() >= 2, "init: fan in and fan out need a weight of at least 2 dimensions, this one is {}",
        weight.sizes());
  IntList sizes = weight.sizes().numbers();
  int64_t window = 1;
  for (size_t i = 2; i < sizes.size(); ++i) window *= sizes[i];
  return {sizes[1] * window, sizes[0] * window};
}

const Tensor& uniform_(const Tensor& tensor, double low, double high, Where where) {
  UserPosition here(where, "init::uniform_");
  NoGradGuard no_grad;
  return tensor.uniform_(low, high);
}

const Tensor& normal_(const Tensor& tensor, double mean, double std, Where where) {
  UserPosition here(where, "init::normal_");
  NoGradGuard no_grad;
  return tensor.normal_(mean, std);
}

const Tensor& constant_(const Tensor& tensor, const Scalar& value, Where where) {
  UserPosition here(where, "init::constant_");
  NoGradGuard no_grad;
  return tensor.fill_(value);
}

const Tensor& zeros_(const Tensor& tensor, Where where) {
  UserPosition here(where, "init::zeros_");
  return constant_(tensor, 0);
}
const Tensor& ones_(const Tensor& tensor, Where where) {
  UserPosition here(where, "init::ones_");
  return constant_(tensor, 1);
}

const Tensor& eye_(const Tensor& tensor, Where where) {
  UserPosition here(where, "init::eye_");
  check(tensor.dim() == 2, "init::eye_: expected a matrix, got {}", tensor.sizes());
  NoGradGuard no_grad;
  return tensor.copy_(eye(tensor.size(0), tensor.size(1), tensor.options()));
}

const Tensor& dirac_(const Tensor& tensor, Where where) {
  UserPosition here(where, "init::dirac_");
  check(tensor.dim() >= 3 && tensor.dim() <= 5,
        "init::dirac_: expected the weight of a convolution, of 3 to 5 dimensions, got {}", tensor.sizes());
  zeros_(tensor);
  NoGradGuard no_grad;
  Tensor middle = tensor;
  while (middle.dim() > 2) middle = middle.select(2, middle.size(2) / 2);
  middle.fill_diagonal_(1);
  return tensor;
}

const Tensor& sparse_(const Tensor& tensor, double sparsity, double std, Where where) {
  UserPosition here(where, "init::sparse_");
  check(tensor.dim() == 2, "init::sparse_: expected a matrix, got {}", tensor.sizes());
  check(sparsity >= 0 && sparsity <= 1, "init::sparse_: a share of {} cannot be zero", sparsity);
  normal_(tensor, 0, std);
  NoGradGuard no_grad;
  int64_t rows = tensor.size(0), zeros = int64_t(std::ceil(sparsity * double(rows)));
  // The first of each column in random order.
  Tensor order = argsort(rand(tensor.sizes(), tensor.options().dtype(kFloat64)), 0);
  return tensor.masked_fill_(argsort(order, 0) < zeros, 0);
}

static double xavier_std(const Tensor& tensor, double gain) {
  auto [fan_in, fan_out] = calculate_fan_in_and_fan_out(tensor);
  return gain * std::sqrt(2.0 / double(fan_in + fan_out));
}

// A uniform distribution over (-b, b) has the deviation b / sqrt(3).
const Tensor& xavier_uniform_(const Tensor& tensor, double gain, Where where) {
  UserPosition here(where, "init::xavier_uniform_");
  double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(tensor, -bound, bound);
}

const Tensor& xavier_normal_(const Tensor& tensor, double gain, Where where) {
  UserPosition here(where, "init::xavier_normal_");
  return normal_(tensor, 0, xavier_std(tensor, gain));
}

static double kaiming_std(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity) {
  auto [fan_in, fan_out] = calculate_fan_in_and_fan_out(tensor);
  int64_t fan = mode == FanMode::kFanIn ? fan_in : fan_out;
  return fan == 0 ? 0 : calculate_gain(nonlinearity, a) / std::sqrt(double(fan));
}

const Tensor& kaiming_uniform_(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity, Where where) {
  UserPosition here(where, "init::kaiming_uniform_");
  double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(tensor, -bound, bound);
}

const Tensor& kaiming_normal_(const Tensor& tensor, double a, FanMode mode, Nonlinearity nonlinearity, Where where) {
  UserPosition here(where, "init::kaiming_normal_");
  return normal_(tensor, 0, kaiming_std(tensor, a, mode, nonlinearity));
}

// The inverse of erf on (-1, 1): Winitzki's approximation, then Newton's steps to double precision.
static double erf_inverse(double x) {
  constexpr double a = 0.147;
  double log_term = std::log1p(-x * x), middle = 2 / (std::numbers::pi * a) + log_term / 2;
  double y = std::copysign(std::sqrt(std::sqrt(middle * middle - log_term / a) - middle), x);
  for (int step = 0; step < 3; ++step) y -= (std::erf(y) - x) / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
  return y;
}

const Tensor& trunc_normal_(const Tensor& tensor, double mean, double std, double low, double high, Where where) {
  UserPosition here(where, "init::trunc_normal_");
  check(low < high && std > 0, "init::trunc_normal_: [{}, {}] with deviation {} holds nothing", low, high, std);
  NoGradGuard no_grad;
  auto erf_of = [&](double bound) { return std::erf((bound - mean) / (std * std::numbers::sqrt2)); };
  double from = erf_of(low), to = erf_of(high);
  check(from < to, "init::trunc_normal_: [{}, {}] is too far from mean {} (deviation {}) to draw from", low, high, mean,
        std);
  Tensor draws = rand(tensor.sizes(), TensorOptions(kFloat64));
  double* values = draws.data_ptr<double>();
  parallel_for(0, int64_t(draws.numel()), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double y = erf_inverse(from + (to - from) * values[i]);
      values[i] = std::clamp(mean + std * std::numbers::sqrt2 * y, low, high);
    }
  });
  return tensor.copy_(draws);
}

const Tensor& orthogonal_(const Tensor& tensor, double gain, Where where) {
  UserPosition here(where, "init::orthogonal_");
  check(tensor.dim() >= 2, "init::orthogonal_: expected at least 2 dimensions, got {}", tensor.sizes());
  NoGradGuard no_grad;
  Tensor matrix = randn({tensor.size(0), tensor.numel() / tensor.size(0)}, TensorOptions(kFloat64));
  bool is_tall = matrix.size(0) > matrix.size(1);
  if (is_tall) matrix = matrix.t().contiguous();
  int64_t rows = matrix.size(0), columns = matrix.size(1);
  double* m = matrix.data_ptr<double>();
  // Gram-Schmidt, twice over: once leaves a residue in f64 when rows are nearly parallel.
  for (int64_t i = 0; i < rows; ++i) {
    double* row = m + i * columns;
    auto dot = [&](const double* other) {
      double sum = 0;
      for (int64_t k = 0; k < columns; ++k) sum += row[k] * other[k];
      return sum;
    };
    for (int64_t j = 0; j < 2 * i; ++j) {
      const double* earlier = m + (j % i) * columns;
      double along = dot(earlier);
      for (int64_t k = 0; k < columns; ++k) row[k] -= along * earlier[k];
    }
    double length = std::sqrt(dot(row));
    for (int64_t k = 0; k < columns; ++k) row[k] *= 1 / length;
  }
  if (is_tall) matrix = matrix.t();
  tensor.copy_(matrix.reshape(tensor.sizes()));
  return tensor.mul_(gain);
}

}  // namespace sinter::nn::init
