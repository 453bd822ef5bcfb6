#include "sinter/nn/adaptive.h"

#include <cmath>

#include "sinter/base/error.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::nn {

AdaptiveLogSoftmaxWithLossImpl::AdaptiveLogSoftmaxWithLossImpl(const AdaptiveLogSoftmaxWithLossOptions& options)
    : options(options) {
  reset();
}

void AdaptiveLogSoftmaxWithLossImpl::reset() {
  cutoffs = options.cutoffs();
  check(!cutoffs.empty(), "nn::AdaptiveLogSoftmaxWithLoss: there are no cutoffs");
  int64_t least = 1;
  for (int64_t cutoff : cutoffs) {
    check(cutoff >= least && cutoff < options.n_classes(),
          "nn::AdaptiveLogSoftmaxWithLoss: the cutoff {} is not between those around it, or not among {} classes",
          cutoff, options.n_classes());
    least = cutoff + 1;
  }
  cutoffs.push_back(options.n_classes());
  shortlist_size = cutoffs[0];
  n_clusters = int64_t(cutoffs.size()) - 1;
  head_size = shortlist_size + n_clusters;
  head = register_module("head", Linear(LinearOptions(options.in_features(), head_size).bias(options.head_bias())));
  tail = register_module("tail", ModuleList());
  for (int64_t i = 0; i < n_clusters; ++i) {
    const int64_t width =
        int64_t(std::floor(double(options.in_features()) / std::pow(options.div_value(), double(i + 1))));
    const int64_t classes = cutoffs[size_t(i + 1)] - cutoffs[size_t(i)];
    tail->push_back(Sequential(Linear(LinearOptions(options.in_features(), width).bias(false)),
                               Linear(LinearOptions(width, classes).bias(false))));
  }
}

void AdaptiveLogSoftmaxWithLossImpl::reset_parameters() {
  head->reset_parameters();
  for (int64_t i = 0; i < n_clusters; ++i)
    for (size_t layer = 0; layer < 2; ++layer)
      tail->at<SequentialImpl>(size_t(i)).at<LinearImpl>(layer).reset_parameters();
}

// Log-probabilities among the classes of a cluster.
Tensor AdaptiveLogSoftmaxWithLossImpl::of_cluster(int64_t i, const Tensor& rows) const {
  return log_softmax(tail->at<SequentialImpl>(size_t(i)).forward(rows), 1);
}

ASMoutput AdaptiveLogSoftmaxWithLossImpl::forward(const TensorArg& x_arg, const Tensor& target_arg) {
  constexpr auto op = "nn::AdaptiveLogSoftmaxWithLoss";
  UserPosition here(x_arg.where(), op);
  const Tensor& given = tensor_operand(op, x_arg);
  check(target_arg.defined() && is_integral(target_arg.dtype()) && target_arg.dim() <= 1 &&
            given.dim() == target_arg.dim() + 1 && given.size(-1) == options.in_features() &&
            (given.dim() == 1 || given.size(0) == target_arg.size(0)),
        "{}: expected rows [n, {}] and integer classes [n], or one of each, got {} and {}", op, options.in_features(),
        given.sizes(), target_arg.defined() ? target_arg.sizes() : Shape());
  const bool batched = given.dim() == 2;
  const Tensor x = batched ? given : given.unsqueeze(0),
               target = (batched ? target_arg : target_arg.unsqueeze(0)).to(kInt64);
  // What the head is asked for: a frequent class itself, or the one that stands for a cluster.
  Tensor asked = target, within = zeros({x.size(0)}, x.options());
  Tensor known = (target >= 0) & (target < shortlist_size);
  for (int64_t i = 0; i < n_clusters; ++i) {
    const int64_t low = cutoffs[size_t(i)], high = cutoffs[size_t(i + 1)];
    const Tensor mask = (target >= low) & (target < high);
    known = known | mask;
    asked = where(mask, shortlist_size + i, asked);
    const Tensor rows = nonzero(mask).squeeze(1);
    if (rows.size(0) == 0) continue;
    const Tensor place = index_select(target, 0, rows) - low;
    const Tensor found = gather(of_cluster(i, index_select(x, 0, rows)), 1, place.unsqueeze(1)).squeeze(1);
    within = index_add(within, 0, rows, found);
  }
  check(all(known).item<bool>(), "{}: a target is not among the {} classes", op, options.n_classes());
  Tensor output = within + gather(log_softmax(head->forward(x), 1), 1, asked.unsqueeze(1)).squeeze(1);
  Tensor loss = (-output).mean();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLossImpl::log_prob(const TensorArg& x_arg) {
  UserPosition here(x_arg.where(), "nn::AdaptiveLogSoftmaxWithLoss");
  const Tensor& x = x_arg.tensor();
  const Tensor of_head = log_softmax(head->forward(x), 1);
  TensorList all{of_head.narrow(1, 0, shortlist_size)};
  for (int64_t i = 0; i < n_clusters; ++i) all.push_back(of_cluster(i, x) + of_head.narrow(1, shortlist_size + i, 1));
  return cat(all, 1);
}

Tensor AdaptiveLogSoftmaxWithLossImpl::predict(const TensorArg& x) { return argmax(log_prob(x), 1); }

std::string AdaptiveLogSoftmaxWithLossImpl::extra_repr() const {
  return format("in_features={}, n_classes={}, div_value={}, head_bias={}", options.in_features(), options.n_classes(),
                options.div_value(), options.head_bias());
}

}  // namespace sinter::nn
