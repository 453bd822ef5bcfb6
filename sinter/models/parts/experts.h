#pragma once
// Many MLPs of which each token is given to a few, as a router decides.
#include "sinter/models/models.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/module.h"

namespace sinter::models {

// The matrices of all experts, [experts, out, in].
struct ExpertWeightsImpl : nn::Module {
  Tensor gate_proj, up_proj, down_proj;

  explicit ExpertWeightsImpl(const ModelConfig& config);
};
SINTER_MODULE(ExpertWeights);

struct ExpertsImpl : nn::Module {
  const ModelConfig& config;
  nn::Linear gate{nullptr};  // the router
  ExpertWeights experts{nullptr};

  explicit ExpertsImpl(const ModelConfig& config);
  // [batch, tokens, hidden] to the same. Where is decided in the graph: nothing waits for the host.
  Tensor forward(const Tensor& x);

 private:
  // For each row its experts' answers, added up by weight. The first reads the chosen experts' matrices alone, once for each
  // row; the second computes all of them, and is for more rows than there are experts to choose.
  Tensor by_chosen(const Tensor& rows, const Tensor& chosen, const Tensor& weights) const;
  Tensor by_all(const Tensor& rows, const Tensor& chosen, const Tensor& weights) const;
};
SINTER_MODULE(Experts);

}  // namespace sinter::models
