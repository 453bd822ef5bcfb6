#include "sinter/models/parts/experts.h"

#include <cmath>

#include "sinter/models/parts/attention.h"
#include "sinter/nn/init.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::models {

ExpertWeightsImpl::ExpertWeightsImpl(const ModelConfig& c) {
  auto add = [&](const char* name, int64_t out, int64_t in) {
    Tensor weight = register_parameter(name, nn::new_parameter({c.experts, out, in}));
    double bound = 1 / std::sqrt(double(in));
    if (nn::initialises_parameters()) nn::init::uniform_(weight, -bound, bound);
    return weight;
  };
  gate_proj = add("gate_proj", c.expert_size, c.hidden_size);
  up_proj = add("up_proj", c.expert_size, c.hidden_size);
  down_proj = add("down_proj", c.hidden_size, c.expert_size);
}

ExpertsImpl::ExpertsImpl(const ModelConfig& c) : config(c) {
  gate = register_module("gate", nn::Linear(nn::LinearOptions(c.hidden_size, c.experts).bias(false)));
  experts = register_module("experts", ExpertWeights(c));
}

Tensor ExpertsImpl::forward(const Tensor& x) {
  Tensor rows = x.flatten(0, 1);
  auto [weights, chosen] = topk(gate(rows).to(kFloat32).softmax(-1), config.experts_per_token, -1);
  if (config.expert_weights_add_up) weights = weights / weights.sum({-1}, true);
  bool few = rows.size(0) * config.experts_per_token <= config.experts;
  Tensor y = few ? by_chosen(rows, chosen, weights) : by_all(rows, chosen, weights);
  return y.to(x.dtype()).view_as(x);
}

Tensor ExpertsImpl::by_chosen(const Tensor& rows, const Tensor& chosen, const Tensor& weights) const {
  Dim count = rows.size(0);
  int64_t each = config.experts_per_token;
  Tensor which = chosen.flatten();
  // A sum, and no product of matrices: what is read by index is then read where it lies.
  auto product = [&](const Tensor& matrices, const Tensor& y) {
    return (matrices.index_select(0, which).to(kFloat32) * y.to(kFloat32).unsqueeze(1)).sum({-1}).to(rows.dtype());
  };
  Tensor x = rows.unsqueeze(1).expand({count, each, config.hidden_size}).reshape({count * each, config.hidden_size});
  Tensor h = activate(product(experts->gate_proj, x), config.activation) * product(experts->up_proj, x);
  Tensor y = product(experts->down_proj, h).view({count, each, config.hidden_size});
  return (y.to(kFloat32) * weights.unsqueeze(-1)).sum({1});
}

Tensor ExpertsImpl::by_all(const Tensor& rows, const Tensor& chosen, const Tensor& weights) const {
  // The first matrices of all experts stand one below the other, as those of one wide layer.
  auto wide = [&](const Tensor& matrices) { return linear(rows, matrices.flatten(0, 1)); };
  Tensor h = activate(wide(experts->gate_proj), config.activation) * wide(experts->up_proj);
  Tensor by_expert = h.unflatten(-1, {config.experts, config.expert_size}).transpose(0, 1);
  Tensor y = matmul(by_expert, experts->down_proj.transpose(1, 2)).to(kFloat32);
  Tensor share = zeros({rows.size(0), config.experts}, weights.options()).scatter(1, chosen, weights);
  return (y * share.t().unsqueeze(-1)).sum({0});
}

}  // namespace sinter::models
