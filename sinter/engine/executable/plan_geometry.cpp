#include "sinter/engine/executable/plan_geometry.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/known_ops.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

int64_t bytes_of(const TensorImpl& t) { return t.numel * item_size(t.dtype); }

Tensor geometry_of(DType dtype, const IntList& sizes, const IntList& strides, Device device) {
  auto impl = make_intrusive<TensorImpl>();
  impl->device = device;
  impl->dtype = dtype;
  impl->sizes = sizes;
  impl->strides = strides;
  impl->numel = checked_numel("plan", sizes);
  impl->contiguous = has_format(sizes, strides, MemoryFormat::kContiguous);
  return Tensor(std::move(impl));
}

bool same_place(const TensorImpl& a, const TensorImpl& b) {
  return a.offset == b.offset && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides;
}

bool is_injective(const TensorImpl& t) {
  IntList order;
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (t.sizes[d] > 1) order.push_back(int64_t(d));
  auto step = [&](int64_t d) { return std::abs(t.strides[size_t(d)]); };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return step(a) < step(b); });
  int64_t reach = 0;
  for (int64_t d : order) {
    if (step(d) <= reach) return false;
    reach += (t.sizes[size_t(d)] - 1) * step(d);
  }
  return true;
}

std::optional<Tensor> alias(const Op& op, const TensorArg& base, const Attrs& attrs) {
  const Op* as_strided = &known_ops().as_strided;
  const TensorImpl& impl = base.tensor().impl();
  if (&op == as_strided && !impl.contiguous) return std::nullopt;
  auto types = eager::operand_types({&base, 1});
  auto view = eager::find_view(OpCall{op, types, attrs}, impl.strides);
  if (!view) return std::nullopt;
  return make_view(base.tensor(), view->sizes, view->strides, impl.offset + view->offset);
}

}  // namespace sinter
