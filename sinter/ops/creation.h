#pragma once
// Tensors made from nothing but numbers, fillings of tensors that exist, and random tensors. Where no options are given the
// dtype follows the numbers: integers make i64, bools bool, the rest f32 (see set_default_dtype).
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// Every element `value`.
Tensor full(const Shape& size, const TensorArg& value, const std::optional<TensorOptions>& options = {});
Tensor zeros(const Shape& size, const TensorOptions& options = {}, Where where = Where::current());
Tensor ones(const Shape& size, const TensorOptions& options = {}, Where where = Where::current());
// The same with the shape of another tensor, and its dtype and device unless the options name others. It lies in memory
// as clone(x) would, in x's order, or in the order that is named.
Tensor full_like(const TensorArg& x, const TensorArg& value, const std::optional<TensorOptions>& options = {},
                 MemoryFormat format = MemoryFormat::kPreserve);  // no method
Tensor zeros_like(const TensorArg& x, const std::optional<TensorOptions>& options = {},
                  MemoryFormat format = MemoryFormat::kPreserve);  // no method
Tensor ones_like(const TensorArg& x, const std::optional<TensorOptions>& options = {},
                 MemoryFormat format = MemoryFormat::kPreserve);  // no method
Tensor empty_like(const TensorArg& x, const std::optional<TensorOptions>& options = {},
                  MemoryFormat format = MemoryFormat::kPreserve);  // no method

// start, start + step, … up to but without `end`.
Tensor arange(const Scalar& end, const std::optional<TensorOptions>& options = {}, Where where = Where::current());
Tensor arange(const Scalar& start, const Scalar& end, const std::optional<TensorOptions>& options = {},
              Where where = Where::current());
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const std::optional<TensorOptions>& options = {}, Where where = Where::current());
// 0, 1, … of a size that may be symbolic: `count` elements.
Tensor arange_of_size(const Dim& count, const TensorOptions& options = kInt64, Where where = Where::current());
template <std::same_as<Dim> D>
Tensor arange(const D& end, const TensorOptions& options = kInt64, Where where = Where::current()) {
  return arange_of_size(end, options, where);
}
// The same with `end`, where a step reaches it, and always f32 unless the options say otherwise.
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step = 1, const TensorOptions& options = {},
             Where where = Where::current());
Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options, Where where = Where::current());
// `steps` evenly spaced values from start to end, both included.
Tensor linspace(const Scalar& start, const Scalar& end, Dim steps, const TensorOptions& options = {},
                Where where = Where::current());
// base to the powers of linspace(start, end, steps).
Tensor logspace(const Scalar& start, const Scalar& end, Dim steps, double base = 10, const TensorOptions& options = {},
                Where where = Where::current());
// Ones on the diagonal.
Tensor eye(Dim rows, const TensorOptions& options = {}, Where where = Where::current());
Tensor eye(Dim rows, Dim columns, const TensorOptions& options = {}, Where where = Where::current());

// The lower triangle of the last two dimensions, up to and with a diagonal; zero elsewhere.
Tensor tril(const TensorArg& x, int64_t diagonal = 0);  // in place too
// The upper triangle.
Tensor triu(const TensorArg& x, int64_t diagonal = 0);  // in place too
// Rows and columns, as two rows, of the elements that tril (or triu) of a matrix keeps.
Tensor tril_indices(Dim rows, Dim columns, int64_t offset = 0, const TensorOptions& options = kInt64,
                    Where where = Where::current());
Tensor triu_indices(Dim rows, Dim columns, int64_t offset = 0, const TensorOptions& options = kInt64,
                    Where where = Where::current());
// 1 at the class of each element, along a new last dimension; as many classes as needed when not told.
Tensor one_hot(const TensorArg& x, int64_t num_classes = -1);  // no method
// Coordinate grids of 1-d tensors; indexing is "ij" or "xy".
TensorList meshgrid(const TensorList& tensors, std::string_view indexing = "ij", Where where = Where::current());

// A tensor like x with every element `value`.
Tensor fill(const TensorArg& x, const TensorArg& value);
// `source` broadcast to the shape of x and converted to its dtype.
Tensor copy(const TensorArg& x, const TensorArg& source);

// --- random tensors. Every draw is a function of (seed, offset, element), so that eager and compiled code, on any device and
// number of threads, give the same numbers

// A stream of draws. Each draw of a tensor takes one offset. Safe to share between threads.
class Generator {
 public:
  explicit Generator(uint64_t seed = 67280421310721);
  ~Generator();

  // Starts the stream again from this seed.
  void manual_seed(uint64_t seed);
  // Starts it from a seed of the system's, and tells it.
  uint64_t seed();
  uint64_t initial_seed() const;

  struct Draw {
    int64_t seed, offset;
  };
  // Takes the next offset, or several: the first of them is told.
  Draw next(int64_t count = 1);
  // Where the stream stands, and to go on from there.
  Draw position() const;
  void set_position(const Draw& position);
  // The same as a tensor of 16 bytes.
  Tensor get_state() const;
  void set_state(const Tensor& state);

 private:
  Draw where_it_is() const;
  struct State;
  const std::unique_ptr<State> state_;
};

