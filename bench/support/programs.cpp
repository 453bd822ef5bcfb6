#include "bench/support/programs.h"

#include <cmath>

namespace sinter::bench::programs {

TensorList softmax(const TensorList& in) { return {sinter::softmax(in[0], -1)}; }

TensorList cross_entropy(const TensorList& in) { return {nll_loss(log_softmax(in[0], -1), in[1])}; }

TensorList layer_norm(const TensorList& in) { return {sinter::layer_norm(in[0], {in[1].size(0)}, in[1], in[2])}; }

TensorList rms_norm_residual(const TensorList& in) {
  Tensor h = in[0] + in[1];
  return {rms_norm(h, {in[2].size(0)}, in[2], 1e-6), h};
}

TensorList gelu_mlp(const TensorList& in) { return {linear(gelu(linear(in[0], in[1], in[2])), in[3], in[4])}; }

TensorList swiglu(const TensorList& in) { return {linear(silu(linear(in[0], in[1])) * linear(in[0], in[2]), in[3])}; }

TensorList rotary(const TensorList& in) {
  auto halves = in[0].chunk(2, -1);
  return {in[0] * in[1] + cat({-halves[1], halves[0]}, -1) * in[2]};
}

TensorList attention_block(const TensorList& in) {
  constexpr int64_t kHeads = 8;
  const Tensor& x = in[0];
  Dim batch = x.size(0), length = x.size(1), width = x.size(2);
  auto parts = linear(sinter::layer_norm(x, {width}, in[1], in[2]), in[3], in[4]).chunk(3, -1);
  auto split = [&](const Tensor& t) { return t.view({batch, length, kHeads, width / kHeads}).transpose(1, 2); };
  Tensor y = scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]), {}, 0, /*is_causal=*/true);
  return {x + linear(y.transpose(1, 2).reshape({batch, length, width}), in[5], in[6])};
}

TensorList bn_relu_conv(const TensorList& in) {
  Tensor h = relu(batch_norm(in[0], in[1], in[2], in[3], in[4], /*training=*/false));
  return {conv2d(h, in[5], {}, 1, 1)};
}

TensorList adamw(const TensorList& in) {
  const Tensor &p = in[0], &g = in[1], &m = in[2], &v = in[3];
  constexpr double kRate = 1e-3, kBeta1 = 0.9, kBeta2 = 0.999, kDecay = 1e-2;
  p.mul_(1 - kRate * kDecay);
  m.lerp_(g, 1 - kBeta1);
  v.mul_(kBeta2).addcmul_(g, g, 1 - kBeta2);
  Tensor denominator = (v.sqrt() / std::sqrt(1 - std::pow(kBeta2, 10))) + 1e-8;
  p.addcdiv_(m, denominator, -kRate / (1 - std::pow(kBeta1, 10)));
  return {p};
}

Program find(const std::string& name) {
  static constexpr std::pair<const char*, Program> kAll[] = {
      {"softmax", softmax},
      {"cross_entropy", cross_entropy},
      {"layer_norm", layer_norm},
      {"rms_norm_residual", rms_norm_residual},
      {"gelu_mlp", gelu_mlp},
      {"swiglu", swiglu},
      {"rotary", rotary},
      {"attention_block", attention_block},
      {"bn_relu_conv", bn_relu_conv},
      {"adamw", adamw},
  };
  for (auto& [known, program] : kAll)
    if (name == known) return program;
  return nullptr;
}

}  // namespace sinter::bench::programs
