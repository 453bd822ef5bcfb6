// The core for any machine: vectors of 128 bits in the compiler's own notation.
#include "sinter/runtime/cpu/gemm/core.h"
#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::gemm_detail {
namespace {

template <class T>
struct Portable {
  using Scalar = T;
  typedef T Reg __attribute__((vector_size(16)));
  using Mask = int;
  static constexpr int kLanes = 16 / int(sizeof(T)), kRows = 4, kAccumulators = 8;

  static Mask mask(int count) { return count; }
  static Reg zero() { return Reg{}; }
  static Reg set(T v) { return v - Reg{}; }  // folds to a broadcast: subtracting zero changes nothing
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static T sum(Reg v) {
    T total = v[0];
    for (int i = 1; i < kLanes; ++i) total += v[i];
    return total;
  }

  static Reg load(const T* p) {
    Reg r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
  static void store(T* p, Reg v) { __builtin_memcpy(p, &v, sizeof v); }
  template <class S>
  static Reg load(const S* p) {
    Reg r{};
    for (int i = 0; i < kLanes; ++i) r[i] = to_native(p[i]);
    return r;
  }
  template <class S>
  static Reg load(const S* p, Mask count) {
    if (count == kLanes) return load(p);
    T whole[kLanes] = {};
    for (int i = 0; i < count; ++i) whole[i] = to_native(p[i]);
    return load(whole);
  }
  template <class S>
  static void store(S* p, Reg v) {
    for (int i = 0; i < kLanes; ++i) from_native(T(v[i]), p + i);
  }
  template <class S>
  static void store(S* p, Reg v, Mask count) {
    if (count == kLanes) return store(p, v);
    for (int i = 0; i < count; ++i) from_native(T(v[i]), p + i);
  }
};

constexpr GemmCore<float> kFloatCore = make_core<Portable<float>>();
constexpr GemmCore<double> kDoubleCore = make_core<Portable<double>>();

}  // namespace

const GemmCore<float>* scalar_core_f32() { return &kFloatCore; }
const GemmCore<double>* scalar_core_f64() { return &kDoubleCore; }

}  // namespace sinter::runtime::gemm_detail
