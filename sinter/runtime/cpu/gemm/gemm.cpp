#include "sinter/runtime/cpu/gemm/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/blocked.h"
#include "sinter/runtime/cpu/gemm/core.h"

namespace sinter::runtime {

using namespace gemm_detail;

bool cpu_supports(CpuIsa isa) {
#if defined(__x86_64__) || defined(__i386__)
  switch (isa) {
    case CpuIsa::kScalar:
      return true;
    case CpuIsa::kAvx2:
      return avx2_core_f32() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c");
    case CpuIsa::kAvx512:
      return avx512_core_f32() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  }
#endif
  return isa == CpuIsa::kScalar;
}

CpuIsa best_cpu_isa() {
  static const CpuIsa best = [] {
    for (CpuIsa isa : {CpuIsa::kAvx512, CpuIsa::kAvx2})
      if (isa <= host_target().isa && cpu_supports(isa)) return isa;
    return CpuIsa::kScalar;
  }();
  return best;
}

namespace {

template <class T>
const GemmCore<T>& core_of(CpuIsa isa) {
  if constexpr (sizeof(T) == 4)
    return isa == CpuIsa::kAvx512 ? *avx512_core_f32() : isa == CpuIsa::kAvx2 ? *avx2_core_f32() : *scalar_core_f32();
  else
    return isa == CpuIsa::kAvx512 ? *avx512_core_f64() : isa == CpuIsa::kAvx2 ? *avx2_core_f64() : *scalar_core_f64();
}

Storage storage_of(GemmType type) {
  return type == GemmType::bf16 ? kBFloat16 : type == GemmType::f16 ? kHalf : kNative;
}
int64_t size_of(GemmType type) { return type == GemmType::f64 ? 8 : type == GemmType::f32 ? 4 : 2; }

template <class Pointer>
Pointer advance(Pointer data, int64_t elements, GemmType type) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(data) + elements * size_of(type);
}

void check_isa(CpuIsa isa) {
  // The best one was checked when it was chosen.
  check(isa == best_cpu_isa() || cpu_supports(isa), "matmul: this machine lacks the instruction set asked for");
}

// A B of batch stride zero under adjacent blocks of rows is one tall multiplication.
bool folds(int64_t m, const GemmOperand& a, int64_t b_batch_stride, const GemmOutput& c) {
  return b_batch_stride == 0 && a.batch_stride == m * a.row_stride && c.batch_stride == m * c.row_stride;
}

template <class T>
void run_batch(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const void* packed,
               const GemmOutput& c, const GemmOptions& options, CpuIsa isa) {
  int64_t batch = options.batch;
  if (batch > 1 && folds(m, a, packed ? 0 : b.batch_stride, c)) {
    m *= batch;
    batch = 1;
  }
  const auto one = [&](int64_t i, int threads) {
    multiply<T>({.core = &core_of<T>(isa),
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = {advance(a.data, i * a.batch_stride, a.type), a.row_stride, a.col_stride, storage_of(a.type)},
                 .b = {packed ? nullptr : advance(b.data, i * b.batch_stride, b.type), b.row_stride, b.col_stride,
                       storage_of(b.type)},
                 .packed = packed,
                 .c = advance(c.data, i * c.batch_stride, c.type),
                 .c_row_stride = c.row_stride,
                 .c_col_stride = c.col_stride,
                 .c_storage = storage_of(c.type),
                 .alpha = T(options.alpha),
                 .accumulate = options.accumulate,
                 .epilogue = options.epilogue,
                 .first_row = i * m,
                 .swapped = false},
                threads);
  };
  if (batch == 1) return one(0, num_threads());

  const double work = double(m) * double(n) * double(k);
  const int64_t threads = num_threads();
  // Whole multiplications to a thread, unless they are few and large enough to split.
  if (threads == 1 || (batch < 4 * threads && batch % threads != 0 && work > 1e6)) {
    for (int64_t i = 0; i < batch; ++i) one(i, int(threads));
    return;
  }
  const int64_t grain = std::max<int64_t>(1, int64_t(100000 / (work + 1000)));
  parallel_for(0, batch, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i, 1);
  });
}

void dispatch(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const void* packed,
              const GemmOutput& c, const GemmOptions& options, CpuIsa isa) {
  check(m >= 0 && n >= 0 && k >= 0 && options.batch >= 0, "matmul: sizes {} x {} x {}, batch {} must not be negative",
        m, n, k, options.batch);
  check_isa(isa);
  const bool wide = a.type == GemmType::f64;
  check((b.type == GemmType::f64) == wide && (c.type == GemmType::f64) == wide, "matmul: f64 does not mix with others");
  if (m == 0 || n == 0 || options.batch == 0) return;
  if (k == 0 && options.accumulate && !options.epilogue) return;
  if (wide)
    run_batch<double>(m, n, k, a, b, packed, c, options, isa);
  else
    run_batch<float>(m, n, k, a, b, packed, c, options, isa);
}

}  // namespace

PackedB pack_b(int64_t k, int64_t n, const GemmOperand& b, CpuIsa isa) {
  check(k >= 0 && n >= 0, "pack_b: sizes {} x {} must not be negative", k, n);
  check_isa(isa);
  PackedB result;
  result.k_ = k;
  result.n_ = n;
  result.type_ = b.type;
  result.isa_ = isa;
  const View view{b.data, b.row_stride, b.col_stride, storage_of(b.type)};
  const auto pack = [&](const auto& core) {
    result.size_bytes_ = packed_elements(core, k, n) * size_of(b.type);
    void* data = allocate_aligned(result.size_bytes_);
    result.data_ = std::shared_ptr<const void>(data, [](const void* p) { std::free(const_cast<void*>(p)); });
    pack_whole(core, k, n, view, data);
  };
  if (b.type == GemmType::f64)
    pack(core_of<double>(isa));
  else
    pack(core_of<float>(isa));
  return result;
}

void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmOutput& c,
          const GemmOptions& options) {
  dispatch(m, n, k, a, b, nullptr, c, options, options.isa);
}

void gemm(int64_t m, const GemmOperand& a, const PackedB& b, const GemmOutput& c, const GemmOptions& options) {
  const GemmOperand shape{nullptr, 0, 0, b.type(), 0};
  dispatch(m, b.n(), b.k(), a, shape, b.data(), c, options, b.isa());
}

}  // namespace sinter::runtime
