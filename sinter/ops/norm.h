#pragma once
// Normalisations and losses. No methods of Tensor.
#include <array>
#include <functional>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

// --- normalisations. Half types are computed in f32 and rounded once. Weight, bias, running statistics may be undefined

using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;

// Over the last dimensions, whose sizes are normalized_shape: zero mean and unit variance, then weight and bias.
Tensor layer_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// x / sqrt(mean(x²) + eps) * weight over the last dimensions; eps is the dtype's own by default.
Tensor rms_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight = {},
                std::optional<double> eps = {});
// Over all dimensions but channels (the second). When training, by the batch's own statistics, which are mixed into the
// running ones in place; else by the running ones.
Tensor batch_norm(const TensorArg& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight = {},
                  const Tensor& bias = {}, bool training = false, double momentum = 0.1, double eps = 1e-5);
// LibTorch's order of arguments, which it knows by the ninth.
inline Tensor batch_norm(const TensorArg& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, bool training, double momentum, double eps, bool /*cudnn_enabled*/) {
  return batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps);
}
// Over groups of channels of each sample.
Tensor group_norm(const TensorArg& x, int64_t num_groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);
// Over each channel of each sample; with use_input_stats false, by the running statistics.
Tensor instance_norm(const TensorArg& x, const Tensor& running_mean = {}, const Tensor& running_var = {},
                     const Tensor& weight = {}, const Tensor& bias = {}, bool use_input_stats = true,
                     double momentum = 0.1, double eps = 1e-5);
inline Tensor instance_norm(const TensorArg& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                            const Tensor& running_var, bool use_input_stats, double momentum, double eps,
                            bool /*cudnn_enabled*/) {
  return instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, momentum, eps);
}
// x / (k + alpha * mean of squares over `size` neighbouring channels) ^ beta.
Tensor local_response_norm(const TensorArg& x, int64_t size, double alpha = 1e-4, double beta = 0.75, double k = 1);
// x / max(p-norm along dim, eps).
Tensor normalize(const TensorArg& x, double p = 2, int64_t dim = 1, double eps = 1e-12);

// --- as exported graphs name them: the result, the mean, and 1 / sqrt(var + eps). Statistics of half types are f32.
TensorTriple native_layer_norm(const TensorArg& x, const Shape& normalized_shape, const Tensor& weight,
                               const Tensor& bias, double eps);
TensorTriple native_group_norm(const TensorArg& x, const Tensor& weight, const Tensor& bias, Dim batch, Dim channels,
                               Dim plane, int64_t groups, double eps);
TensorTriple _native_batch_norm_legit(const TensorArg& x, const Tensor& weight, const Tensor& bias,
                                      const Tensor& running_mean, const Tensor& running_var, bool training,
                                      double momentum, double eps);
TensorTriple _native_batch_norm_legit(const TensorArg& x, const Tensor& weight, const Tensor& bias, bool training,
                                      double momentum, double eps);
// Statistics are empty: nothing was measured.
TensorTriple _native_batch_norm_legit_no_training(const TensorArg& x, const Tensor& weight, const Tensor& bias,
                                                  const Tensor& running_mean, const Tensor& running_var,
                                                  double momentum, double eps);

// Gradients of input, weight and bias, each where its mask is set (undefined elsewhere).
TensorTriple native_layer_norm_backward(const TensorArg& grad_output, const TensorArg& x, const Shape& normalized_shape,
                                        const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                        const Tensor& bias,
                                        const std::array<bool, 3>& output_mask = {true, true, true});
TensorTriple native_group_norm_backward(const TensorArg& grad_output, const TensorArg& x, const Tensor& mean,
                                        const Tensor& rstd, const Tensor& weight, Dim batch, Dim channels, Dim plane,
                                        int64_t groups, const std::array<bool, 3>& output_mask = {true, true, true});

// --- losses: a number per element, their mean or their sum

