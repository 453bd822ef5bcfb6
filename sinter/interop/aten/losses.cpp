// Losses.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/nn/linear.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"

namespace sinter::interop {

namespace {

Reduction reduction_of(Int code) {
  constexpr Reduction kReductions[] = {Reduction::kNone, Reduction::kMean, Reduction::kSum};
  check(code >= 0 && code < std::ssize(kReductions), "a loss is reduced by none, mean or sum, not {}", code);
  return kReductions[code];
}

// Lengths as lists.
Tensor ctc_of_lists(In x, const Tensor& targets, Ints lengths, Ints target_lengths, Int blank, Int reduction,
                    bool zero_infinity) {
  auto as_tensor = [](Ints list) { return from_data(list.vec(), {int64_t(list.size())}); };
  return ctc_loss(x, targets, as_tensor(lengths), as_tensor(target_lengths), blank, reduction_of(reduction),
                  zero_infinity);
}

}  // namespace

std::span<const Function> loss_functions() {
  static const Function kList[] = {
      {"mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       [](In x, In target, Int reduction) { return mse_loss(x, target, reduction_of(reduction)); }},
      {"soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       [](In x, In target, Int reduction) { return soft_margin_loss(x, target, reduction_of(reduction)); }},
      {"multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       [](In x, In target, Int reduction) { return multilabel_margin_loss(x, target, reduction_of(reduction)); }},
      {"l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       [](In x, In target, Int reduction) { return l1_loss(x, target, reduction_of(reduction)); }},
      {"smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
       [](In x, In target, Int reduction, double beta) {
         return smooth_l1_loss(x, target, reduction_of(reduction), beta);
       }},
      {"huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
       [](In x, In target, Int reduction, double delta) {
         return huber_loss(x, target, reduction_of(reduction), delta);
       }},
      {"cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, "
       "float label_smoothing=0.) -> Tensor",
       [](In x, In target, const Tensor& weight, Int reduction, Int ignore_index, double label_smoothing) {
         return cross_entropy(x, target, weight, reduction_of(reduction), ignore_index, label_smoothing);
       }},
      {"nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor",
       [](In x, In target, const Tensor& weight, Int reduction, Int ignore_index) {
         return nll_loss(x, target, weight, reduction_of(reduction), ignore_index);
       }},
      {"nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
       "Tensor",
       [](In x, In target, const Tensor& weight, Int reduction, Int ignore_index) {
         return nll_loss(x, target, weight, reduction_of(reduction), ignore_index);
       }},
      {"nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> "
       "Tensor",
       [](In x, In target, const Tensor& weight, Int reduction, Int ignore_index) {
         return nll_loss(x, target, weight, reduction_of(reduction), ignore_index);
       }},
      {"binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
       [](In x, In target, const Tensor& weight, Int reduction) {
         return binary_cross_entropy(x, target, weight, reduction_of(reduction));
       }},
      {"binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int "
       "reduction=1) -> Tensor",
       [](In x, In target, const Tensor& weight, const Tensor& pos_weight, Int reduction) {
         return binary_cross_entropy_with_logits(x, target, weight, pos_weight, reduction_of(reduction));
       }},
      {"kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
       [](In x, In target, Int reduction, bool log_target) {
         return kl_div(x, target, reduction_of(reduction), log_target);
       }},
      {"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor", cosine_similarity},
      {"pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> "
       "Tensor",
       pairwise_distance},
      {"ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int "
       "reduction=1, bool zero_infinity=False) -> Tensor",
       ctc_of_lists},
      {"ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, "
       "int reduction=1, bool zero_infinity=False) -> Tensor",
       [](In x, const Tensor& targets, const Tensor& lengths, const Tensor& target_lengths, Int blank, Int reduction,
          bool zero_infinity) {
         return ctc_loss(x, targets, lengths, target_lengths, blank, reduction_of(reduction), zero_infinity);
       }},
      {"poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
       [](In x, In target, bool log_input, bool full, double eps, Int reduction) {
         return poisson_nll_loss(x, target, log_input, full, eps, reduction_of(reduction));
       }},
      {"hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
       [](In x, In target, double margin, Int reduction) {
         return hinge_embedding_loss(x, target, margin, reduction_of(reduction));
       }},
      {"margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
       [](In a, In b, In target, double margin, Int reduction) {
         return margin_ranking_loss(a, b, target, margin, reduction_of(reduction));
       }},
      {"cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor",
       [](In a, In b, In target, double margin, Int reduction) {
         return cosine_embedding_loss(a, b, target, margin, reduction_of(reduction));
       }},
      {"triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
       "eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
       [](In anchor, In positive, In negative, double margin, double p, double eps, bool swap, Int reduction) {
         return triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction_of(reduction));
       }},
      {"multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
       "reduction=1) -> Tensor",
       [](In x, In target, double p, double margin, const Tensor& weight, Int reduction) {
         return multi_margin_loss(x, target, p, margin, weight, reduction_of(reduction));
       }},

      // --- what nn.functional.linear_cross_entropy calls where it is told to compute in pieces; their size is our own
      {"torch_nn::_linear_cross_entropy_batch_chunked.default(Tensor input, Tensor linear_weight, Tensor target, "
       "Tensor? "
       "linear_bias, Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt "
       "batch_chunk_size, str "
       "acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool compute_input_grad, bool "
       "compute_linear_weight_grad, bool "
       "compute_linear_bias_grad) -> (Tensor, Tensor, Tensor, Tensor)",
       [](In x, const Tensor& linear_weight, const Tensor& target, const Tensor& linear_bias, const Tensor& weight,
          Text reduction, Int ignore_index, double label_smoothing, Ignored, Ignored, Ignored, Ignored, Ignored,
          Ignored, Ignored) {
         check(reduction == "mean" || reduction == "sum", "linear_cross_entropy: a reduction of \"{}\" is not known",
               reduction);
         const Reduction reduced = reduction == "mean" ? Reduction::kMean : Reduction::kSum;
         // Its other results are gradients for PyTorch's own backward.
         return std::tuple(nn::functional::linear_cross_entropy(x, linear_weight, target, linear_bias, weight, reduced,
                                                                ignore_index, label_smoothing),
                           Tensor(), Tensor(), Tensor());
       }},
      {"torch_nn::_linear_cross_entropy_batch_chunked_no_reduction.default(Tensor input, Tensor linear_weight, Tensor "
       "target, "
       "Tensor? linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str acc_policy, ScalarType "
       "acc_dtype) -> "
       "Tensor",
       [](In x, const Tensor& linear_weight, const Tensor& target, const Tensor& linear_bias, const Tensor& weight,
          Int ignore_index, Ignored, Ignored, Ignored) {
         return nn::functional::linear_cross_entropy(x, linear_weight, target, linear_bias, weight, Reduction::kNone,
                                                     ignore_index);
       }},
  };
  return kList;
}

}  // namespace sinter::interop
