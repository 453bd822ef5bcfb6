// Vectors of 512 bits. Compiled with AVX-512 F and DQ; without them the tables are absent.
#include "sinter/runtime/cpu/fft/core.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "sinter/runtime/cpu/fft/kernels.h"

namespace sinter::runtime::fft_detail {
namespace {
constexpr FftCore<float> kFloatCore = make_core<float, 64>();
constexpr FftCore<double> kDoubleCore = make_core<double, 64>();
}  // namespace
template <>
const FftCore<float>* avx512_core() {
  return &kFloatCore;
}
template <>
const FftCore<double>* avx512_core() {
  return &kDoubleCore;
}
}  // namespace sinter::runtime::fft_detail

#else

namespace sinter::runtime::fft_detail {
template <>
const FftCore<float>* avx512_core() {
  return nullptr;
}
template <>
const FftCore<double>* avx512_core() {
  return nullptr;
}
}  // namespace sinter::runtime::fft_detail

#endif
