// What PyTorch's tape calls for functions whose gradients Sinter has with the functions themselves: they are differentiated here.
#include "sinter/autograd/functional.h"
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

// The gradients of the inputs of f that are wanted, those of the others undefined.
TensorList gradients(const func::Map& f, const TensorList& inputs, const TensorList& grads) {
  AutoGradMode enabled(true);
  TensorList plain;
  for (auto& input : inputs) plain.push_back(input.detach());
  return func::vjp(f, plain).second(grads);
}

// The function of the table that the gradient belongs to, with these arguments in the place of its tensors' own.
template <size_t Tensors>
TensorList gradients_of(const char* name, ValueList arguments, const Tensor& grad) {
  TensorList inputs;
  for (size_t i = 0; i < Tensors; ++i) inputs.push_back(value_to<Tensor>(arguments[i]));
  auto callee = find_callee(name);
  SINTER_INTERNAL_ASSERT(callee, "{} is in no list", name);
  return gradients(
      [&](const TensorList& given) {
        ValueList now = arguments;
        for (size_t i = 0; i < Tensors; ++i) now[i] = {given[i]};
        return TensorList{value_to<Tensor>((*callee)(now).at(0))};
      },
      inputs, {grad});
}

Value list_of(const Shape& sizes) {
  ValueList out;
  for (size_t i = 0; i < sizes.size(); ++i) out.push_back({sizes[i]});
  return {out};
}

struct PadName {
  static constexpr const char* kReflection[] = {"aten.reflection_pad1d.default", "aten.reflection_pad2d.default",
                                                "aten.reflection_pad3d.default"};
  static constexpr const char* kReplication[] = {"aten.replication_pad1d.default", "aten.replication_pad2d.default",
                                                 "aten.replication_pad3d.default"};
};
template <bool reflects, size_t dims>
Tensor pad_backward(const Tensor& grad, const Tensor& x, Sizes pads) {
  return gradients_of<1>((reflects ? PadName::kReflection : PadName::kReplication)[dims - 1], {{x}, list_of(pads)}, grad)[0];
}

std::tuple<Tensor, Tensor> grid_sampler_backward(const Tensor& grad, const Tensor& x, const Tensor& grid, Int mode,
                                                 Int padding, bool align_corners, const std::array<bool, 2>& wanted) {
  TensorList out = gradients_of<2>("aten.grid_sampler.default",
                                   {{x}, {grid}, {Dim(mode)}, {Dim(padding)}, {align_corners}}, grad);
  return {wanted[0] ? out[0] : Tensor(), wanted[1] ? out[1] : Tensor()};
}

// Positions within each plane.
template <int64_t dims>
Tensor adaptive_max_pool_backward(const Tensor& grad, const Tensor& x, const Tensor& indices) {
  Tensor flat = zeros(x.sizes(), grad.options()).flatten(-dims);
  return scatter_add(flat, -1, indices.flatten(-dims), grad.flatten(-dims)).view(x.sizes());
}

// Of v * g / |v| by its saved lengths.
std::tuple<Tensor, Tensor> weight_norm_backward(const Tensor& grad, const Tensor& v, const Tensor& g, const Tensor& lengths,
                                                Int dim) {
  IntList others;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) others.push_back(d);
  Tensor along = (grad * v).sum(others, /*keepdim=*/true) / lengths;
  return {g / lengths * (grad - v * (along / lengths)), along};
}

}  // namespace

std::span<const Function> gradient_functions() {
  static const Function kList[] = {
      {"reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor", pad_backward<true, 1>},
      {"reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor", pad_backward<true, 2>},
      {"reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor", pad_backward<true, 3>},
      {"replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor", pad_backward<false, 1>},
      {"replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor", pad_backward<false, 2>},
      {"replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor", pad_backward<false, 3>},
      {"grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
       "bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
       grid_sampler_backward},
      {"adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
       adaptive_max_pool_backward<2>},
      {"adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
       adaptive_max_pool_backward<3>},
      {"_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> "
       "(Tensor, Tensor)",
       weight_norm_backward},
  };
  return kList;
}

}  // namespace sinter::interop
