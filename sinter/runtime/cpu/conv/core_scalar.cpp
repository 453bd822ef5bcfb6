// For any machine: vectors of 128 bits.
#include "sinter/runtime/cpu/conv/kernels.h"

namespace sinter::runtime::conv_detail {
namespace {
constexpr ConvCore<float> kFloatCore = make_core<float, 16>();
constexpr ConvCore<double> kDoubleCore = make_core<double, 16>();
}  // namespace
template <>
const ConvCore<float>* scalar_core() {
  return &kFloatCore;
}
template <>
const ConvCore<double>* scalar_core() {
  return &kDoubleCore;
}
}  // namespace sinter::runtime::conv_detail
