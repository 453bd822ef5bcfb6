#pragma once
// Losses: loss(prediction, target) as modules, and in nn::functional with the same options.
#include <functional>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/view.h"

namespace sinter SINTER_API {

// --- LibTorch's words: .reduction(kSum), .mode(kMax)
inline constexpr nn::Word<Reduction::kNone> kNone;
inline constexpr nn::Word<Reduction::kMean, EmbeddingBagMode::kMean> kMean;
inline constexpr nn::Word<Reduction::kSum, EmbeddingBagMode::kSum> kSum;
inline constexpr nn::Word<Reduction::kBatchMean> kBatchMean;
inline constexpr nn::Word<EmbeddingBagMode::kMax> kMax;

namespace nn {

namespace detail {
// Copies in place of the weights among the options, if any.
template <class Options>
void make_weights_own(Options& o) {
  if constexpr (requires { o.weight(); })
    if (o.weight().defined()) o.weight(o.weight().detach().clone());
  if constexpr (requires { o.pos_weight(); })
    if (o.pos_weight().defined()) o.pos_weight(o.pos_weight().detach().clone());
}
}  // namespace detail

// A loss of an input and a target: the module, the function of nn::functional, and how the options become arguments.
#define SINTER_LOSS(Name, function, FuncOptions, ...)                                                                \
  namespace functional {                                                                                             \
  using FuncOptions = Name##Options;                                                                                 \
  inline Tensor function(const TensorArg& x, const TensorArg& target, const Name##Options& options = {}) {           \
    return sinter::function(x, target, __VA_ARGS__);                                                                 \
  }                                                                                                                  \
  }                                                                                                                  \
  struct Name##Impl : Cloneable<Name##Impl> {                                                                                       \
    Name##Options options;                                                                                           \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) { register_weights(this->options); }   \
    void reset() override { register_weights(options, /*own=*/true); }                                               \
    Tensor forward(const TensorArg& x, const TensorArg& target) { return functional::function(x, target, options); } \
                                                                                                                     \
   private:                                                                                                          \
    /* Weights are buffers, as in PyTorch: they move with the module and are in its state. */                        \
    template <class O>                                                                                               \
    void register_weights(O& o, bool own = false) {                                                                  \
      if (own) detail::make_weights_own(o);                                                                          \
      if constexpr (requires { o.weight(); }) register_buffer("weight", o.weight());                                 \
      if constexpr (requires { o.pos_weight(); }) register_buffer("pos_weight", o.pos_weight());                     \
    }                                                                                                                \
  };                                                                                                                 \
  SINTER_MODULE(Name)

// --- of differences

struct LossOptions {
  LossOptions(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  SINTER_OPTION(Reduction, reduction);
};
using L1LossOptions = LossOptions;
using MSELossOptions = LossOptions;
SINTER_LOSS(L1Loss, l1_loss, L1LossFuncOptions, options.reduction());
SINTER_LOSS(MSELoss, mse_loss, MSELossFuncOptions, options.reduction());

struct SmoothL1LossOptions {
  SmoothL1LossOptions(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  SINTER_OPTION(Reduction, reduction);
  SINTER_OPTION(double, beta) = 1;
};
SINTER_LOSS(SmoothL1Loss, smooth_l1_loss, SmoothL1LossFuncOptions, options.reduction(), options.beta());

struct HuberLossOptions {
  HuberLossOptions(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  SINTER_OPTION(Reduction, reduction);
  SINTER_OPTION(double, delta) = 1;
};
SINTER_LOSS(HuberLoss, huber_loss, HuberLossFuncOptions, options.reduction(), options.delta());

// --- of probabilities

struct CrossEntropyLossOptions {
  CrossEntropyLossOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
  SINTER_OPTION(int64_t, ignore_index) = -100;
  SINTER_OPTION(double, label_smoothing) = 0;
};
SINTER_LOSS(CrossEntropyLoss, cross_entropy, CrossEntropyFuncOptions, options.weight(), options.reduction(),
            options.ignore_index(), options.label_smoothing());

struct NLLLossOptions {
  NLLLossOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
  SINTER_OPTION(int64_t, ignore_index) = -100;
};
SINTER_LOSS(NLLLoss, nll_loss, NLLLossFuncOptions, options.weight(), options.reduction(), options.ignore_index());

struct BCELossOptions {
  BCELossOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS(BCELoss, binary_cross_entropy, BinaryCrossEntropyFuncOptions, options.weight(), options.reduction());

struct BCEWithLogitsLossOptions {
  BCEWithLogitsLossOptions(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Tensor, pos_weight);
  SINTER_OPTION(Reduction, reduction);
};
SINTER_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits, BinaryCrossEntropyWithLogitsFuncOptions,
            options.weight(), options.pos_weight(), options.reduction());

struct KLDivLossOptions {
  KLDivLossOptions(Reduction reduction = Reduction::kMean) : reduction_(reduction) {}
  SINTER_OPTION(Reduction, reduction);
  SINTER_OPTION(bool, log_target) = false;
};
SINTER_LOSS(KLDivLoss, kl_div, KLDivFuncOptions, options.reduction(), options.log_target());

struct PoissonNLLLossOptions {
  PoissonNLLLossOptions() = default;
  SINTER_OPTION(bool, log_input) = true;
  SINTER_OPTION(bool, full) = false;
  SINTER_OPTION(double, eps) = 1e-8;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS(PoissonNLLLoss, poisson_nll_loss, PoissonNLLLossFuncOptions, options.log_input(), options.full(),
            options.eps(), options.reduction());

// --- of margins

struct HingeEmbeddingLossOptions {
  HingeEmbeddingLossOptions() = default;
  SINTER_OPTION(double, margin) = 1;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS(HingeEmbeddingLoss, hinge_embedding_loss, HingeEmbeddingLossFuncOptions, options.margin(),
            options.reduction());

using SoftMarginLossOptions = LossOptions;
using MultiLabelMarginLossOptions = LossOptions;
SINTER_LOSS(SoftMarginLoss, soft_margin_loss, SoftMarginLossFuncOptions, options.reduction());
SINTER_LOSS(MultiLabelMarginLoss, multilabel_margin_loss, MultilabelMarginLossFuncOptions, options.reduction());

struct MultiLabelSoftMarginLossOptions {
  MultiLabelSoftMarginLossOptions() = default;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss, MultilabelSoftMarginLossFuncOptions,
            options.weight(), options.reduction());

struct MultiMarginLossOptions {
  MultiMarginLossOptions() = default;
  SINTER_OPTION(double, p) = 1;
  SINTER_OPTION(double, margin) = 1;
  SINTER_OPTION(Tensor, weight);
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS(MultiMarginLoss, multi_margin_loss, MultiMarginLossFuncOptions, options.p(), options.margin(),
            options.weight(), options.reduction());
#undef SINTER_LOSS

// --- of three tensors

#define SINTER_LOSS_OF_THREE(Name, function, FuncOptions, ...)                       \
  namespace functional {                                                             \
  using FuncOptions = Name##Options;                                                 \
  inline Tensor function(const TensorArg& a, const TensorArg& b, const TensorArg& c, \
                         const Name##Options& options = {}) {                        \
    return sinter::function(a, b, c, __VA_ARGS__);                                   \
  }                                                                                  \
  }                                                                                  \
  struct Name##Impl : Cloneable<Name##Impl> {                                                       \
    Name##Options options;                                                           \
    explicit Name##Impl(const Name##Options& options = {}) : options(options) {}     \
    Tensor forward(const TensorArg& a, const TensorArg& b, const TensorArg& c) {     \
      return functional::function(a, b, c, options);                                 \
    }                                                                                \
  };                                                                                 \
  SINTER_MODULE(Name)

// Input, target and variance.
struct GaussianNLLLossOptions {
  GaussianNLLLossOptions() = default;
  SINTER_OPTION(bool, full) = false;
  SINTER_OPTION(double, eps) = 1e-6;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS_OF_THREE(GaussianNLLLoss, gaussian_nll_loss, GaussianNLLLossFuncOptions, options.full(), options.eps(),
                     options.reduction());

// Two inputs and a target.
struct MarginLossOptions {
  MarginLossOptions() = default;
  SINTER_OPTION(double, margin) = 0;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
using CosineEmbeddingLossOptions = MarginLossOptions;
using MarginRankingLossOptions = MarginLossOptions;
SINTER_LOSS_OF_THREE(CosineEmbeddingLoss, cosine_embedding_loss, CosineEmbeddingLossFuncOptions, options.margin(),
                     options.reduction());
SINTER_LOSS_OF_THREE(MarginRankingLoss, margin_ranking_loss, MarginRankingLossFuncOptions, options.margin(),
                     options.reduction());

// Anchor, positive and negative.
struct TripletMarginLossOptions {
  TripletMarginLossOptions() = default;
  SINTER_OPTION(double, margin) = 1;
  SINTER_OPTION(double, p) = 2;
  SINTER_OPTION(double, eps) = 1e-6;
  SINTER_OPTION(bool, swap) = false;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS_OF_THREE(TripletMarginLoss, triplet_margin_loss, TripletMarginLossFuncOptions, options.margin(),
                     options.p(), options.eps(), options.swap(), options.reduction());

struct TripletMarginWithDistanceLossOptions {
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  TripletMarginWithDistanceLossOptions() = default;
  SINTER_OPTION(distance_function_t, distance_function) = [](const Tensor& a, const Tensor& b) {
    return pairwise_distance(a, b);
  };
  SINTER_OPTION(double, margin) = 1;
  SINTER_OPTION(bool, swap) = false;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
};
SINTER_LOSS_OF_THREE(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss,
                     TripletMarginWithDistanceLossFuncOptions, options.distance_function(), options.margin(),
                     options.swap(), options.reduction());
#undef SINTER_LOSS_OF_THREE

// --- of sequences

struct CTCLossOptions {
  CTCLossOptions() = default;
  SINTER_OPTION(int64_t, blank) = 0;
  SINTER_OPTION(Reduction, reduction) = Reduction::kMean;
  SINTER_OPTION(bool, zero_infinity) = false;
};
namespace functional {
using CTCLossFuncOptions = CTCLossOptions;
inline Tensor ctc_loss(const TensorArg& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, const CTCLossOptions& options = {}) {
  return sinter::ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank(), options.reduction(),
                          options.zero_infinity());
}
}  // namespace functional
struct CTCLossImpl : Cloneable<CTCLossImpl> {
  CTCLossOptions options;
  explicit CTCLossImpl(const CTCLossOptions& options = {}) : options(options) {}
  Tensor forward(const TensorArg& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths) {
    return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
  }
};
SINTER_MODULE(CTCLoss);

}  // namespace nn
}  // namespace SINTER_API
