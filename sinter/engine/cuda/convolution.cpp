// Convolutions and their gradients by cuDNN or our own product, where one of them takes them.
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/convolution_step.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/cuda/tile_convolution.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/contract.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::eager {

namespace {

// In that order, and at an address that a library can be given.
bool is_usable(const Tensor& t, MemoryFormat format) {
  return has_format(t.impl().sizes, t.impl().strides, format) && !is_place(data_of(t.impl()));
}
Tensor fresh(const Shape& shape, const TensorOptions& options, MemoryFormat format) {
  Tensor memory = empty(shape, options);
  return make_view(memory, memory.impl().sizes, format_strides("convolution", memory.impl().sizes, format), 0);
}

// In channels-last order where the result is to be, or the operand is, and tensor cores are wanted; without cuDNN always.
MemoryFormat format_for(const Tensor& x, const Tensor* given) {
  const TensorImpl& leader = given ? given->impl() : x.impl();
  auto wanted = cuda_convolution_format(x.dtype(), leader.sizes.size());
  return has_format(leader.sizes, leader.strides, wanted) || !runtime::cudnn_problem().empty() ? wanted : MemoryFormat::kContiguous;
}

// Of a convolution the image and the weight, of a convolution_weight_grad the image and the gradient of what was made of it.
bool convolution(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                 TensorList& outputs) {
  Tensor left = inputs[0].tensor(), right = inputs[1].tensor();
  // The loops write row-major results.
  auto by_loops = [&] {
    if (!given || given->is_contiguous()) return false;
    copy(run_loops(op, inputs, attrs, nullptr), *given);
    outputs = {*given};
    return true;
  };
  if (left.impl().numel == 0 || right.impl().numel == 0) return by_loops();
  if (!has_cuda_convolution(op, left.dtype(), attrs)) {
    if (!runtime::cudnn_problem().empty()) log(LogTopic::kPerf, "{}: by generated loops: {}", op.name, runtime::cudnn_problem());
    return by_loops();
  }
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  const MemoryFormat format = format_for(left, given);
  Tensor out = given ? *given : fresh(result.shape, TensorOptions(result.dtype).device(result.device), format);
  if (out.impl().numel == 0) return outputs = {out}, true;
  for (auto* t : {&left, &right})
    if (!is_usable(*t, format)) {
      Tensor moved = fresh(t->sizes(), t->options(), format);
      copy(*t, moved);
      *t = moved;
    }
  Tensor to = is_usable(out, format) ? out : fresh(out.sizes(), out.options(), format);
  auto problem = cuda_convolution_problem(op, attrs, left.dtype(), left.impl().sizes, right.impl().sizes,
                                          out.impl().sizes, format);
  problem.left().data = data_of(left.impl());
  problem.right().data = data_of(right.impl());
  problem.result().data = data_of(to.impl());
  if (!prepare_convolution(result.device.index(), problem)) return by_loops();
  queue_convolution(result.device.index(), problem);
  if (to.impl().buffer.get() != out.impl().buffer.get()) copy(to, out);
  outputs = {out};
  return true;
}

const OpKernel kernels[] = {
    {.op = "convolution", .run = convolution, .name = "convolution"},
    {.op = "convolution_weight_grad", .run = convolution, .name = "convolution"},
};

}  // namespace

std::span<const OpKernel> convolution_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
