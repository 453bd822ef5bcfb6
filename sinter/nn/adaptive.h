#pragma once
// The softmax over very many classes of which few are frequent. Not part of sinter.h.
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"

namespace sinter SINTER_API {
namespace nn {

struct AdaptiveLogSoftmaxWithLossOptions {
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, const std::vector<int64_t>& cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(cutoffs) {}
  SINTER_OPTION(int64_t, in_features);
  SINTER_OPTION(int64_t, n_classes);
  SINTER_OPTION(std::vector<int64_t>, cutoffs);  // where clusters of rarer classes begin, in ascending order
  SINTER_OPTION(double, div_value) = 4;  // each cluster projects to so many times fewer features than the one before
  SINTER_OPTION(bool, head_bias) = false;
};

// The log-probability of each row's target, and the mean of their negatives: a tensor, where LibTorch has a number.
struct ASMoutput {
  Tensor output, loss;
};

// Classes are numbered by falling frequency: the head tells the first ones apart and one class for each cluster of the
// others, whose own layers see the rows alone whose target is in the cluster. Which rows these are is read on the host.
struct AdaptiveLogSoftmaxWithLossImpl : Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<int64_t> cutoffs;  // and at the end the number of classes
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head{nullptr};
  ModuleList tail{nullptr};  // of each cluster a projection and a layer of its classes

  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, const std::vector<int64_t>& cutoffs)
      : AdaptiveLogSoftmaxWithLossImpl(AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, cutoffs)) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(const AdaptiveLogSoftmaxWithLossOptions& options);
  void reset() override;
  void reset_parameters();
  // Of rows [n, in] and classes [n], or one of each.
  ASMoutput forward(const TensorArg& x, const Tensor& target);
  // Of all classes: [n, n_classes].
  Tensor log_prob(const TensorArg& x);
  // The most likely class of each row.
  Tensor predict(const TensorArg& x);
  std::string extra_repr() const override;

 private:
  Tensor of_cluster(int64_t i, const Tensor& rows) const;
};
SINTER_MODULE(AdaptiveLogSoftmaxWithLoss);

}  // namespace nn
}  // namespace SINTER_API
