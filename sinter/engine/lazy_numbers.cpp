#include "sinter/engine/lazy_numbers.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"

namespace sinter {

namespace {

// Nothing where the op does not take such operands.
std::vector<DType> result_dtypes(const Op& op, std::span<const Type> types, const Attrs& attrs) {
  std::vector<DType> out;
  try {
    for (auto& type : op.infer(OpCall{op, types, attrs})) out.push_back(type.dtype);
  } catch (const Error&) {
    out.clear();
  }
  return out;
}

}  // namespace

LazyNumbers::LazyNumbers(const Op& op, std::vector<TensorArg>& operands, const Attrs& attrs) {
  auto is_lazy = [](const TensorArg& arg) { return arg.is_lazy_number(); };
  if (std::none_of(operands.begin(), operands.end(), is_lazy)) return;
  auto types = eager::operand_types(operands), plain = types;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_lazy(operands[i])) continue;
    plain[i].weak = true;
    plain[i].dtype = is_floating(types[i].dtype) ? kFloat64 : types[i].dtype == kBool ? kBool : kInt64;
  }
  auto wanted = result_dtypes(op, plain, attrs), now = result_dtypes(op, types, attrs);
  if (wanted.empty() || wanted == now) return;
  // Half types compute in f32 and round once, at the end.
  DType computing = promote_operands(plain);
  if (is_floating(computing) && item_size(computing) == 2) computing = kFloat32;
  for (auto& operand : operands)
    if (is_lazy(operand) && operand.dtype() != computing) operand = TensorArg(operand.tensor().to(computing), operand.where());
  dtypes_ = std::move(wanted);
}

void LazyNumbers::finish(TensorList& results) const {
  for (size_t i = 0; i < dtypes_.size(); ++i)
    if (results[i].dtype() != dtypes_[i]) results[i] = results[i].to(dtypes_[i]);
}

}  // namespace sinter
