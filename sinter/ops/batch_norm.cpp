// Batch normalisation by the statistics of the batch, and its gradient: kept whole while gradients are taken, so that these
// are the two sums that the mathematics leaves, and not what each op of the forward would add up by itself.
#include "sinter/ops/batch_norm.h"

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

struct BatchNormAttrs {
  double eps = 1e-5;
  SINTER_FIELDS(eps)
};

// All dimensions but the channels.
IntList batch_dims(int64_t rank) {
  IntList dims{0};
  for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
  return dims;
}

// A number a channel, next to x.
Tensor beside(const Tensor& t, const Tensor& x) {
  Shape shape(size_t(x.dim() - 1), 1);
  shape[0] = x.size(1);
  return t.view(shape);
}

// Elements of a channel.
Dim count_of(const Tensor& x) {
  Dim count = 1;
  for (int64_t d : batch_dims(x.dim())) count *= x.size(d);
  return count;
}

// Some element of each channel. Sums of squares of what is left lose little to cancellation, whatever the mean.
Tensor samples_of(const Tensor& x) {
  Tensor some = x.select(0, 0);
  while (some.dim() > 1) some = some.select(1, 0);
  return some;
}

void check_operand(const OpCall& call, size_t i, const char* what) {
  check(call.inputs[i].rank() == 1 && call.shape(int(i))[0] == call.shape(0)[1] && is_floating(call.inputs[i].dtype),
        "{}: {} {} is not one number a channel of {}", call.name(), what, call.inputs[i], call.inputs[0]);
}

}  // namespace

// Of x, the gradient of what batch_norm_training made of it, the statistics that it gave, and perhaps its weight: the
// gradients of x, of the weight and of the bias.
struct BatchNormBackward : Composite {
  static constexpr auto name = "batch_norm_backward";
  static constexpr int inputs = -1;
  using Attributes = BatchNormAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs.size() == 4 || call.inputs.size() == 5,
          "batch_norm_backward: takes an input, a gradient, means, variances and perhaps a weight");
    const Type& x = call.inputs[0];
    check(x.rank() >= 2 && is_floating(x.dtype), "batch_norm_backward: expected a floating input [batch, channels, …], got {}", x);
    check(call.shape(1) == x.shape, "batch_norm_backward: the gradient {} has not the shape of the input {}", call.inputs[1], x);
    for (size_t i = 2; i < call.inputs.size(); ++i) check_operand(call, i, i == 2 ? "the mean" : i == 3 ? "the variance" : "the weight");
    Type channel{wide_dtype(x.dtype), {x.shape[1]}, x.device};
    return {x, channel, channel};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& x = inputs[0].tensor();
    Tensor g = widened(inputs[1].tensor()), wide = widened(x), mean = widened(inputs[2].tensor());
    Tensor rstd = rsqrt(widened(inputs[3].tensor()) + attrs.as<BatchNormAttrs>().eps);
    const IntList dims = batch_dims(x.dim());
    const Dim count = count_of(x);
    // Sums and results compute what they need of g and x by themselves, unlike the forward too (the sign, the order), so that
    // no program keeps an image between them that is wider than these.
    // What is summed up is there before the first sum, so that one walk finds both.
    Tensor product = g * (beside(mean, x) - wide);
    Tensor sum = g.sum(dims), sum_normal = product.sum(dims) * -rstd;
    Tensor scale = inputs.size() == 5 ? widened(inputs[4].tensor()) * rstd : rstd;
    Tensor slope = rstd * sum_normal / count, level = mean * slope - sum / count;
    Tensor dx = (g + (beside(level, x) - wide * beside(slope, x))) * beside(scale, x);
    return {narrowed(dx, x.dtype()), sum_normal, sum};
  }
  static constexpr Tolerance tolerance{.ulp = 256, .absolute = 1e-3};
  static constexpr Domain domain_of_inputs{0.5, 2};  // a variance is positive
  SINTER_SAMPLES("x[3, 2, 4, 5], x[3, 2, 4, 5], x[2], x[2], x[2]", "x[7, 3], x[7, 3], x[3], x[3] | eps=0.1",
                 "x[2, 17, 3], x[2, 17, 3], x[17], x[17], x[17]")
};

