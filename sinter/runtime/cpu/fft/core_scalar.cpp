// For any machine: vectors of 128 bits.
#include "sinter/runtime/cpu/fft/kernels.h"

namespace sinter::runtime::fft_detail {
namespace {
constexpr FftCore<float> kFloatCore = make_core<float, 16>();
constexpr FftCore<double> kDoubleCore = make_core<double, 16>();
}  // namespace
template <>
const FftCore<float>* scalar_core() {
  return &kFloatCore;
}
template <>
const FftCore<double>* scalar_core() {
  return &kDoubleCore;
}
}  // namespace sinter::runtime::fft_detail
