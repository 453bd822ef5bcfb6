// Convolutions, and windows of images side by side.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/conv.h"

namespace sinter::interop {

namespace {

Padding padding_named(Text name) {
  check(name == "valid" || name == "same", "a convolution's padding is \"valid\" or \"same\", not \"{}\"", name);
  return name == "same" ? Padding::kSame : Padding::kValid;
}

}  // namespace

std::span<const Function> convolution_functions() {
  static const Function kList[] = {
      {"conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor", conv_tbc},
      {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], SymInt[1] "
       "dilation=[1], SymInt groups=1) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints dilation, Int groups) {
         return conv1d(x, weight, bias, stride, padding, dilation, groups);
       }},
      {"conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", "
       "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Text padding, Ints dilation, Int groups) {
         return conv1d(x, weight, bias, stride, padding_named(padding), dilation, groups);
       }},
      {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
       "SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints output_padding, Int groups,
          Ints dilation) {
         return conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation);
       }},
      {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
       "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints dilation, Int groups) {
         return conv2d(x, weight, bias, stride, padding, dilation, groups);
       }},
      {"conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", "
       "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Text padding, Ints dilation, Int groups) {
         return conv2d(x, weight, bias, stride, padding_named(padding), dilation, groups);
       }},
      {"conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
       "padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints output_padding, Int groups,
          Ints dilation) {
         return conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation);
       }},
      {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, "
       "0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints dilation, Int groups) {
         return conv3d(x, weight, bias, stride, padding, dilation, groups);
       }},
      {"conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
       "padding=\"valid\", SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Text padding, Ints dilation, Int groups) {
         return conv3d(x, weight, bias, stride, padding_named(padding), dilation, groups);
       }},
      {"conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
       "padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) -> "
       "Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints output_padding, Int groups,
          Ints dilation) {
         return conv_transpose3d(x, weight, bias, stride, padding, output_padding, groups, dilation);
       }},
      {"convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
       "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
       [](In x, In weight, const Tensor& bias, Ints stride, Ints padding, Ints dilation, bool transposed,
          Ints output_padding, Int groups) {
         return convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
       }},
      {"convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, "
       "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] "
       "output_mask) -> (Tensor, Tensor, Tensor)",
       [](In grad, In x, In weight, Ignored, Ints stride, Ints padding, Ints dilation, bool transposed,
          Ints output_padding, Int groups, const std::array<bool, 3>& mask) {
         return convolution_backward(grad, x, weight, stride, padding, dilation, transposed, output_padding, groups,
                                     mask);
       }},
      {"im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
       [](In x, Ints kernel, Ints dilation, Ints padding, Ints stride) {
         return im2col(x, kernel, dilation, padding, stride);
       }},
      {"col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
       "-> Tensor",
       [](In x, Sizes size, Ints kernel, Ints dilation, Ints padding, Ints stride) {
         return col2im(x, size, kernel, dilation, padding, stride);
       }},
  };
  return kList;
}

}  // namespace sinter::interop