// The stream used by every function below that is not given one. A draw from one that is given is made by the host, also in
// a compiled function, which then is called every time.
Generator& default_generator();
// Starts the default stream again.
void manual_seed(uint64_t seed);

// Uniform in [0, 1).
Tensor rand(const Shape& size, const TensorOptions& options = {}, Where where = Where::current());
// Standard normal.
Tensor randn(const Shape& size, const TensorOptions& options = {}, Where where = Where::current());
// Integers in [low, high).
Tensor randint(int64_t high, const Shape& size, const TensorOptions& options = kInt64, Where where = Where::current());
Tensor randint(int64_t low, int64_t high, const Shape& size, const TensorOptions& options = kInt64,
               Where where = Where::current());
// The same with the shape of another tensor, and its dtype and device unless the options name others; in its order in
// memory, or the one that is named.
Tensor rand_like(const TensorArg& x, const TensorOptions& options = {},
                 MemoryFormat format = MemoryFormat::kPreserve);  // no method
Tensor randn_like(const TensorArg& x, const TensorOptions& options = {},
                  MemoryFormat format = MemoryFormat::kPreserve);  // no method
Tensor randint_like(const TensorArg& x, int64_t high, const TensorOptions& options = {},
                    MemoryFormat format = MemoryFormat::kPreserve);  // no method
Tensor randint_like(const TensorArg& x, int64_t low, int64_t high, const TensorOptions& options = {},
                    MemoryFormat format = MemoryFormat::kPreserve);  // no method
// 0, …, n - 1 in random order.
Tensor randperm(Dim n, const TensorOptions& options = kInt64, Where where = Where::current());
// 1 with the probability each element states, else 0; or everywhere with the same probability.
Tensor bernoulli(const TensorArg& p);
Tensor bernoulli(const TensorArg& x, double p);
// Indices drawn from rows of weights.
Tensor multinomial(const TensorArg& weights, int64_t num_samples, bool replacement = false);
// How often what happens with this rate happens, of the rate's dtype.
Tensor poisson(const TensorArg& rate);
// How many of `count` trials succeed, each with the probability `prob`; of their dtype, and broadcast.
Tensor binomial(const TensorArg& count, const TensorArg& prob);
// Draws from the gamma distribution of shape alpha and rate 1, with the gradient of the quantile that each of them is.
Tensor _standard_gamma(const TensorArg& alpha);
// That gradient: how a draw (or any quantile) of this distribution moves with its shape.
Tensor _standard_gamma_grad(const TensorArg& alpha, const TensorArg& value);  // no method
// Normal draws; mean and standard deviation are numbers or tensors, which broadcast.
Tensor normal(const Tensor& mean, double std = 1, Where where = Where::current());
Tensor normal(double mean, const Tensor& std, Where where = Where::current());
Tensor normal(const Tensor& mean, const Tensor& std, Where where = Where::current());
Tensor normal(double mean, double std, const Shape& size, const TensorOptions& options = {},
              Where where = Where::current());

// The same from a stream of one's own.
Tensor rand(const Shape& size, Generator& generator, const TensorOptions& options = {}, Where where = Where::current());
Tensor randn(const Shape& size, Generator& generator, const TensorOptions& options = {}, Where where = Where::current());
Tensor randint(int64_t high, const Shape& size, Generator& generator, const TensorOptions& options = kInt64,
               Where where = Where::current());
Tensor randint(int64_t low, int64_t high, const Shape& size, Generator& generator, const TensorOptions& options = kInt64,
               Where where = Where::current());
Tensor randperm(Dim n, Generator& generator, const TensorOptions& options = kInt64, Where where = Where::current());
Tensor bernoulli(const TensorArg& p, Generator& generator);
Tensor multinomial(const TensorArg& weights, int64_t num_samples, bool replacement, Generator& generator);
Tensor poisson(const TensorArg& rate, Generator& generator);
Tensor binomial(const TensorArg& count, const TensorArg& prob, Generator& generator);
Tensor _standard_gamma(const TensorArg& alpha, Generator& generator);
Tensor normal(const Tensor& mean, double std, Generator& generator, Where where = Where::current());
Tensor normal(double mean, const Tensor& std, Generator& generator, Where where = Where::current());
Tensor normal(const Tensor& mean, const Tensor& std, Generator& generator, Where where = Where::current());
Tensor normal(double mean, double std, const Shape& size, Generator& generator, const TensorOptions& options = {},
              Where where = Where::current());

// While training: zero with probability p, the rest scaled by 1 / (1 - p); also the mask of what was kept.
std::tuple<Tensor, Tensor> native_dropout(const TensorArg& x, double p, bool train);  // no method
Tensor dropout(const TensorArg& x, double p = 0.5, bool train = true);  // no method
// The same for whole channels, [n, c, …], each kept or dropped in one; 2-d without spatial dimensions.
Tensor feature_dropout(const TensorArg& x, double p = 0.5, bool train = true);  // no method
// Dropout for selu: what is dropped takes its lower limit, and all is scaled so that mean and variance stay.
Tensor alpha_dropout(const TensorArg& x, double p = 0.5, bool train = false);  // no method
Tensor feature_alpha_dropout(const TensorArg& x, double p = 0.5, bool train = false);  // no method

}  // namespace sinter