// Every channel less its mean and by its deviation, times the weight and plus the bias, if these are there. The mean and the
// variance of each channel come along, in the type that they are computed in.
struct BatchNormTraining : Composite {
  static constexpr auto name = "batch_norm_training";
  static constexpr int inputs = -1;
  using Attributes = BatchNormAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    check(call.inputs.size() == 1 || call.inputs.size() == 3, "batch_norm_training: takes an input, and perhaps a weight and a bias");
    const Type& x = call.inputs[0];
    check(x.rank() >= 2 && is_floating(x.dtype), "batch_norm_training: expected a floating input [batch, channels, …], got {}", x);
    for (size_t i = 1; i < call.inputs.size(); ++i) check_operand(call, i, i == 1 ? "the weight" : "the bias");
    Type channel{wide_dtype(x.dtype), {x.shape[1]}, x.device};
    return {x, channel, channel};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& x = inputs[0].tensor();
    const IntList dims = batch_dims(x.dim());
    // One walk over x: both sums are of what is left of it.
    Tensor wide = widened(x), shift = samples_of(x), rest = wide - beside(shift, x);
    Tensor rest_mean = rest.mean(dims), mean = shift + rest_mean;
    Tensor var = clamp_min((rest * rest).mean(dims) - rest_mean * rest_mean, 0);
    Tensor scale = rsqrt(var + attrs.as<BatchNormAttrs>().eps), centered = wide - beside(mean, x);
    if (inputs.size() == 1) return {narrowed(centered * beside(scale, x), x.dtype()), mean, var};
    scale = scale * widened(inputs[1].tensor());
    return {narrowed(centered * beside(scale, x) + beside(widened(inputs[2].tensor()), x), x.dtype()), mean, var};
  }
  static TensorList grad(const GradCall& c) {
    TensorList out(c.inputs.size());
    const Tensor& x = c[0].tensor();
    Tensor grad = c.grad(0).defined() ? c.grad(0) : zeros_like(c.out(0));
    std::vector<TensorArg> operands{c[0], grad, c.out(1), c.out(2)};
    if (c.inputs.size() == 3) operands.push_back(c[1]);
    TensorList found = call_op_many(op_of<BatchNormBackward>, operands, c.attrs, c[0].where());
    if (c.needs(0)) {
      out[0] = found[0];
      Tensor through;  // the statistics
      if (c.grad(1).defined()) through = beside(c.grad(1), x) / count_of(x);
      if (c.grad(2).defined()) {
        Tensor spread = (widened(x) - beside(c.out(1), x)) * (beside(c.grad(2), x) * 2.0 / count_of(x));
        through = through.defined() ? through + spread : spread;
      }
      if (through.defined()) out[0] = narrowed(widened(out[0]) + through, x.dtype());
    }
    for (size_t i = 1; i < c.inputs.size(); ++i)
      if (c.needs(int(i))) out[i] = narrowed(found[i], c[int(i)].dtype());
    return out;
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 1e-4};
  SINTER_SAMPLES("x[3, 2, 4, 5], x[2], x[2]", "x[7, 3] | eps=0.1", "x[2, 17, 3], x[17], x[17]")
};

OpFamily norm_ops() {
  static const Op* const ops[] = {&op_of<BatchNormTraining>, &op_of<BatchNormBackward>};
  return ops;
}

TensorTriple batch_norm_training(const TensorArg& x, const Tensor& weight, const Tensor& bias, double eps) {
  std::vector<TensorArg> operands{x};
  if (weight.defined() || bias.defined()) {
    const Tensor& given = weight.defined() ? weight : bias;
    operands.emplace_back(weight.defined() ? weight : ones_like(given));
    operands.emplace_back(bias.defined() ? bias : zeros_like(given));
  }
  TensorList out = call_op_many(op_of<BatchNormTraining>, operands, BatchNormAttrs{eps}, x.where());
  return {out[0], out[1], out[2]};
}

}  // namespace sinter
