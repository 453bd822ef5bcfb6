// Normalisations.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"

namespace sinter::interop {

namespace {

TensorTriple native_batch_norm(In x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                               bool training, double momentum, double eps) {
  return _native_batch_norm_legit(x, weight, bias, mean, var, training, momentum, eps);
}

// The running statistics are results, too, and those given stay as they are.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> functional_batch_norm(In x, const Tensor& weight, const Tensor& bias,
                                                                         const Tensor& mean, const Tensor& var,
                                                                         bool training, double momentum, double eps) {
  Tensor new_mean = clone(mean), new_var = clone(var);
  auto [y, saved_mean, saved_rstd] =
      _native_batch_norm_legit(x, weight, bias, new_mean, new_var, training, momentum, eps);
  return {y, saved_mean, saved_rstd, new_mean, new_var};
}

Tensor weight_norm(In v, In g, Int dim) { return v.tensor() * (g.tensor() / norm_except_dim(v, 2, dim)); }

}  // namespace

std::span<const Function> normalization_functions() {
  static const Function kList[] = {
      {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
       "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
       [](In x, Sizes shape, const Tensor& weight, const Tensor& bias, double eps, Ignored) {
         return layer_norm(x, shape, weight, bias, eps);
       }},
      {"native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
       "(Tensor, Tensor, Tensor)",
       native_layer_norm},
      {"native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, "
       "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       native_layer_norm_backward},
      {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", rms_norm},
      {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
       [](In x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, bool training,
          double momentum, double eps,
          Ignored) { return batch_norm(x, mean, var, weight, bias, training, momentum, eps); }},
      {"native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       native_batch_norm},
      {"_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) "
       "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       native_batch_norm},
      {"_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, "
       "float eps) -> (Tensor, Tensor, Tensor)",
       [](In x, const Tensor& weight, const Tensor& bias, bool training, double momentum, double eps) {
         return _native_batch_norm_legit(x, weight, bias, training, momentum, eps);
       }},
      {"_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
       "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       _native_batch_norm_legit_no_training},
      {"_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor "
       "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, "
       "Tensor running_var_out)",
       functional_batch_norm},
      {"group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
       "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
       [](In x, Int groups, const Tensor& weight, const Tensor& bias, double eps, Ignored) {
         return group_norm(x, groups, weight, bias, eps);
       }},
      {"native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float "
       "eps) -> (Tensor, Tensor, Tensor)",
       native_group_norm},
      {"native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, "
       "SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       native_group_norm_backward},
      {"instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool "
       "use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
       [](In x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, bool use_input_stats,
          double momentum, double eps,
          Ignored) { return instance_norm(x, mean, var, weight, bias, use_input_stats, momentum, eps); }},
      {"_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", weight_norm},
      {"_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
       [](In v, In g, Int dim) { return std::tuple(weight_norm(v, g, dim), norm_except_dim(v, 2, dim)); }},
      {"norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", norm_except_dim},
  };
  return kList;
}

}  // namespace sinter::interop
