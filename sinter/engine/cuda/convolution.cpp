// Convolutions by cuDNN or our own product, where one of them takes them.
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
Tensor fresh_like(const Tensor& t, MemoryFormat format) {
  Tensor memory = empty(t.sizes(), t.options());
  return make_view(memory, t.impl().sizes, format_strides("convolution", t.impl().sizes, format), 0);
}

// In channels-last order where the result is to be, or the operand is, and tensor cores are wanted; without cuDNN always.
MemoryFormat format_for(const Tensor& x, const Tensor* given) {
  const TensorImpl& leader = given ? given->impl() : x.impl();
  auto wanted = cuda_convolution_format(x.dtype(), leader.sizes.size());
  return has_format(leader.sizes, leader.strides, wanted) || !runtime::cudnn_problem().empty() ? wanted : MemoryFormat::kContiguous;
}

bool convolution(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                               TensorList& outputs) {
  auto& a = attrs.as<ConvolutionAttrs>();
  Tensor x = inputs[0].tensor(), w = inputs[1].tensor();
  // The loops write row-major results.
  auto by_loops = [&] {
    if (!given || given->is_contiguous()) return false;
    copy(run_loops(op, inputs, attrs, nullptr), *given);
    outputs = {*given};
    return true;
  };
  if (x.impl().numel == 0 || w.impl().numel == 0) return by_loops();
  if (!has_cuda_convolution(x.dtype(), a)) {
    if (!runtime::cudnn_problem().empty()) log(LogTopic::kPerf, "convolution: by generated loops: {}", runtime::cudnn_problem());
    return by_loops();
  }
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype).device(result.device));
  if (out.impl().numel == 0) return outputs = {out}, true;
  const MemoryFormat format = format_for(x, given);
  for (auto* t : {&x, &w})
    if (!is_usable(*t, format)) {
      Tensor moved = fresh_like(*t, format);
      copy(*t, moved);
      *t = moved;
    }
  Tensor y = is_usable(out, format) ? out : fresh_like(out, format);
  auto problem = cuda_convolution_problem(a, x.dtype(), x.impl().sizes, w.impl().sizes, out.impl().sizes, format);
  problem.x.data = data_of(x.impl());
  problem.w.data = data_of(w.impl());
  problem.y.data = data_of(y.impl());
  if (!CudaRecording::current() && !prepare_convolution(result.device.index, problem)) return by_loops();
  queue_convolution(result.device.index, problem);
  if (y.impl().buffer.get() != out.impl().buffer.get()) copy(y, out);
  outputs = {out};
  return true;
}

const OpKernel kernels[] = {
    {.op = "convolution", .run = convolution, .name = "convolution"},
};

}  // namespace

std::span<const OpKernel> convolution_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
