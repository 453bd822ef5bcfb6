// Vectors of 512 bits. Compiled with AVX-512 F and DQ; without them the tables are absent.
#include "sinter/runtime/cpu/conv/core.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "sinter/runtime/cpu/conv/kernels.h"

namespace sinter::runtime::conv_detail {
namespace {
constexpr ConvCore<float> kFloatCore = make_core<float, 64>();
constexpr ConvCore<double> kDoubleCore = make_core<double, 64>();
}  // namespace
template <>
const ConvCore<float>* avx512_core() {
  return &kFloatCore;
}
template <>
const ConvCore<double>* avx512_core() {
  return &kDoubleCore;
}
}  // namespace sinter::runtime::conv_detail

#else

namespace sinter::runtime::conv_detail {
template <>
const ConvCore<float>* avx512_core() {
  return nullptr;
}
template <>
const ConvCore<double>* avx512_core() {
  return nullptr;
}
}  // namespace sinter::runtime::conv_detail

#endif
