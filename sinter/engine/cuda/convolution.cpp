// Convolutions by cuDNN, where it is there and has an engine for them.
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/templates.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/cudnn.h"

namespace sinter::eager {

namespace {

runtime::CudaConvTensor conv_tensor(const TensorImpl& t) {
  runtime::CudaConvTensor out;
  out.data = data_of(t);
  std::copy(t.sizes.begin(), t.sizes.end(), out.sizes.begin());
  std::copy(t.strides.begin(), t.strides.end(), out.strides.begin());
  return out;
}

bool is_taken(DType dtype) { return dtype == kFloat32 || dtype == kBFloat16 || dtype == kFloat16; }

}  // namespace

bool cuda_convolution_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                               TensorList& outputs) {
  auto& a = attrs.as<ConvolutionAttrs>();
  Tensor x = inputs[0].tensor(), w = inputs[1].tensor();
  size_t spatial = a.stride.size();
  if (a.transposed || !is_taken(x.dtype()) || x.impl().numel == 0 || w.impl().numel == 0 || spatial > 3) return false;
  if (!runtime::cudnn_problem().empty()) {
    log(LogTopic::kPerf, "convolution: by generated loops: {}", runtime::cudnn_problem());
    return false;
  }
  for (auto* t : {&x, &w})
    if (!t->is_contiguous() && !t->is_contiguous(MemoryFormat::kChannelsLast)) *t = t->contiguous();
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype).device(result.device));
  if (out.impl().numel == 0) return outputs = {out}, true;
  runtime::CudaConvolution problem{.dtype = x.dtype(), .spatial = int(spatial), .x = conv_tensor(x.impl()),
                                   .w = conv_tensor(w.impl()), .y = conv_tensor(out.impl())};
  for (size_t d = 0; d < spatial; ++d) {
    problem.stride[d] = a.stride[d];
    problem.padding[d] = a.padding[d];
    problem.dilation[d] = a.dilation[d];
  }
  for (auto* t : {&problem.x, &problem.w, &problem.y}) refuse_place("cuDNN", t->data);
  if (!CudaRecording::current() && !runtime::prepare_cuda_convolution(result.device.index, problem)) return false;
  runtime::cuda_convolution(result.device.index, problem);
  outputs = {out};
  return true;
}

}  // namespace sinter::eager
