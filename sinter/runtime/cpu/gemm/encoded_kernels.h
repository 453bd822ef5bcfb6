#pragma once
// The kernels of products with encoded weights, written once over the vector traits of kernels.h. Where V has a `lookup` of 16
// floats by the low bits of its lanes, or a `gather`, tables are read by it.
#include <cstdint>
#include <utility>

#include "sinter/runtime/cpu/gemm/core.h"
#include "sinter/runtime/cpu/gemm/encoded_core.h"

namespace sinter::runtime::gemm_detail {
namespace {

template <class V>
struct CodeLanes {
  typedef uint32_t Bits __attribute__((vector_size(sizeof(typename V::Reg))));
  typedef int32_t Ints __attribute__((vector_size(sizeof(typename V::Reg))));
  static Bits load(const uint8_t* p) {
    Bits out;
    __builtin_memcpy(&out, p, sizeof out);
    return out;
  }
};

enum : int { kCodesInt8, kCodesUInt4, kCodesTable4, kCodesTable8 };
constexpr bool is_table(int kind) { return kind == kCodesTable4 || kind == kCodesTable8; }
constexpr bool is_nibble(int kind) { return kind == kCodesUInt4 || kind == kCodesTable4; }

// What the codes in the low bits of the lanes stand for, without zero and scale.
template <class V, int kKind>
inline typename V::Reg decode(typename CodeLanes<V>::Bits codes, const float* table) {
  using Reg = typename V::Reg;
  using Ints = typename CodeLanes<V>::Ints;
  const auto low = codes & (is_nibble(kKind) ? 15u : 255u);
  if constexpr (!is_table(kKind)) {
    return Reg(__builtin_convertvector(Ints(low), Reg));
  } else if constexpr (kKind == kCodesTable4 && requires { V::lookup(table, low); }) {
    return V::lookup(table, low);
  } else if constexpr (requires { V::gather(table, low); }) {
    return V::gather(table, low);
  } else {
    float picked[V::kLanes];
    for (int i = 0; i < V::kLanes; ++i) picked[i] = table[low[i]];
    return V::load(picked);
  }
}

template <class V>
inline typename V::Reg load_number(const void* from, int storage, int64_t at) {
  if (storage == kBFloat16) return V::load(static_cast<const BFloat16*>(from) + at);
  if (storage == kHalf) return V::load(static_cast<const Half*>(from) + at);
  return V::load(static_cast<const float*>(from) + at);
}
template <class V>
inline typename V::Reg load_zero(const GroupNumbers& numbers, int64_t at) {
  return numbers.zero ? load_number<V>(numbers.zero, numbers.zero_storage, at) : V::set(numbers.same);
}

// A in floats.
template <class V, int kKind, int kRows>
void encoded_rows(const EncodedArgs& args) {
  using Reg = typename V::Reg;
  using Lanes = CodeLanes<V>;
  constexpr int L = V::kLanes, kColumns = 2 * L, kInWord = is_nibble(kKind) ? 8 : 4;
  const int64_t words = args.depth / kInWord;
  for (int col = 0; col < kPanelColumns; col += kColumns) {
    const uint8_t* codes = args.codes + 4 * col;
    const float* a = static_cast<const float*>(args.a);
    GroupNumbers numbers = args.numbers;
    for (int64_t group = 0; group < args.groups; ++group) {
      Reg acc[kRows][2];
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) acc[i][0] = acc[i][1] = V::zero();
      for (int64_t w = 0; w < words; ++w, codes += 4 * kPanelColumns, a += kInWord) {
        const typename Lanes::Bits first = Lanes::load(codes), second = Lanes::load(codes + 4 * L);
        __builtin_prefetch(codes + 2048);
#pragma GCC unroll 16
        for (int e = 0; e < kInWord; ++e) {
          const int shift = e % 4 * 8 + e / 4 * 4;
          const Reg left = decode<V, kKind>(first >> shift, args.table),
                    right = decode<V, kKind>(second >> shift, args.table);
#pragma GCC unroll 16
          for (int i = 0; i < kRows; ++i) {
            const Reg value = V::set(a[i * args.a_row_stride + e]);
            acc[i][0] = V::fma(value, left, acc[i][0]);
            acc[i][1] = V::fma(value, right, acc[i][1]);
          }
        }
      }
      const bool accumulate = args.accumulate || group > 0;
#pragma GCC unroll 16
      for (int j = 0; j < 2; ++j) {
        const int at = col + j * L;
        const Reg scale = load_number<V>(numbers.scale, numbers.scale_storage, at);
        const Reg zero = is_table(kKind) ? V::zero() : load_zero<V>(numbers, at);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          Reg sum = acc[i][j];
          if constexpr (!is_table(kKind)) sum = V::fma(V::set(-args.a_sum[i * args.a_sum_stride + group]), zero, sum);
          float* c = args.c + i * args.c_row_stride + at;
          V::store(c, accumulate ? V::fma(scale, sum, V::load(c)) : V::mul(scale, sum));
        }
      }
      numbers.next();
    }
  }
}

