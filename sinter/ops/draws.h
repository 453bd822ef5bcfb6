#pragma once
// Draws of ops that make their random numbers themselves, from a seed and an offset among their operands.
#include <vector>

#include "sinter/tensor/tensor.h"

namespace sinter {

// Every draw of this thread comes from this stream while alive.
class DrawFrom {
 public:
  explicit DrawFrom(Generator& generator);
  ~DrawFrom();
  DrawFrom(const DrawFrom&) = delete;

 private:
  Generator* before_;
};

// Seed and offset of the next draw of the default generator: values of the program that is traced, else numbers.
std::vector<TensorArg> next_draw(const Where& where);

// Uniform in [0, 1), f32. Four elements after one another share a counter of Philox: kernels that look at whole rows compute
// it once for all four.
Tensor rand_words(const Shape& size, Device device, const TensorArg& seed, const TensorArg& offset);

}  // namespace sinter
