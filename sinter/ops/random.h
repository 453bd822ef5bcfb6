#pragma once
// Random tensors. Every draw is a function of (seed, offset, element), so that eager and compiled code, on any device
// and number of threads, give the same numbers.
#include <cstdint>
#include <memory>
#include <tuple>

#include "sinter/tensor/tensor.h"

namespace sinter {

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

 private:
  Draw where_it_is() const;
  struct State;
  const std::unique_ptr<State> state_;
};

// The stream used by every function below.
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
// The same with the shape, dtype and device of another tensor.
Tensor rand_like(const TensorArg& x);
Tensor randn_like(const TensorArg& x);
Tensor randint_like(const TensorArg& x, int64_t high);
Tensor randint_like(const TensorArg& x, int64_t low, int64_t high);
// 0, …, n - 1 in random order.
Tensor randperm(Dim n, const TensorOptions& options = kInt64, Where where = Where::current());
// 1 with the probability each element states, else 0.
Tensor bernoulli(const TensorArg& p);
// Indices drawn from rows of weights.
Tensor multinomial(const TensorArg& weights, int64_t num_samples, bool replacement = false);

// While training: zero with probability p, the rest scaled by 1 / (1 - p); also the mask of what was kept.
std::tuple<Tensor, Tensor> native_dropout(const TensorArg& x, double p, bool train);
Tensor dropout(const TensorArg& x, double p = 0.5, bool train = true);

}  // namespace sinter