// kBatchMean, the sum over the first size, is for kl_div. The second half are LibTorch's spellings: torch::Reduction::Mean.
enum class Reduction : uint8_t { kNone, kMean, kSum, kBatchMean, None = kNone, Mean = kMean, Sum = kSum };

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
inline Tensor cross_entropy_loss(const TensorArg& logits, const TensorArg& target, const Tensor& weight = {},
                                 Reduction reduction = Reduction::kMean, int64_t ignore_index = -100,
                                 double label_smoothing = 0) {
  return cross_entropy(logits, target, weight, reduction, ignore_index, label_smoothing);
}
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
// Connectionist temporal classification: -log of the probability of a target over all its alignments with a longer input, in
// which classes may be repeated and blanks stand between them. log_probs is [t, n, classes], as log_softmax gives them;
// targets [n, s], or all of them joined, 1-d (which reads the lengths on the host); lengths integers, [n]. Without n: [t,
// classes], [s], and lengths of one element. The mean is over the batch, of losses over the length of their target.
// A target that no alignment fits has an infinite loss, or with zero_infinity none; its gradient is zero. Gradients are those
// of log_probs themselves; PyTorch's take into account already that they are normalised, which log_softmax does in turn. A
// step for each position of the input: about ten ops.
Tensor ctc_loss(const TensorArg& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank = 0, Reduction reduction = Reduction::kMean, bool zero_infinity = false);
// The p-norm of a - b + eps along the last dimension.
Tensor pairwise_distance(const TensorArg& a, const TensorArg& b, double p = 2, double eps = 1e-6, bool keepdim = false);
// -log of the probability of target under a Poisson distribution: exp(x) - target x, or x - target log(x + eps) unless
// log_input. `full` adds an approximation of log(target!).
Tensor poisson_nll_loss(const TensorArg& x, const TensorArg& target, bool log_input = true, bool full = false,
                        double eps = 1e-8, Reduction reduction = Reduction::kMean);
// The same under a normal distribution of mean x: (log var + (x - target)² / var) / 2, var at least eps. `full` adds the
// constant.
Tensor gaussian_nll_loss(const TensorArg& x, const TensorArg& target, const TensorArg& var, bool full = false,
                         double eps = 1e-6, Reduction reduction = Reduction::kMean);

// --- margins
// x where target is 1, max(0, margin - x) where it is -1.
Tensor hinge_embedding_loss(const TensorArg& x, const TensorArg& target, double margin = 1,
                            Reduction reduction = Reduction::kMean);

// max(0, margin - target (x1 - x2)); target is 1 or -1.
Tensor margin_ranking_loss(const TensorArg& x1, const TensorArg& x2, const TensorArg& target, double margin = 0,
                           Reduction reduction = Reduction::kMean);
// log(1 + exp(-target x)); target is 1 or -1.
Tensor soft_margin_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean);
// 1 - cos where target is 1, max(0, cos - margin) where it is -1, of the angle between rows of x1 and x2.
Tensor cosine_embedding_loss(const TensorArg& x1, const TensorArg& x2, const TensorArg& target, double margin = 0,
                             Reduction reduction = Reduction::kMean);
// max(0, |anchor - positive| - |anchor - negative| + margin); with swap the negative's distance is that to the positive
// where it is smaller.
Tensor triplet_margin_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative,
                           double margin = 1, double p = 2, double eps = 1e-6, bool swap = false,
                           Reduction reduction = Reduction::kMean);
// The same with any distance.
Tensor triplet_margin_with_distance_loss(const TensorArg& anchor, const TensorArg& positive, const TensorArg& negative,
                                         const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                                         double margin = 1, bool swap = false,
                                         Reduction reduction = Reduction::kMean);
// The mean over classes i of max(0, margin - x[target] + x[i])^p, the target left out, times weight[target].
Tensor multi_margin_loss(const TensorArg& x, const TensorArg& target, double p = 1, double margin = 1,
                         const Tensor& weight = {}, Reduction reduction = Reduction::kMean);
// The same over all labels of a row, which a negative one ends, and all classes that are no labels.
Tensor multilabel_margin_loss(const TensorArg& x, const TensorArg& target, Reduction reduction = Reduction::kMean);
// The mean over classes of binary_cross_entropy_with_logits.
Tensor multilabel_soft_margin_loss(const TensorArg& x, const TensorArg& target, const Tensor& weight = {},
                                   Reduction reduction = Reduction::kMean);

}  // namespace sinter
