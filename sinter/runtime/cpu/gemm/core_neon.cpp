// Vectors of 128 bits on AArch64, where the base of the architecture has all that is needed.
#include "sinter/runtime/cpu/gemm/core.h"

#include <arm_neon.h>

#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

// Of 32 registers 24 hold sums: twelve rows of two vectors.
struct NeonFloat {
  using Scalar = float;
  using Reg = float32x4_t;
  using Mask = int;
  static constexpr int kLanes = 4, kRows = 12, kAccumulators = 24;

  static Mask mask(int count) { return count; }
  static Reg zero() { return vdupq_n_f32(0); }
  static Reg set(float v) { return vdupq_n_f32(v); }
  static Reg fma(Reg a, Reg b, Reg c) { return vfmaq_f32(c, a, b); }
  static Reg mul(Reg a, Reg b) { return vmulq_f32(a, b); }
  static float sum(Reg v) { return vaddvq_f32(v); }

  static Reg load(const float* p) { return vld1q_f32(p); }
  static Reg load(const float* p, Mask count) {
    if (count == kLanes) return load(p);
    float whole[kLanes] = {};
    for (int i = 0; i < count; ++i) whole[i] = p[i];
    return load(whole);
  }
  static void store(float* p, Reg v) { vst1q_f32(p, v); }
  static void store(float* p, Reg v, Mask count) {
    if (count == kLanes) return store(p, v);
    float whole[kLanes];
    store(whole, v);
    for (int i = 0; i < count; ++i) p[i] = whole[i];
  }

  static Reg widen(BFloat16, uint16x4_t v) { return vreinterpretq_f32_u32(vshll_n_u16(v, 16)); }
  static Reg widen(Half, uint16x4_t v) { return vcvt_f32_f16(vreinterpret_f16_u16(v)); }
  template <class S>
  static Reg load(const S* p) {
    return widen(S(), vld1_u16(&p->bits));
  }
  template <class S>
  static Reg load(const S* p, Mask count) {
    if (count == kLanes) return load(p);
    uint16_t whole[kLanes] = {};
    for (int i = 0; i < count; ++i) whole[i] = p[i].bits;
    return widen(S(), vld1_u16(whole));
  }
  static uint16x4_t narrow(BFloat16, Reg v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v), odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vshrn_n_u32(vbslq_u32(vceqq_f32(v, v), rounded, quiet), 16);
  }
  static uint16x4_t narrow(Half, Reg v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
  template <class S>
  static void store(S* p, Reg v) {
    vst1_u16(&p->bits, narrow(S(), v));
  }
  template <class S>
  static void store(S* p, Reg v, Mask count) {
    if (count == kLanes) return store(p, v);
    uint16_t whole[kLanes];
    vst1_u16(whole, narrow(S(), v));
    for (int i = 0; i < count; ++i) p[i].bits = whole[i];
  }
};

struct NeonDouble {
  using Scalar = double;
  using Reg = float64x2_t;
  using Mask = int;
  static constexpr int kLanes = 2, kRows = 12, kAccumulators = 24;

  static Mask mask(int count) { return count; }
  static Reg zero() { return vdupq_n_f64(0); }
  static Reg set(double v) { return vdupq_n_f64(v); }
  static Reg fma(Reg a, Reg b, Reg c) { return vfmaq_f64(c, a, b); }
  static Reg mul(Reg a, Reg b) { return vmulq_f64(a, b); }
  static double sum(Reg v) { return vaddvq_f64(v); }
  static Reg load(const double* p) { return vld1q_f64(p); }
  static Reg load(const double* p, Mask count) {
    return count == kLanes ? load(p) : count == 1 ? vsetq_lane_f64(*p, zero(), 0) : zero();
  }
  static void store(double* p, Reg v) { vst1q_f64(p, v); }
  static void store(double* p, Reg v, Mask count) {
    if (count == kLanes) return store(p, v);
    if (count == 1) *p = vgetq_lane_f64(v, 0);
  }
};

constexpr GemmCore<float> kFloatCore = make_core<NeonFloat>();
constexpr GemmCore<double> kDoubleCore = make_core<NeonDouble>();

}  // namespace

const GemmCore<float>* neon_core_f32() { return &kFloatCore; }
const GemmCore<double>* neon_core_f64() { return &kDoubleCore; }

}  // namespace sinter::runtime::gemm_detail
