// The ops that an ahead-of-time kernel takes whole.
#include "sinter/base/error.h"
#include "sinter/engine/cuda/templates.h"
#include "sinter/engine/eager/attention.h"
#include "sinter/engine/eager/convolution.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/gemm_operand.h"

namespace sinter::eager {

std::optional<runtime::GemmType> gemm_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return runtime::GemmType::f32;
    case DType::kFloat64: return runtime::GemmType::f64;
    case DType::kBFloat16: return runtime::GemmType::bf16;
    case DType::kFloat16: return runtime::GemmType::f16;
    default: return std::nullopt;
  }
}

namespace {

// The last two dimensions are the matrix; one before them, if any, is the batch.
runtime::GemmOperand operand(const TensorImpl& t, runtime::GemmType type) {
  size_t rank = t.sizes.size();
  return {data_of(t), t.strides[rank - 2], t.strides[rank - 1], type, rank == 3 ? t.strides[0] : 0};
}

// mm and bmm. Integers keep to the loops.
bool matrix_product(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                    TensorList& outputs) {
  auto type = gemm_type(inputs[0].dtype());
  if (!type) return false;
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype));
  auto &a = inputs[0].tensor().impl(), &b = inputs[1].tensor().impl(), &c = out.impl();
  size_t rank = a.sizes.size();
  runtime::GemmOptions options;
  options.batch = rank == 3 ? a.sizes[0] : 1;
  runtime::GemmOutput to{data_of(c), c.strides[rank - 2], c.strides[rank - 1], *type, rank == 3 ? c.strides[0] : 0};
  if (c.numel) runtime::gemm(a.sizes[rank - 2], b.sizes[rank - 1], a.sizes[rank - 1], operand(a, *type), operand(b, *type), to, options);
  outputs = {std::move(out)};
  return true;
}

struct Entry {
  const Op* op;
  Template function, on_cuda;
  const char* name;  // for people
  bool (*takes)(const OpCall& call) = nullptr;  // of composites
  IntList (*cuda_strides)(const IntList& sizes) = nullptr;  // of the result, where they are better than row-major ones
  Preparation cuda_preparation = nullptr;
};

const Entry* find_entry(const Op& op) {
  static const Entry entries[] = {
      {find_op("mm"), matrix_product, cuda_matrix_product, "gemm"},
      {find_op("bmm"), matrix_product, cuda_matrix_product, "gemm"},
      {find_op("convolution"), convolution_template, cuda_convolution_template, "convolution"},
      {find_op("convolution_weight_grad"), weight_grad_template, nullptr, "convolution"},
      {find_op("max_pool"), max_pool_template, cuda_max_pool_template, "pool"},
      {find_op("max_pool_indices"), max_pool_indices_template, nullptr, "pool"},
      {find_op("window_sum"), window_sum_template, nullptr, "pool"},
      {find_op("scaled_dot_product_attention"), attention_template, cuda_attention_template, "attention", takes_attention,
       attention_strides, prepare_cuda_attention},
      {find_op("sort"), nullptr, cuda_sort_template, "sort"},
      {find_op("topk"), nullptr, cuda_topk_template, "sort"},
      {find_op("nonzero"), nullptr, cuda_nonzero_template, "search"},
      {find_op("_unique2"), nullptr, cuda_unique_template, "search"},
      {find_op("searchsorted"), nullptr, cuda_searchsorted_template, "search"},
  };
  for (auto& entry : entries)
    if (entry.op == &op) return &entry;
  return nullptr;
}

}  // namespace

Template find_template(const Op& op, Device device) {
  auto* entry = find_entry(op);
  return !entry ? nullptr : device.is_cuda() ? entry->on_cuda : entry->function;
}

Preparation find_preparation(const Op& op) {
  auto* entry = find_entry(op);
  return entry ? entry->cuda_preparation : nullptr;
}

IntList template_strides(const Op& op, Device device, const IntList& sizes) {
  auto* entry = find_entry(op);
  return entry && entry->cuda_strides && device.is_cuda() ? entry->cuda_strides(sizes) : contiguous_strides(sizes);
}

const char* template_name(const Op& op) {
  auto* entry = find_entry(op);
  return entry ? entry->name : nullptr;
}

bool takes_whole(const OpCall& call) {
  auto* entry = find_entry(call.op);
  return entry && entry->takes && entry->takes(call);
}

}  // namespace sinter::eager
