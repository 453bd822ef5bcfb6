#include "sinter/ops/autocast.h"

#include <unordered_map>

#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// A leaf in the lower type, as it was at that version.
struct LowWeight {
  Tensor leaf, low;
  uint64_t version;
};
using LowWeights = std::unordered_map<const TensorImpl*, LowWeight>;

LowWeights& low_weights() {
  thread_local LowWeights all;
  return all;
}

bool is_converted(const Tensor& x) { return x.defined() && is_floating(x.dtype()) && x.dtype() != kFloat64; }

// Within a capture equal conversions are one in any case.
Tensor low_weight(const Tensor& leaf, DType dtype) {
  auto& impl = leaf.impl();
  if (Tracer::current() || !impl.requires_grad || !impl.buffer) return leaf.to(dtype);
  uint64_t version = impl.buffer->version.load(std::memory_order_relaxed);
  auto found = low_weights().find(&impl);
  if (found != low_weights().end() && found->second.version == version && found->second.low.dtype() == dtype)
    return found->second.low;
  Tensor low = leaf.to(dtype);
  // One without a history would cut off the gradients of later uses.
  if (low.requires_grad()) low_weights()[&impl] = {leaf, low, version};
  return low;
}

Tensor wide(const Tensor& x, bool on_cpu) {
  if (!autocast::is_on() || !is_converted(x) || x.dtype() == kFloat32) return x;
  if (!autocast::dtype_on(x.device().type()) || (x.device().is_cpu() && !on_cpu)) return x;
  return x.to(kFloat32);
}

TensorArg wide(const TensorArg& x, bool on_cpu) {
  return x.is_scalar() || !autocast::is_on() ? x : TensorArg(wide(x.tensor(), on_cpu), x.where());
}

}  // namespace

Tensor low(const Tensor& x) {
  if (!autocast::is_on() || !is_converted(x)) return x;
  auto dtype = autocast::dtype_on(x.device().type());
  return !dtype || x.dtype() == *dtype ? x : low_weight(x, *dtype);
}
TensorArg low(const TensorArg& x) {
  return x.is_scalar() || !autocast::is_on() ? x : TensorArg(low(x.tensor()), x.where());
}

Tensor in_f32_on_gpu(const Tensor& x) { return wide(x, false); }
TensorArg in_f32_on_gpu(const TensorArg& x) { return wide(x, false); }
TensorArg in_f32(const TensorArg& x) { return wide(x, true); }

void AutocastOperands::convert(const Op& op) {
  for (auto& input : inputs_)
    converted_.push_back(op.autocast == Autocast::kLow ? low(input) : wide(input, op.autocast == Autocast::kWide));
  inputs_ = converted_;
  pause_.emplace();
}

void forget_low_weights() { low_weights().clear(); }

}  // namespace sinter
