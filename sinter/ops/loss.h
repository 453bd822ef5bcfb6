#pragma once
// Losses: a number per element, their mean or their sum.
#include "sinter/tensor/tensor.h"

namespace sinter {

// kBatchMean, the sum over the first size, is for kl_div.
enum class Reduction : uint8_t { kNone, kMean, kSum, kBatchMean };

// (x - target)².
Tensor mse_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean);
// |x - target|.
Tensor l1_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean);
// Quadratic within beta, linear beyond: d² / (2 beta), |d| - beta / 2.
Tensor smooth_l1_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean,
                      double beta = 1);
// smooth_l1_loss times delta.
Tensor huber_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean,
                  double delta = 1);
// -log softmax(logits)[target] with classes in dimension 1 (0 of a vector). Target: class indices, or probabilities of
// the logits' shape. The mean over indices is weighted and leaves out ignore_index.
Tensor cross_entropy(const TensorArg& logits, const TensorArg& target, const Tensor& weight = {},
                     Reduction reduction = Reduction::kMean, int64_t ignore_index = -100, double label_smoothing = 0);
// The same from log-probabilities and class indices.
Tensor nll_loss(const TensorArg& log_probabilities, const TensorArg& target, const Tensor& weight = {},
                Reduction reduction = Reduction::kMean, int64_t ignore_index = -100);
// -(target log x + (1 - target) log(1 - x)), the logarithms bounded by -100.
Tensor binary_cross_entropy(const TensorArg& x, const TensorArg& target, const Tensor& weight = {},
                            Reduction reduction = Reduction::kMean);
// The same of sigmoid(x), without overflow; pos_weight multiplies the term of target.
Tensor binary_cross_entropy_with_logits(const TensorArg& x, const TensorArg& target, const Tensor& weight = {},
                                        const Tensor& pos_weight = {}, Reduction reduction = Reduction::kMean);
// target (log target - x): x holds logarithms, target too when log_target is set.
Tensor kl_div(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean,
              bool log_target = false);
// The cosine of the angle between vectors along dim.
Tensor cosine_similarity(const TensorArg& a, const TensorArg& b, int64_t dim = 1, double eps = 1e-8);
// x where target is 1, max(0, margin - x) where it is -1.
Tensor hinge_embedding_loss(const TensorArg& x, const TensorArg& target, double margin = 1,
                            Reduction reduction = Reduction::kMean);

}  // namespace sinter
