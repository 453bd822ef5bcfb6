#pragma once
// The norms of Llama's relatives, and of T5.
#include "sinter/models/models.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/init.h"
#include "sinter/nn/module.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::models {

struct NormOptions {
  double eps;
  NormKind kind = NormKind::kRms;
  bool bias = false;
};

// Over the last dimension, added up in f32; weights times 1 + weight are also added there, since Gemma's are too small for
// 1 + w in half precision. A weight [heads, size] is for x [batch, heads, tokens, size].
struct DecoderNormImpl : nn::Module {
  Tensor weight, bias;
  NormOptions options;

  DecoderNormImpl(const Shape& shape, const NormOptions& options) : options(options) {
    weight = register_parameter("weight", nn::new_parameter(shape));
    if (options.bias) bias = register_parameter("bias", nn::new_parameter(shape));
    if (!nn::initialises_parameters()) return;
    nn::init::constant_(weight, options.kind == NormKind::kUnitOffsetRms ? 0 : 1);
    if (options.bias) nn::init::constant_(bias, 0);
  }
  Tensor forward(const Tensor& x) {
    if (options.kind == NormKind::kUnitOffsetRms)
      return rms_norm(x.to(kFloat32), {x.size(-1)}, weight.to(kFloat32) + 1, options.eps).to(x.dtype());
    if (weight.dim() == 1) return normalized(x, weight, bias, options);
    Tensor y = normalized(x, {}, {}, options) * weight.unsqueeze(-2);
    return bias.defined() ? y + bias.unsqueeze(-2) : y;
  }
  static Tensor normalized(const Tensor& x, const Tensor& weight, const Tensor& bias, const NormOptions& options) {
    if (options.kind == NormKind::kLayer) return layer_norm(x, {x.size(-1)}, weight, bias, options.eps);
    Tensor y = rms_norm(x, {x.size(-1)}, weight, options.eps);
    return bias.defined() ? y + bias : y;
  }
};
SINTER_MODULE(DecoderNorm);

// The same with a weight [heads, size] whose rows are modules of their own.
struct HeadNormsImpl : nn::Module {
  nn::ModuleListOf<DecoderNorm> norms;
  NormOptions options;

  HeadNormsImpl(int64_t heads, int64_t size, const NormOptions& options) : options(options) {
    register_module("norms", norms);
    for (int64_t head = 0; head < heads; ++head) norms->push_back(DecoderNorm(Shape{size}, options));
  }
  Tensor forward(const Tensor& x) {
    TensorList weights;
    for (auto& norm : *norms) weights.push_back(norm->weight);
    return DecoderNormImpl::normalized(x, {}, {}, options) * stack(weights).unsqueeze(-2);
  }
};
SINTER_MODULE(HeadNorms);

}  // namespace sinter::models
