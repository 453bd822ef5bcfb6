// bf16 by bf16 on the tile registers of AMX; without it there is no kernel.
#include "sinter/runtime/cpu/gemm/core.h"

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512F__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

namespace sinter::runtime::gemm_detail {
namespace {

constexpr int kTileRows = 16, kTileLanes = 16;  // of Pairs or floats

// As LDTILECFG reads it.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles 0 to 3: C by upper and lower rows, left and right columns. 4, 5: A. 6, 7: B.
TileConfig make_config(int64_t upper, int64_t lower) {
  TileConfig config;
  const int64_t rows[8] = {upper, upper, lower, lower, upper, lower, kTileRows, kTileRows};
  for (int i = 0; i < 8; ++i) {
    config.rows[i] = uint8_t(rows[i]);
    config.row_bytes[i] = rows[i] ? 64 : 0;
  }
  return config;
}

inline void multiply_tiles(const float* a, int64_t a_stride, const float* b, int64_t b_stride, bool lower) {
  _tile_loadd(4, a, a_stride * 4);
  _tile_loadd(6, b, b_stride * 4);
  _tile_loadd(7, b + kTileLanes, b_stride * 4);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if (!lower) return;
  _tile_loadd(5, a + kTileRows * a_stride, a_stride * 4);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

void tile_kernel(const MicroArgs<float>& args, int64_t rows) {
  const int64_t upper = rows < kTileRows ? rows : kTileRows, lower = rows - upper;
  const TileConfig config = make_config(upper, lower);
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  if (lower) {
    _tile_zero(2);
    _tile_zero(3);
  }
  const float* a = args.a;
  const float* b = static_cast<const float*>(args.b);
  int64_t p = 0;
  for (; p + kTileLanes <= args.k; p += kTileLanes, a += kTileLanes, b += kTileRows * args.b_k_stride)
    multiply_tiles(a, args.a_row_stride, b, args.b_k_stride, lower);

  alignas(64) float out[2 * kTileRows][2 * kTileLanes];
  if (p < args.k) {
    // The last pairs, with zeros after them. Rows of C not asked for are never read.
    alignas(64) float last_a[2 * kTileRows][kTileLanes], last_b[kTileRows][2 * kTileLanes];
    const __mmask16 mask = __mmask16((1u << (args.k - p)) - 1);
    for (int64_t i = 0; i < rows; ++i)
      _mm512_store_ps(last_a[i], _mm512_maskz_loadu_ps(mask, a + i * args.a_row_stride));
    for (int64_t i = 0; i < kTileRows; ++i) {
      const bool inside = p + i < args.k;
      const float* from = b + (inside ? i : 0) * args.b_k_stride;
      const __mmask16 all = inside ? 0xffff : 0;
      _mm512_store_ps(last_b[i], _mm512_maskz_loadu_ps(all, from));
      _mm512_store_ps(last_b[i] + kTileLanes, _mm512_maskz_loadu_ps(all, from + kTileLanes));
    }
    multiply_tiles(last_a[0], kTileLanes, last_b[0], 2 * kTileLanes, lower);
  }
  _tile_stored(0, out[0], sizeof out[0]);
  _tile_stored(1, out[0] + kTileLanes, sizeof out[0]);
  if (lower) {
    _tile_stored(2, out[kTileRows], sizeof out[0]);
    _tile_stored(3, out[kTileRows] + kTileLanes, sizeof out[0]);
  }
  _tile_release();

  const __m512 alpha = _mm512_set1_ps(args.alpha);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < args.cols; j += kTileLanes) {
      const __mmask16 mask = __mmask16(args.cols - j >= kTileLanes ? 0xffff : (1 << (args.cols - j)) - 1);
      float* c = args.c + i * args.c_row_stride + j;
      const __m512 sum = _mm512_load_ps(out[i] + j);
      _mm512_mask_storeu_ps(
          c, mask,
          args.accumulate ? _mm512_fmadd_ps(alpha, sum, _mm512_maskz_loadu_ps(mask, c)) : _mm512_mul_ps(alpha, sum));
    }
  }
}

}  // namespace

TileKernel amx_tile_kernel() { return tile_kernel; }

}  // namespace sinter::runtime::gemm_detail

#else

namespace sinter::runtime::gemm_detail {
TileKernel amx_tile_kernel() { return nullptr; }
}  // namespace sinter::runtime::gemm_detail

#endif
