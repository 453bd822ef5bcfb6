// Vectors of 256 bits. Compiled with AVX2 and FMA; without them the tables are absent.
#include "sinter/runtime/cpu/fft/core.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "sinter/runtime/cpu/fft/kernels.h"

namespace sinter::runtime::fft_detail {
namespace {
constexpr FftCore<float> kFloatCore = make_core<float, 32>();
constexpr FftCore<double> kDoubleCore = make_core<double, 32>();
}  // namespace
template <>
const FftCore<float>* avx2_core() {
  return &kFloatCore;
}
template <>
const FftCore<double>* avx2_core() {
  return &kDoubleCore;
}
}  // namespace sinter::runtime::fft_detail

#else

namespace sinter::runtime::fft_detail {
template <>
const FftCore<float>* avx2_core() {
  return nullptr;
}
template <>
const FftCore<double>* avx2_core() {
  return nullptr;
}
}  // namespace sinter::runtime::fft_detail

#endif