// Floats rounded to bf16, to nearest even, in the low halves.
template <class V>
inline typename CodeLanes<V>::Bits rounded_bf16(typename V::Reg value) {
  using Bits = typename CodeLanes<V>::Bits;
  const Bits bits = Bits(value);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

template <class V, int kKind>
void expand_panel(const ExpandArgs& args) {
  using Reg = typename V::Reg;
  using Lanes = CodeLanes<V>;
  constexpr int L = V::kLanes, kPanel = 2 * L, kInWord = is_nibble(kKind) ? 8 : 4;
  for (int half = 0; half < 2; ++half) {
    const uint8_t* codes = args.codes + 4 * half * L;
    const Reg scale = load_number<V>(args.numbers.scale, args.numbers.scale_storage, half * L);
    // (c - zero) * scale as c * scale + shift.
    const Reg shift = V::mul(V::mul(load_zero<V>(args.numbers, half * L), scale), V::set(-1.0f));
    float* to = static_cast<float*>(args.to) + half * L;
    const auto element = [&](typename Lanes::Bits word, int e) __attribute__((always_inline)) {
      const Reg value = decode<V, kKind>(word >> (e % 4 * 8 + e / 4 * 4), args.table);
      if constexpr (is_table(kKind))
        return V::mul(value, scale);
      else
        return V::fma(value, scale, shift);
    };
    for (int64_t row = 0; row < args.rows; row += kInWord, codes += 4 * kPanelColumns) {
      const auto word = Lanes::load(codes);
      const int64_t left = args.rows - row;
      if (args.pairs) {
#pragma GCC unroll 16
        for (int e = 0; e < kInWord; e += 2) {
          if (e >= left) break;
          typename Lanes::Bits pair = rounded_bf16<V>(element(word, e));
          if (e + 1 < left) pair |= rounded_bf16<V>(element(word, e + 1)) << 16;
          V::store(to, Reg(pair));
          to += kPanel;
        }
      } else {
#pragma GCC unroll 16
        for (int e = 0; e < kInWord; ++e) {
          if (e >= left) break;
          V::store(to, element(word, e));
          to += kPanel;
        }
      }
    }
  }
}

template <class V, int kKind, int... kIndex>
constexpr void fill_encoded(EncodedCore& core, std::integer_sequence<int, kIndex...>) {
  ((core.rows[kKind][kIndex] = encoded_rows<V, kKind, kIndex + 1>), ...);
  core.expand[kKind] = expand_panel<V, kKind>;
}

template <class V>
constexpr EncodedCore make_encoded_core() {
  // Sums of two vectors a row, and what is decoded beside them.
  constexpr int kMost = V::kAccumulators / 2 < kEncodedRows ? V::kAccumulators / 2 : kEncodedRows;
  constexpr auto kRows = std::make_integer_sequence<int, kMost>();
  EncodedCore core{};
  core.max_rows = kMost;
  fill_encoded<V, kCodesInt8>(core, kRows);
  fill_encoded<V, kCodesUInt4>(core, kRows);
  fill_encoded<V, kCodesTable4>(core, kRows);
  fill_encoded<V, kCodesTable8>(core, kRows);
  return core;
}
template <class V>
inline constexpr EncodedCore kEncodedCore = make_encoded_core<V>();

}  // namespace
}  // namespace sinter::runtime::gemm_detail
