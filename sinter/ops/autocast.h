#pragma once
// Operands under autocast, by the rules of PyTorch: what is floating, lies on the device and is no f64 is converted. Weights
// are converted once while it is on.
#include "sinter/graph/op.h"
#include "sinter/tensor/autocast.h"

namespace sinter {

// In the lower type: for functions that pass several operands on to an op that wants it.
Tensor low(const Tensor& x);
TensorArg low(const TensorArg& x);
// In f32: for formulas whose sums and exponentials the lower type does not hold; on GPUs, or everywhere.
Tensor in_f32_on_gpu(const Tensor& x);
TensorArg in_f32_on_gpu(const TensorArg& x);
TensorArg in_f32(const TensorArg& x);

// The operands as the op wants them; the given ones where autocast is off or nothing is to be done.
class AutocastOperands {
 public:
  AutocastOperands(const Op& op, std::span<const TensorArg> inputs) : inputs_(inputs) {
    if (autocast::is_on() && op.autocast != Autocast::kNone) [[unlikely]]
      convert(op);
  }
  operator std::span<const TensorArg>() const { return inputs_; }

 private:
  void convert(const Op& op);
  std::span<const TensorArg> inputs_;
  std::vector<TensorArg> converted_;
  std::optional<autocast::Pause> pause_;
};

// Forgets the weights that were converted on this thread: when it ends, and when a backward has freed their histories.
void forget_low_weights();

}  // namespace sinter
