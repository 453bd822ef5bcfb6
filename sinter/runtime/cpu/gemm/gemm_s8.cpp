#include "sinter/runtime/cpu/gemm/gemm_s8.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/scratch.h"

namespace sinter::runtime {

using namespace gemm_detail;

namespace {

constexpr int64_t kPanel = PackedS8::kPanel, kRowBlock = 4 * S8Core::kRows;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <int kRows>
void portable_kernel(const S8Args& args) {
  for (int64_t i = 0; i < kRows; ++i) {
    uint32_t sums[kPanel];
    for (int64_t j = 0; j < kPanel; ++j) sums[j] = 0;
    const uint8_t* a = args.a + i * args.a_row_stride;
    const int8_t* b = args.b;
    for (int64_t q = 0; q < args.quads; ++q, a += 4, b += 4 * kPanel)
      for (int64_t j = 0; j < kPanel; ++j)
        sums[j] += uint32_t(a[0] * b[4 * j] + a[1] * b[4 * j + 1] + a[2] * b[4 * j + 2] + a[3] * b[4 * j + 3]);
    for (int64_t j = 0; j < args.cols; ++j)
      args.c[i * args.c_row_stride + j] = int32_t(sums[j] - uint32_t(args.offsets[j]));
  }
}

template <int... kIndex>
constexpr S8Core make_portable(std::integer_sequence<int, kIndex...>) {
  return {{portable_kernel<kIndex + 1>...}};
}
constexpr S8Core kPortable = make_portable(std::make_integer_sequence<int, S8Core::kRows>());

const S8Core& core_of([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx512 && host_target().avx512_vnni && avx512_vnni_core()) return *avx512_vnni_core();
#endif
  return kPortable;
}

// Rows of A plus 128, so that the unsigned operand of the instruction can hold them.
void shift_rows(const S8Operand& a, int64_t first, int64_t rows, int64_t k, uint8_t* to, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    const int8_t* from = a.data + (first + i) * a.row_stride;
    uint8_t* row = to + i * stride;
    if (a.col_stride == 1)
      for (int64_t p = 0; p < k; ++p) row[p] = uint8_t(from[p]) ^ 0x80;
    else
      for (int64_t p = 0; p < k; ++p) row[p] = uint8_t(from[p * a.col_stride]) ^ 0x80;
    for (int64_t p = k; p < stride; ++p) row[p] = 0;
  }
}

template <class T>
std::shared_ptr<T> allocate(int64_t count) {
  return {static_cast<T*>(allocate_aligned(count * int64_t(sizeof(T)))), [](T* p) { std::free(p); }};
}

}  // namespace

const int8_t* PackedS8::panel(int64_t index) const { return data_.get() + index * kPanel * 4 * ceil_div(k_, 4); }

PackedS8 pack_s8(int64_t k, int64_t n, const S8Operand& b) {
  check(k >= 0 && n >= 0, "pack_s8: sizes {} x {} must not be negative", k, n);
  PackedS8 result;
  result.k_ = k;
  result.n_ = n;
  const int64_t panels = ceil_div(n, kPanel), quads = ceil_div(k, 4);
  const auto data = allocate<int8_t>(panels * quads * 4 * kPanel);
  const auto offsets = allocate<int32_t>(panels * kPanel);
  parallel_for(0, panels, std::max<int64_t>(1, 65536 / (kPanel * (k + 1))), [&](int64_t begin, int64_t end) {
    for (int64_t col = begin * kPanel; col < end * kPanel; ++col) {
      int8_t* to = data.get() + (col / kPanel * quads * kPanel + col % kPanel) * 4;
      uint32_t sum = 0;
      for (int64_t p = 0; p < quads * 4; ++p) {
        const int8_t value = col < n && p < k ? b.data[p * b.row_stride + col * b.col_stride] : int8_t(0);
        to[p / 4 * 4 * kPanel + p % 4] = value;
        sum += uint32_t(int32_t(value));
      }
      offsets.get()[col] = int32_t(sum * 128u);
    }
  });
  result.data_ = data;
  result.offsets_ = offsets;
  return result;
}

void gemm_s8(int64_t m, const S8Operand& a, const PackedS8& b, int32_t* c, int64_t c_row_stride, CpuIsa isa) {
  check(m >= 0, "gemm_s8: {} rows", m);
  const int64_t k = b.k(), n = b.n();
  if (m == 0 || n == 0) return;
  const S8Core& core = core_of(isa);
  const int64_t panels = ceil_div(n, kPanel), row_parts = ceil_div(m, kRowBlock), threads = num_threads();
  // Columns are split only where the rows do not keep the threads busy.
  const int64_t col_parts = row_parts >= threads ? 1 : std::min(panels, 4 * threads);
  const int64_t stride = ceil_div(k, 4) * 4;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t part = task % row_parts, col_part = task / row_parts;
      const int64_t r0 = m * part / row_parts, rows = m * (part + 1) / row_parts - r0;
      uint8_t* shifted = static_cast<uint8_t*>(thread_scratch().a.reserve(rows * stride));
      shift_rows(a, r0, rows, k, shifted, stride);
      const int64_t row_panels = ceil_div(rows, S8Core::kRows);
      for (int64_t panel = panels * col_part / col_parts; panel < panels * (col_part + 1) / col_parts; ++panel) {
        const int64_t col = panel * kPanel;
        for (int64_t i = 0, row = 0; i < row_panels; ++i) {
          const int64_t next = rows * (i + 1) / row_panels;
          core.kernel[next - row - 1]({stride / 4, shifted + row * stride, stride, b.panel(panel), b.offsets() + col,
                                       c + (r0 + row) * c_row_stride + col, c_row_stride, std::min(kPanel, n - col)});
          row = next;
        }
      }
    }
  };
  if (double(m) * double(n) * double(k) < 1e6)
    run(0, row_parts * col_parts);
  else
    parallel_for(0, row_parts * col_parts, 1, run);
}

void gemm_s8(int64_t m, int64_t n, int64_t k, const S8Operand& a, const S8Operand& b, int32_t* c, int64_t c_row_stride,
             CpuIsa isa) {
  gemm_s8(m, a, pack_s8(k, n, b), c, c_row_stride, isa);
}

}  // namespace sinter::runtime
