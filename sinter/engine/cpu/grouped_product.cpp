// Products of rows that have a matrix each, by the cores of runtime/cpu/gemm: one for every run of rows of one group.
#include <vector>

#include "sinter/base/thread_pool.h"
#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"

namespace sinter::eager {

namespace {

struct Run {
  int64_t group, begin, end;
};

// Nothing where an index is out of range: the loops say so.
std::optional<std::vector<Run>> runs_of(const Tensor& group, int64_t groups) {
  const Tensor indices = group.to(kInt64);
  auto& impl = indices.impl();
  auto* data = reinterpret_cast<const int64_t*>(data_of(impl));
  std::vector<Run> out;
  for (int64_t row = 0; row < impl.sizes[0]; ++row) {
    int64_t its = data[row * impl.strides[0]];
    if (its < 0) its += groups;
    if (its < 0 || its >= groups) return std::nullopt;
    if (out.empty() || out.back().group != its)
      out.push_back({its, row, row + 1});
    else
      out.back().end = row + 1;
  }
  return out;
}

// Many small products run beside one another, few large ones with all threads each.
void for_runs(const std::vector<Run>& runs, FunctionRef<void(const Run&)> body) {
  if (int64_t(runs.size()) < num_threads()) {
    for (auto& run : runs) body(run);
    return;
  }
  parallel_for(0, int64_t(runs.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(runs[size_t(i)]);
  });
}

// A matrix of a tensor that begins at this element.
runtime::GemmOperand matrix(const TensorImpl& t, runtime::GemmType type, int64_t offset, int64_t row_stride,
                            int64_t col_stride) {
  return {data_of(t) + offset * item_size(t.dtype), row_stride, col_stride, type};
}
runtime::GemmOutput result(const TensorImpl& t, runtime::GemmType type, int64_t offset, int64_t row_stride,
                           int64_t col_stride) {
  return {data_of(t) + offset * item_size(t.dtype), row_stride, col_stride, type};
}

Tensor result_of(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given) {
  if (given) return *given;
  auto types = operand_types(inputs);
  const Type type = op.infer(OpCall{op, types, attrs})[0];
  return empty(type.shape, TensorOptions(type.dtype));
}

bool grouped_mm(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                TensorList& outputs) {
  auto type = gemm_type(inputs[0].dtype());
  auto &x = inputs[0].tensor().impl(), &w = inputs[1].tensor().impl();
  if (!type || x.numel == 0 || w.numel == 0) return false;
  auto runs = runs_of(inputs[2].tensor(), w.sizes[0]);
  if (!runs) return false;
  Tensor out = result_of(op, inputs, attrs, given);
  auto& c = out.impl();
  for_runs(*runs, [&](const Run& run) {
    runtime::gemm(run.end - run.begin, w.sizes[2], w.sizes[1],
                  matrix(x, *type, run.begin * x.strides[0], x.strides[0], x.strides[1]),
                  matrix(w, *type, run.group * w.strides[0], w.strides[1], w.strides[2]),
                  result(c, *type, run.begin * c.strides[0], c.strides[0], c.strides[1]));
  });
  outputs = {std::move(out)};
  return true;
}

bool weight_grad(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                 TensorList& outputs) {
  auto type = gemm_type(inputs[0].dtype());
  auto &x = inputs[0].tensor().impl(), &grad = inputs[1].tensor().impl();
  if (!type || x.numel == 0 || grad.numel == 0) return false;
  Tensor out = result_of(op, inputs, attrs, given);
  auto& c = out.impl();
  auto runs = runs_of(inputs[2].tensor(), c.sizes[0]);
  if (!runs) return false;
  // Sums of several runs would be rounded in between.
  std::vector<bool> met(size_t(c.sizes[0]));
  for (auto& run : *runs) {
    if (met[size_t(run.group)]) return false;
    met[size_t(run.group)] = true;
  }
  for (int64_t group = 0; group < c.sizes[0]; ++group)
    if (!met[size_t(group)]) runs->push_back({group, 0, 0});
  for_runs(*runs, [&](const Run& run) {
    runtime::gemm(c.sizes[1], c.sizes[2], run.end - run.begin,
                  matrix(x, *type, run.begin * x.strides[0], x.strides[1], x.strides[0]),
                  matrix(grad, *type, run.begin * grad.strides[0], grad.strides[0], grad.strides[1]),
                  result(c, *type, run.group * c.strides[0], c.strides[1], c.strides[2]));
  });
  outputs = {std::move(out)};
  return true;
}

const OpKernel kernels[] = {
    {.op = "grouped_mm", .run = grouped_mm, .name = "grouped gemm"},
    {.op = "grouped_mm_weight_grad", .run = weight_grad, .name = "grouped gemm"},
};

}  // namespace

std::span<const OpKernel> grouped_kernels_of_cpu() { return kernels; }

}  // namespace sinter::eager
