#include <limits>

#include "sinter/base/error.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// The logarithm of no probability: finite, so that differences of two are numbers.
constexpr double kNever = -1e30;

// Targets one after another as rows of a matrix, which the longest fills.
Tensor as_rows(const Tensor& joined, const Tensor& lengths) {
  auto counts = lengths.to_vector<int64_t>();
  int64_t longest = 0, begin = 0;
  for (int64_t count : counts) longest = std::max(longest, count);
  TensorList rows;
  for (int64_t count : counts) {
    rows.push_back(constant_pad_nd(joined.slice(0, begin, begin + count), {0, longest - count}));
    begin += count;
  }
  check(joined.size(0) == begin, "ctc_loss: the targets have {} elements, their lengths add up to {}", joined.size(0),
        begin);
  return stack(rows);
}

// Moved so many places on; what comes in is never so.
Tensor moved(const Tensor& x, int64_t places) { return constant_pad_nd(x, {places, -places}, kNever); }

// log(exp(a) + exp(b) + exp(c)); the largest is taken out, and counts as a constant.
Tensor log_of_sum(const Tensor& a, const Tensor& b, const Tensor& c) {
  Tensor largest = maximum(maximum(a, b), c).detach();
  return largest + log(exp(a - largest) + exp(b - largest) + exp(c - largest));
}

// The loss of every row: log_probs [t, n, classes], targets [n, s], lengths [n].
Tensor losses(const Tensor& log_probs, const Tensor& given, const Tensor& input_lengths, const Tensor& target_lengths,
              int64_t blank) {
  Dim batch = log_probs.size(1), longest = given.size(1), states = longest * 2 + 1;
  auto count = [&](const Dim& size) { return arange_of_size(size, TensorOptions(kInt64).device(log_probs.device())); };
  Tensor is_target = count(longest) < target_lengths.unsqueeze(1);
  Tensor targets = where(is_target, given.to(kInt64), blank);

  // Blank, first class, blank, second class, …, blank.
  Tensor pairs = stack({full_like(targets, blank), targets}, 2).view({batch, longest * 2});
  Tensor labels = constant_pad_nd(pairs, {0, 1}, blank);
  // A blank may be left out between classes that differ.
  Tensor may_skip = (labels != blank) & (labels != constant_pad_nd(labels, {2, -2}, blank));
  Tensor index = labels.unsqueeze(0).expand({log_probs.size(0), batch, states});
  TensorList steps = gather(log_probs, 2, index).unbind(0);

  // A tensor and no comparison with t: steps that differ in a number would be kernels of their own.
  TensorList goes_on = (count(log_probs.size(0)).view({-1, 1, 1}) < input_lengths.unsqueeze(1)).unbind(0);
  Tensor first = count(states) < 2;
  Tensor alpha = where(first, steps[0], kNever);
  for (size_t t = 1; t < steps.size(); ++t) {
    Tensor next = log_of_sum(alpha, moved(alpha, 1), where(may_skip, moved(alpha, 2), kNever)) + steps[t];
    alpha = where(goes_on[t], next, alpha);
  }
  // It ends with the last class or the blank behind it. An empty target has the blank alone.
  Tensor last = (target_lengths * 2).unsqueeze(1);
  Tensor with_blank = gather(alpha, 1, last), without = gather(alpha, 1, clamp_min(last - 1, 0));
  without = where(last > 0, without, kNever);
  return -log_of_sum(with_blank, without, full_like(without, kNever)).squeeze(1);
}

}  // namespace

Tensor ctc_loss(const TensorArg& given, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, Reduction reduction, bool zero_infinity) {
  UserPosition here(given.where());
  bool is_single = given.dim() == 2;
  check(is_single || given.dim() == 3, "ctc_loss: log_probs is [t, n, classes] or [t, classes], not {}", given.sizes());
  check(is_floating(given.dtype()), "ctc_loss: log_probs is {} and not floating", given.dtype());
  check(reduction != Reduction::kBatchMean, "ctc_loss: kBatchMean is for kl_div");
  Tensor log_probs = widened(given.tensor());
  if (is_single) log_probs = log_probs.unsqueeze(1);
  Dim batch = log_probs.size(1), classes = log_probs.size(2);
  check(log_probs.size(0) > 0, "ctc_loss: an input without positions, {}", given.sizes());
  check(blank >= 0 && classes > blank, "ctc_loss: blank {} is none of {} classes", blank, classes);
  Tensor lengths = input_lengths.to(kInt64).reshape({-1}), of_targets = target_lengths.to(kInt64).reshape({-1});
  check(lengths.size(0) == batch && of_targets.size(0) == batch, "ctc_loss: {} and {} lengths for a batch of {}",
        lengths.size(0), of_targets.size(0), batch);
  Tensor rows = is_single ? targets.reshape({1, -1}) : targets.dim() == 1 ? as_rows(targets, of_targets) : targets;
  check(rows.dim() == 2 && rows.size(0) == batch, "ctc_loss: targets {} for a batch of {}", targets.sizes(), batch);

  Tensor loss = losses(log_probs, rows, lengths, of_targets, blank);
  loss = where(loss < -kNever / 2, loss, zero_infinity ? 0.0 : std::numeric_limits<double>::infinity());
  if (reduction == Reduction::kMean) loss = (loss / clamp_min(of_targets, 1)).mean();
  if (reduction == Reduction::kSum) loss = loss.sum();
  if (reduction == Reduction::kNone && is_single) loss = loss.squeeze(0);
  return narrowed(loss, given.dtype());
}

}  // namespace sinter
