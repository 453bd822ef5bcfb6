// Vectors of 256 bits. Compiled with AVX2 and FMA; without them the tables are absent.
#include "sinter/runtime/cpu/conv/core.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "sinter/runtime/cpu/conv/kernels.h"

namespace sinter::runtime::conv_detail {
namespace {
constexpr ConvCore<float> kFloatCore = make_core<float, 32>();
constexpr ConvCore<double> kDoubleCore = make_core<double, 32>();
}  // namespace
template <>
const ConvCore<float>* avx2_core() {
  return &kFloatCore;
}
template <>
const ConvCore<double>* avx2_core() {
  return &kDoubleCore;
}
}  // namespace sinter::runtime::conv_detail

#else

namespace sinter::runtime::conv_detail {
template <>
const ConvCore<float>* avx2_core() {
  return nullptr;
}
template <>
const ConvCore<double>* avx2_core() {
  return nullptr;
}
}  // namespace sinter::runtime::conv_detail

#endif
