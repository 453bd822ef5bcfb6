// Orderings and searches by the kernels of runtime/cuda/sort.h.
#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/search.h"
#include "sinter/runtime/cuda/sort.h"

namespace sinter::eager {

namespace {

// Row-major, at an address that a recorded launch may hold.
Tensor packed(const TensorArg& arg, const Op& op) {
  Tensor x = arg.tensor().contiguous();
  refuse_place(op.name.data(), data_of(x.impl()));
  return x;
}

Tensor fresh(const IntList& sizes, DType dtype, Device device) {
  return empty(Shape(std::span<const int64_t>(sizes)), TensorOptions(dtype).device(device));
}

TensorList ordered(const Tensor& x, int64_t dim, int64_t keep, bool descending) {
  IntList sizes = x.impl().sizes, kept = sizes;
  runtime::CudaLines lines{1, 1, 1};
  if (!sizes.empty()) {
    kept[size_t(dim)] = keep;
    lines.length = sizes[size_t(dim)];
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (int64_t(d) != dim) lines.rows *= sizes[d];
      if (int64_t(d) > dim) lines.inner *= sizes[d];
    }
  }
  Tensor values = fresh(kept, x.dtype(), x.device()), positions = fresh(kept, kInt64, x.device());
  if (values.impl().numel) {
    runtime::CudaSort sort{x.dtype(), lines, sizes.empty() ? 1 : keep, descending, data_of(x.impl()), data_of(values.impl()),
                           reinterpret_cast<int64_t*>(data_of(positions.impl()))};
    CudaScratch workspace(x.device(), size_t(runtime::cuda_sort_workspace(sort)));
    runtime::cuda_sort(x.device().index(), sort, workspace.data());
  }
  return {values, positions};
}

bool sort(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*,
                        TensorList& outputs) {
  Tensor x = packed(inputs[0], op);
  auto& a = attrs.as<SortAttrs>();
  int64_t dim = wrap_dim("sort", a.dim, x.dim());
  outputs = ordered(x, dim, x.dim() ? x.impl().sizes[size_t(dim)] : 1, a.descending);
  return true;
}

bool topk(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*,
                        TensorList& outputs) {
  auto types = operand_types(inputs);
  op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
  Tensor x = packed(inputs[0], op);
  auto& a = attrs.as<TopkAttrs>();
  outputs = ordered(x, wrap_dim("topk", a.dim, x.dim()), count_of(a, x.dim()), a.largest);
  return true;
}

bool nonzero(const Op& op, std::span<const TensorArg> inputs, const Attrs&, const Tensor*,
                           TensorList& outputs) {
  Tensor x = packed(inputs[0], op);
  auto& sizes = x.impl().sizes;
  if (x.impl().numel == 0 || sizes.empty() || sizes.size() > 16) return false;
  Device device = x.device();
  auto workspace = allocate_buffer(size_t(runtime::cuda_nonzero_workspace(x.impl().numel)), device);
  int64_t count = runtime::cuda_nonzero_count(device.index(), x.dtype(), data_of(x.impl()), x.impl().numel, workspace->data());
  Tensor out = fresh({count, int64_t(sizes.size())}, kInt64, device);
  if (count)
    runtime::cuda_nonzero(device.index(), x.dtype(), data_of(x.impl()), sizes, workspace->data(),
                          reinterpret_cast<int64_t*>(data_of(out.impl())));
  outputs = {out};
  return true;
}

bool unique(const Op& op, std::span<const TensorArg> inputs, const Attrs&, const Tensor*,
                          TensorList& outputs) {
  Tensor x = packed(inputs[0], op);
  int64_t numel = x.impl().numel;
  if (numel == 0) return false;
  Device device = x.device();
  auto workspace = allocate_buffer(size_t(runtime::cuda_unique_workspace(x.dtype(), numel)), device);
  int64_t count = runtime::cuda_unique_count(device.index(), x.dtype(), data_of(x.impl()), numel, workspace->data());
  Tensor values = fresh({count}, x.dtype(), device), inverse = fresh(x.impl().sizes, kInt64, device),
         counts = fresh({count}, kInt64, device);
  runtime::cuda_unique(device.index(), x.dtype(), numel, count, workspace->data(), data_of(values.impl()),
                       reinterpret_cast<int64_t*>(data_of(inverse.impl())), reinterpret_cast<int64_t*>(data_of(counts.impl())));
  outputs = {values, inverse, counts};
  return true;
}

bool searchsorted(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*,
                                TensorList& outputs) {
  auto types = operand_types(inputs);
  op.infer(OpCall{op, types, attrs});
  Tensor sorted = packed(inputs[0], op), values = packed(inputs[1], op);
  Tensor out = fresh(values.impl().sizes, kInt64, values.device());
  int64_t numel = values.impl().numel;
  outputs = {out};
  if (numel == 0) return true;
  runtime::cuda_searchsorted(values.device().index(),
                             {.dtype = values.dtype(),
                              .sorted = data_of(sorted.impl()),
                              .values = data_of(values.impl()),
                              .length = sorted.impl().sizes.back(),
                              .numel = numel,
                              .row = sorted.dim() == 1 ? numel : values.impl().sizes.back(),
                              .right = attrs.as<SearchAttrs>().right,
                              .places = reinterpret_cast<int64_t*>(data_of(out.impl()))});
  return true;
}

const OpKernel kernels[] = {
    {.op = "sort", .run = sort, .name = "sort"},
    {.op = "topk", .run = topk, .name = "sort"},
    {.op = "nonzero", .run = nonzero, .name = "search"},
    {.op = "_unique2", .run = unique, .name = "search"},
    {.op = "searchsorted", .run = searchsorted, .name = "search"},
};

}  // namespace

std::span<const OpKernel> sort_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
