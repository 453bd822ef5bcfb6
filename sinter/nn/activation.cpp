#include "sinter/nn/activation.h"

#include "sinter/base/error.h"
#include "sinter/nn/init.h"

namespace sinter::nn {

namespace functional {

// A function that also has a method which works in place.
#define SINTER_ACTIVATION_IN_PLACE(function, Options, ...)                    \
  Tensor function(const TensorArg& x, const Options& options) {               \
    UserPosition here(x.where());                                             \
    if (options.inplace()) return x.tensor().function##_(__VA_ARGS__);        \
    return sinter::function(x __VA_OPT__(, ) __VA_ARGS__);                    \
  }
SINTER_ACTIVATION_IN_PLACE(relu, ReLUFuncOptions)
SINTER_ACTIVATION_IN_PLACE(relu6, ReLU6FuncOptions)
SINTER_ACTIVATION_IN_PLACE(selu, SELUFuncOptions)
SINTER_ACTIVATION_IN_PLACE(leaky_relu, LeakyReLUFuncOptions, options.negative_slope())
SINTER_ACTIVATION_IN_PLACE(elu, ELUFuncOptions, options.alpha())
SINTER_ACTIVATION_IN_PLACE(celu, CELUFuncOptions, options.alpha())
SINTER_ACTIVATION_IN_PLACE(hardtanh, HardtanhFuncOptions, options.min_val(), options.max_val())
SINTER_ACTIVATION_IN_PLACE(threshold, ThresholdFuncOptions, options.threshold(), options.value())
SINTER_ACTIVATION_IN_PLACE(rrelu, RReLUFuncOptions, options.lower(), options.upper(), options.training())
#undef SINTER_ACTIVATION_IN_PLACE

Tensor gelu(const TensorArg& x, const GELUFuncOptions& options) { return sinter::gelu(x, options.approximate()); }
Tensor glu(const TensorArg& x, const GLUFuncOptions& options) { return sinter::glu(x, options.dim()); }
Tensor softplus(const TensorArg& x, const SoftplusFuncOptions& options) {
  return sinter::softplus(x, options.beta(), options.threshold());
}
Tensor hardshrink(const TensorArg& x, const HardshrinkFuncOptions& options) {
  return sinter::hardshrink(x, options.lambda());
}
Tensor softshrink(const TensorArg& x, const SoftshrinkFuncOptions& options) {
  return sinter::softshrink(x, options.lambda());
}
Tensor softmax(const TensorArg& x, const SoftmaxFuncOptions& options) {
  return sinter::softmax(x, options.dim(), options.dtype());
}
Tensor softmin(const TensorArg& x, const SoftminFuncOptions& options) {
  return sinter::softmin(x, options.dim(), options.dtype());
}
Tensor log_softmax(const TensorArg& x, const LogSoftmaxFuncOptions& options) {
  return sinter::log_softmax(x, options.dim(), options.dtype());
}
Tensor gumbel_softmax(const TensorArg& logits, const GumbelSoftmaxFuncOptions& options) {
  return sinter::gumbel_softmax(logits, options.tau(), options.hard(), options.dim());
}

}  // namespace functional

namespace {

// "alpha=1, inplace=true": what stands in front, and the last word where it is not the default.
std::string with_inplace(std::string text, bool inplace) {
  if (!inplace) return text;
  return text + (text.empty() ? "" : ", ") + "inplace=true";
}

}  // namespace

std::string ReLUImpl::extra_repr() const { return with_inplace("", options.inplace()); }
std::string ReLU6Impl::extra_repr() const { return with_inplace("", options.inplace()); }
std::string SELUImpl::extra_repr() const { return with_inplace("", options.inplace()); }
std::string LeakyReLUImpl::extra_repr() const {
  return with_inplace(format("negative_slope={}", options.negative_slope()), options.inplace());
}
std::string ELUImpl::extra_repr() const { return with_inplace(format("alpha={}", options.alpha()), options.inplace()); }
std::string CELUImpl::extra_repr() const { return with_inplace(format("alpha={}", options.alpha()), options.inplace()); }
std::string HardtanhImpl::extra_repr() const {
  return with_inplace(format("min_val={}, max_val={}", options.min_val(), options.max_val()), options.inplace());
}
std::string ThresholdImpl::extra_repr() const {
  return with_inplace(format("threshold={}, value={}", options.threshold(), options.value()), options.inplace());
}
std::string RReLUImpl::extra_repr() const {
  return with_inplace(format("lower={}, upper={}", options.lower(), options.upper()), options.inplace());
}
std::string GELUImpl::extra_repr() const { return "approximate=" + options.approximate(); }
std::string GLUImpl::extra_repr() const { return format("dim={}", options.dim()); }
std::string HardshrinkImpl::extra_repr() const { return format("lambda={}", options.lambda()); }
std::string SoftshrinkImpl::extra_repr() const { return format("lambda={}", options.lambda()); }
std::string SoftmaxImpl::extra_repr() const { return format("dim={}", options.dim()); }
std::string SoftminImpl::extra_repr() const { return format("dim={}", options.dim()); }
std::string LogSoftmaxImpl::extra_repr() const { return format("dim={}", options.dim()); }
std::string SoftplusImpl::extra_repr() const {
  return format("beta={}, threshold={}", options.beta(), options.threshold());
}

Tensor RReLUImpl::forward(const TensorArg& x) {
  auto how = functional::RReLUFuncOptions().lower(options.lower()).upper(options.upper());
  return functional::rrelu(x, how.training(is_training()).inplace(options.inplace()));
}

Tensor Softmax2dImpl::forward(const TensorArg& x) {
  UserPosition here(x.where(), "nn::Softmax2d");
  check(x.dim() == 3 || x.dim() == 4, "nn::Softmax2d: expected an input [n, c, h, w] or [c, h, w], got {}", x.sizes());
  return softmax(x, -3);
}

PReLUImpl::PReLUImpl(const PReLUOptions& options) : options(options) { reset(); }

void PReLUImpl::reset() {
  check(options.num_parameters() >= 1, "nn::PReLU: expected at least one parameter, got {}", options.num_parameters());
  weight = register_parameter("weight", new_parameter({options.num_parameters()}));
  if (initialises_parameters()) reset_parameters();
}

void PReLUImpl::reset_parameters() { init::constant_(weight, options.init()); }

}  // namespace sinter::nn
