#pragma once
// The norm of Llama's relatives.
#include "sinter/nn/init.h"
#include "sinter/nn/module.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"

namespace sinter::models {

// Unit mean square over the last dimension, times weight, or times 1 + weight, added up in f32: Gemma's weights are too
// small for 1 + w in half precision.
struct RmsNormImpl : nn::Module {
  Tensor weight;
  double eps;
  bool unit_offset;

  RmsNormImpl(int64_t size, double eps, bool unit_offset = false) : eps(eps), unit_offset(unit_offset) {
    weight = register_parameter("weight", nn::new_parameter({size}));
    if (nn::initialises_parameters()) nn::init::constant_(weight, unit_offset ? 0 : 1);
  }
  Tensor forward(const Tensor& x) {
    if (!unit_offset) return rms_norm(x, {x.size(-1)}, weight, eps);
    return rms_norm(x.to(kFloat32), {x.size(-1)}, weight.to(kFloat32) + 1, eps).to(x.dtype());
  }
};
SINTER_MODULE(RmsNorm);

}  // namespace sinter::models
