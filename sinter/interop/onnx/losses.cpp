// Losses.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/reduce.h"

namespace sinter::interop::onnx {

namespace {

Reduction reduction_named(Text name) {
  if (name == "none") return Reduction::kNone;
  if (name == "sum") return Reduction::kSum;
  check(name == "mean", "there is no reduction '{}'", name);
  return Reduction::kMean;
}

// No class has this number.
constexpr int64_t kNone = -1'000'000'000;

Tensor likelihood(In x, In target, Maybe weight, MaybeInt ignored, Text reduction) {
  return nll_loss(x, target.tensor().to(kInt64), weight, reduction_named(reduction), ignored.value_or(kNone));
}

std::tuple<Tensor, Tensor> cross_entropy_of(In scores, In labels, Maybe weight, MaybeInt ignored, Text reduction) {
  const Tensor logarithms = log_softmax(scores, 1);
  return {likelihood(logarithms, labels, weight, ignored, reduction), logarithms};
}

}  // namespace

std::span<const Function> loss_operators() {
  static const Function kList[] = {
      {"onnx::NegativeLogLikelihoodLoss.12(Tensor input, Tensor target, Tensor? weight=None, *, int? ignore_index=None, str "
       "reduction=\"mean\") -> Tensor",
       likelihood},
      {"onnx::SoftmaxCrossEntropyLoss.12(Tensor scores, Tensor labels, Tensor? weights=None, *, int? ignore_index=None, str "
       "reduction=\"mean\") -> (Tensor, Tensor)",
       cross_entropy_of},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
