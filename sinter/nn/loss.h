#pragma once
// Losses as modules: loss(prediction, target).
#include "sinter/nn/module.h"
#include "sinter/base/fields.h"
#include "sinter/ops/loss.h"

namespace sinter::nn {

struct MSELossImpl : Module {
  Reduction reduction;
  explicit MSELossImpl(Reduction reduction = Reduction::kMean) : reduction(reduction) {}
  Tensor forward(const TensorArg& x, const TensorArg& target) { return mse_loss(x, target, reduction); }
};
SINTER_MODULE(MSELoss);

struct L1LossImpl : Module {
  Reduction reduction;
  explicit L1LossImpl(Reduction reduction = Reduction::kMean) : reduction(reduction) {}
  Tensor forward(const TensorArg& x, const TensorArg& target) { return l1_loss(x, target, reduction); }
};
SINTER_MODULE(L1Loss);

struct BCEWithLogitsLossImpl : Module {
  Reduction reduction;
  explicit BCEWithLogitsLossImpl(Reduction reduction = Reduction::kMean) : reduction(reduction) {}
  Tensor forward(const TensorArg& x, const TensorArg& target) {
    return binary_cross_entropy_with_logits(x, target, {}, {}, reduction);
  }
};
SINTER_MODULE(BCEWithLogitsLoss);

struct CrossEntropyLossOptions {
  CrossEntropyLossOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
  SINTER_OPTION(int64_t, ignore_index) = -100;
  SINTER_OPTION(double, label_smoothing) = 0;
};

struct CrossEntropyLossImpl : Module {
  CrossEntropyLossOptions options;
  Tensor weight;
  explicit CrossEntropyLossImpl(const CrossEntropyLossOptions& options = {})
      : options(options), weight(register_buffer("weight", options.weight())) {}
  Tensor forward(const TensorArg& logits, const TensorArg& target) {
    return cross_entropy(logits, target, weight, options.reduction(), options.ignore_index(),
                         options.label_smoothing());
  }
};
SINTER_MODULE(CrossEntropyLoss);

}  // namespace sinter::nn
