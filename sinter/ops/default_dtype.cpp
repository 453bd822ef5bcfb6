#include "sinter/ops/default_dtype.h"

#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter {

void DefaultDTypeOperands::convert(const Op& op) {
  const PointwiseBody& body = *op.pointwise;
  if (body.typing != Typing::kFloat && body.typing != Typing::kPromote && body.typing != Typing::kCompare &&
      body.typing != Typing::kSelect)
    return;
  const size_t first = body.typing == Typing::kSelect ? 1 : 0, end = std::min(inputs_.size(), size_t(body.tensors));
  auto is_number = [&](size_t i) { return inputs_[i].is_scalar() || inputs_[i].is_lazy_number(); };
  bool floating_tensor = false, floating_number = false, tensor = false;
  for (size_t i = first; i < end; ++i) {
    (is_number(i) ? floating_number : floating_tensor) |= is_floating(inputs_[i].dtype());
    tensor |= !is_number(i);
  }
  if (floating_tensor || !(floating_number || body.typing == Typing::kFloat)) return;
  const DType dtype = get_default_dtype();
  converted_.assign(inputs_.begin(), inputs_.end());
  for (size_t i = first; i < end; ++i) {
    const TensorArg& x = inputs_[i];
    if (!is_number(i))
      converted_[i] = TensorArg(to(x, dtype), x.where());
    else if (!tensor && x.is_scalar())
      converted_[i] = TensorArg(full({}, x, TensorOptions(dtype)), x.where());
  }
  inputs_ = converted_;
}

}  // namespace sinter
