#pragma once
// The kernels over vectors of kBytes in the compiler's own notation, instantiated by one source file per instruction
// set. As in gemm/kernels.h everything has internal linkage and nothing calls the standard library.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <utility>

#include "sinter/runtime/cpu/attention/core.h"
#include "sinter/runtime/cpu/gemm/kernels.h"

namespace sinter::runtime::attention_detail {
namespace {

constexpr float kNever = -__builtin_inff();

template <int kBytes>
struct Vector {
  typedef float Reg __attribute__((vector_size(kBytes)));
  typedef int32_t Bits __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / 4;
  static_assert(kPadding % kLanes == 0);

  static Reg load(const float* p) {
    Reg r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
  }
  static void store(float* p, Reg v) { __builtin_memcpy(p, &v, sizeof v); }
  static float first(Reg v) {
    float f;
    __builtin_memcpy(&f, &v, sizeof f);
    return f;
  }
  static Reg set(float v) { return v - Reg{}; }
  static Reg max(Reg a, Reg b) { return a > b ? a : b; }

  template <int kStep, int... kLane>
  static Reg rotated(Reg v, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(v, v, ((kLane + kStep) % kLanes)...);
  }
  // Every lane against the one half a vector away, then a quarter, ...
  template <int kStep = kLanes / 2, class F>
  static float joined(Reg v, F join) {
    v = join(v, rotated<kStep>(v, std::make_integer_sequence<int, kLanes>()));
    if constexpr (kStep == 1)
      return first(v);
    else
      return joined<kStep / 2>(v, join);
  }

  // e^x for x <= 0, within two units in the last place; 0 below the smallest normal number. NaN stays.
  static Reg exp(Reg x) {
    constexpr float kLowest = -87.3f, kRound = 0x1.8p23f;
    const Bits tiny = x < kLowest;
    x = tiny ? set(kLowest) : x;
    // x = n * ln 2 + r: n stands in the low bits of `shifted`, ln 2 in two parts of which the first is exact times n.
    const Reg shifted = x * 0x1.715476p0f + kRound, n = shifted - kRound;
    const Reg r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
    Reg p = r * 0x1.6d11fep-10f + 0x1.120c62p-7f;
    p = p * r + 0x1.555518p-5f;
    p = p * r + 0x1.5554dcp-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const Reg power = Reg((Bits(shifted) << 23) + 0x3f800000);
    return tiny ? Reg{} : p * power;
  }
};

// Dropout: what two vectors of weights after one another are multiplied by. Counters lie in 64-bit lanes, half as many as there
// are weights in a vector.
template <int kBytes>
struct Draw {
  using V = Vector<kBytes>;
  using Reg = typename V::Reg;
  typedef uint64_t Wide __attribute__((vector_size(kBytes)));
  typedef uint32_t Words __attribute__((vector_size(kBytes)));
  static constexpr int kCounters = kBytes / 8;

  template <int... kLane>
  static Wide lanes(std::integer_sequence<int, kLane...>) {
    return Wide{uint64_t(kLane)...};
  }
  // The product of the lower halves of each lane, both with zeros above.
  static Wide multiply(Wide a, uint64_t b) {
#if defined(__AVX512F__)
    if constexpr (kBytes == 64) return (Wide)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(int64_t(b)));
#endif
#if defined(__AVX2__)
    if constexpr (kBytes == 32) return (Wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(int64_t(b)));
#endif
#if defined(__SSE2__)
    if constexpr (kBytes == 16) return (Wide)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(int64_t(b)));
#endif
    return a * b;
  }
  template <int kFrom, int... kLane>
  static Wide zipped(Wide a, Wide b, std::integer_sequence<int, kLane...>) {
    return __builtin_shufflevector(a, b, (kFrom + kLane / 2 + kLane % 2 * kCounters)...);
  }
  static Reg factors(Wide words, const AttentionDropout& d) {
    const typename V::Bits kept = typename V::Bits(Words(words) >> 8) >= int32_t(d.threshold);
    return kept ? V::set(d.factor) : Reg{};
  }

  // As philox() of ops/philox.h.
  static void factors(const DropArgs& drop, int64_t ahead, Reg& first, Reg& second) {
    constexpr uint64_t kLow = 0xffffffffu;
    const AttentionDropout& d = drop.dropout;
    constexpr auto kAll = std::make_integer_sequence<int, kCounters>();
    const Wide counter = lanes(kAll) + uint64_t(drop.counter + ahead / 4);
    Wide c0 = counter & kLow, c1 = counter >> 32;
    Wide c2 = Wide{} + (uint64_t(d.offset) & kLow), c3 = Wide{} + (uint64_t(d.offset) >> 32);
    uint32_t k0 = uint32_t(d.seed), k1 = uint32_t(uint64_t(d.seed) >> 32);
    for (int round = 0; round < 10; ++round) {
      const Wide a = multiply(c0, 0xd2511f53u), b = multiply(c2, 0xcd9e8d57u);
      c0 = (b >> 32) ^ c1 ^ uint64_t(k0);
      c1 = b & kLow;
      c2 = (a >> 32) ^ c3 ^ uint64_t(k1);
      c3 = a & kLow;
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    const Wide low = c0 | c1 << 32, high = c2 | c3 << 32;
    first = factors(zipped<0>(low, high, kAll), d);
    second = factors(zipped<kCounters / 2>(low, high, kAll), d);
  }
};

template <class V>
void scale(float* to, int64_t count, float factor) {
  for (int64_t i = 0; i < count; i += V::kLanes) V::store(to + i, V::load(to + i) * factor);
}

template <class V>
void add_scaled(float* to, const float* from, int64_t count, float factor) {
  for (int64_t i = 0; i < count; i += V::kLanes) V::store(to + i, V::load(to + i) + V::load(from + i) * factor);
}

template <class V>
void softmax_rows(const SoftmaxArgs& args) {
  using Reg = typename V::Reg;
  constexpr int64_t L = V::kLanes;
  for (int64_t row = 0; row < args.rows; ++row) {
    float* scores = args.scores + row * args.score_stride;
    const int64_t visible = args.visible[row], whole = (visible + L - 1) / L * L;
    for (int64_t i = visible; i < whole; ++i) scores[i] = kNever;
    const float before = args.maximum[row];
    Reg top = V::set(before);
    for (int64_t i = 0; i < whole; i += L) top = V::max(V::load(scores + i), top);
    const float maximum = V::joined(top, V::max);
    // Nothing seen yet: any finite number keeps e^(-inf - it) at zero.
    const float base = maximum == kNever ? 0 : maximum;
    Reg total = {};
    for (int64_t i = 0; i < whole; i += L) {
      const Reg p = V::exp(V::load(scores + i) - base);
      V::store(scores + i, p);
      total += p;
    }
    for (int64_t i = whole; i < args.keys; ++i) scores[i] = 0;
    const float factor = V::first(V::exp(V::set(before - base)));
    args.sum[row] = args.sum[row] * factor + V::joined(total, [](Reg a, Reg b) { return a + b; });
    args.maximum[row] = maximum;
    if (factor != 1) scale<V>(args.values + row * args.value_stride, args.value_size, factor);
  }
}

// f(i, end) on every `step` of the vectors of visible scores, which end there.
template <class V, class F>
void each_visible(const WeightGradArgs& args, int64_t step, F f) {
  constexpr int64_t L = V::kLanes;
  const int64_t whole = (args.visible + L - 1) / L * L;
  for (int64_t i = args.visible; i < whole; ++i) args.scores[i] = kNever;
  for (int64_t i = 0; i < whole; i += step) f(i, whole);
  // Beyond the last vector of visible ones; inside it weights are zero, and so is what flows, unless it was infinite.
  for (int64_t i = args.visible; i < args.count; ++i) args.scores[i] = args.flow[i] = 0;
}

template <class V>
void weight_grad(const WeightGradArgs& args) {
  each_visible<V>(args, V::kLanes, [&](int64_t i, int64_t) {
    const typename V::Reg weight = V::exp(V::load(args.scores + i) - args.log_sum);
    V::store(args.scores + i, weight);
    V::store(args.flow + i, weight * (V::load(args.flow + i) - args.mean));
  });
}

template <int kBytes>
void drop_row(float* weights, int64_t count, const DropArgs& drop) {
  using V = Vector<kBytes>;
  constexpr int64_t L = V::kLanes;
  for (int64_t i = 0; i < count; i += 2 * L) {
    typename V::Reg first, second;
    Draw<kBytes>::factors(drop, i, first, second);
    V::store(weights + i, V::load(weights + i) * first);
    if (i + L < count) V::store(weights + i + L, V::load(weights + i + L) * second);
  }
}

template <int kBytes>
void dropped_weight_grad(const WeightGradArgs& args, const DropArgs& drop) {
  using V = Vector<kBytes>;
  using Reg = typename V::Reg;
  constexpr int64_t L = V::kLanes;
  const auto weigh = [&](int64_t i, Reg factor) {
    const Reg weight = V::exp(V::load(args.scores + i) - args.log_sum);
    V::store(args.scores + i, weight * factor);
    V::store(args.flow + i, weight * (V::load(args.flow + i) * factor - args.mean));
  };
  each_visible<V>(args, 2 * L, [&](int64_t i, int64_t end) {
    Reg first, second;
    Draw<kBytes>::factors(drop, i, first, second);
    weigh(i, first);
    if (i + L < end) weigh(i + L, second);
  });
}

template <class T>
void add_mask(float* scores, const void* mask, int64_t stride, int64_t count) {
  const T* from = static_cast<const T*>(mask);
  if (stride == 1)
    for (int64_t i = 0; i < count; ++i) scores[i] += gemm_detail::to_native(from[i]);
  else
    for (int64_t i = 0; i < count; ++i) scores[i] += gemm_detail::to_native(from[i * stride]);
}

inline void mask_row(float* scores, const void* mask, AttentionMaskType type, int64_t stride, int64_t count) {
  switch (type) {
    case AttentionMaskType::kNone:
      return;
    case AttentionMaskType::kBool:
      for (int64_t i = 0; i < count; ++i)
        scores[i] = static_cast<const uint8_t*>(mask)[i * stride] ? scores[i] : kNever;
      return;
    case AttentionMaskType::kFloat32:
      return add_mask<float>(scores, mask, stride, count);
    case AttentionMaskType::kBFloat16:
      return add_mask<gemm_detail::BFloat16>(scores, mask, stride, count);
    case AttentionMaskType::kFloat16:
      return add_mask<gemm_detail::Half>(scores, mask, stride, count);
  }
}

template <int kBytes>
constexpr AttentionCore make_core() {
  using V = Vector<kBytes>;
  return {softmax_rows<V>, weight_grad<V>, dropped_weight_grad<kBytes>, drop_row<kBytes>, mask_row, scale<V>, add_scaled<V>};
}

}  // namespace
}  // namespace sinter::runtime::attention_detail
