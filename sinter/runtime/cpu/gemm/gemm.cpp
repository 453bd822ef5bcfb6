#include "sinter/runtime/cpu/gemm/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/blocked.h"
#include "sinter/runtime/cpu/gemm/core.h"
#include "sinter/runtime/cpu/gemm/encoded_layout.h"

namespace sinter::runtime {

using namespace gemm_detail;

bool cpu_supports(CpuIsa isa) {
#if defined(__x86_64__) || defined(__i386__)
  switch (isa) {
    case CpuIsa::kScalar:
      return true;
    case CpuIsa::kNeon:
      return false;
    case CpuIsa::kAvx2:
      return avx2_core_f32() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c");
    case CpuIsa::kAvx512:
      return avx512_core_f32() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
  }
#endif
  return isa == CpuIsa::kScalar || (isa == CpuIsa::kNeon && core_f32(isa));
}

CpuIsa best_cpu_isa() {
  static const CpuIsa best = [] {
    for (CpuIsa isa : {CpuIsa::kAvx512, CpuIsa::kAvx2, CpuIsa::kNeon})
      if (isa <= host_target().isa && cpu_supports(isa)) return isa;
    return CpuIsa::kScalar;
  }();
  return best;
}

namespace {

template <class T>
const GemmCore<T>& core_of(CpuIsa isa) {
  if constexpr (sizeof(T) == 4)
    return *core_f32(isa);
  else
    return *core_f64(isa);
}

// Null where this machine has no instructions for products of bf16.
const Bf16Core* bf16_core([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  static const Bf16Core* const best = []() -> const Bf16Core* {
    if (!host_target().avx512_bf16 || !avx512_bf16_core()) return nullptr;
    static Bf16Core core = *avx512_bf16_core();
    if (amx_tile_kernel() && enable_amx_bf16()) core.tile = amx_tile_kernel();
    return &core;
  }();
  if (isa == CpuIsa::kAvx512) return best;
#endif
  return nullptr;
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

// What the two forms of call have in common.
struct Call {
  int64_t m, k, batch;
  const GemmOperand& a;
  std::span<const GemmPart> parts;
  double alpha;
  bool accumulate, together;
  const JointEpilogue* epilogue;
  CpuIsa isa;
};

// Bs of batch stride zero under adjacent blocks of rows are one tall multiplication.
bool folds(const Call& call) {
  return call.a.batch_stride == call.m * call.a.row_stride &&
         std::all_of(call.parts.begin(), call.parts.end(), [&](const GemmPart& part) {
           return (part.packed || part.b.batch_stride == 0) &&
                  (!part.c.data || part.c.batch_stride == call.m * part.c.row_stride);
         });
}

template <class T>
Problem<T> problem_of(const Call& call, const GemmPart& part, int64_t m, int64_t item) {
  const GemmOperand& a = call.a;
  const GemmOperand& b = part.b;
  const GemmOutput& c = part.c;
  const CpuIsa isa = part.packed ? part.packed->isa() : call.isa;
  return {.core = &core_of<T>(isa),
          .bf16 = bf16_core(isa),
          .m = m,
          .n = part.n,
          .k = call.k,
          .a = {advance(a.data, item * a.batch_stride, a.type), a.row_stride, a.col_stride, storage_of(a.type)},
          .b = {part.packed ? nullptr : advance(b.data, item * b.batch_stride, b.type), b.row_stride, b.col_stride,
                storage_of(part.packed ? part.packed->type() : b.type)},
          .packed = part.packed ? part.packed->data() : nullptr,
          .c = c.data ? advance(c.data, item * c.batch_stride, c.type) : nullptr,
          .c_row_stride = c.row_stride,
          .c_col_stride = c.col_stride,
          .c_storage = storage_of(c.type),
          .alpha = T(call.alpha),
          .accumulate = call.accumulate,
          .swapped = false};
}

// Whether encoded parts are read as they are. Decoding panels for the usual cores takes as long as multiplying some rows.
bool streams(int64_t m, const GemmOperand& a, std::span<const GemmPart> parts, CpuIsa isa) {
  constexpr int64_t kStreamedRows = 16;
  const Bf16Core* const bf16 = a.type == GemmType::bf16 ? bf16_core(isa) : nullptr;
  return m <= kStreamedRows || ((!bf16 || !bf16->tile) && std::all_of(parts.begin(), parts.end(), [&](const GemmPart& part) {
                                  return streams_integers(isa, a.type, part.encoded->format.kind);
                                }));
}

// Encoded parts of many rows: their panels are decoded where others are packed.
void run_decoded(const Call& call) {
  const Bf16Core* const bf16 = bf16_core(call.isa);
  const GemmCore<float>& core = core_of<float>(call.isa);
  const bool pairs = bf16 && call.a.type == GemmType::bf16;
  std::vector<EncodedPanels> panels;
  std::vector<PanelMaker> makers;
  std::vector<Problem<float>> problems;
  panels.reserve(call.parts.size());
  makers.reserve(call.parts.size());
  for (const GemmPart& part : call.parts) {
    panels.push_back({EncodedReader(*part.encoded), core.encoded, pairs, core.panel});
    makers.push_back(panels.back().maker());
    Problem<float>& problem = problems.emplace_back(problem_of<float>(call, part, call.m, 0));
    problem.b = {nullptr, part.n, 1, pairs ? kBFloat16 : kNative};
    problem.maker = &makers.back();
  }
  multiply<float>({problems, call.together, call.epilogue, 0}, num_threads());
}

template <class T>
void run_batch(const Call& call) {
  int64_t m = call.m, batch = call.batch;
  if (batch > 1 && folds(call)) {
    m *= batch;
    batch = 1;
  }
  const auto one = [&](int64_t i, int threads) {
    const auto launch = [&](std::span<Problem<T>> problems) {
      multiply<T>({problems, call.together, call.epilogue, i * m}, threads);
    };
    if (call.parts.size() == 1) {
      Problem<T> problem = problem_of<T>(call, call.parts[0], m, i);
      return launch({&problem, 1});
    }
    std::vector<Problem<T>> problems;
    problems.reserve(call.parts.size());
    for (const GemmPart& part : call.parts) problems.push_back(problem_of<T>(call, part, m, i));
    launch(problems);
  };
  if (batch == 1) return one(0, num_threads());

  int64_t columns = 0;
  for (const GemmPart& part : call.parts) columns += part.n;
  const double work = double(m) * double(columns) * double(call.k);
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

void dispatch(const Call& call) {
  check(call.m >= 0 && call.k >= 0 && call.batch >= 0, "matmul: {} rows, {} deep, batch {}: none may be negative",
        call.m, call.k, call.batch);
  const bool wide = call.a.type == GemmType::f64;
  for (const GemmPart& part : call.parts) {
    check(part.n >= 0, "matmul: {} columns must not be negative", part.n);
    check_isa(part.packed ? part.packed->isa() : call.isa);
    check(!part.packed || (part.packed->k() == call.k && part.packed->n() == part.n),
          "matmul: a packed operand of another shape");
    const GemmType b = part.packed ? part.packed->type() : part.b.type;
    check((b == GemmType::f64) == wide && (part.c.type == GemmType::f64) == wide,
          "matmul: f64 does not mix with others");
  }
  if (call.m == 0 || call.batch == 0) return;
  if (call.k == 0 && call.accumulate && !call.epilogue) return;
  if (call.parts[0].encoded)
    run_decoded(call);
  else if (wide)
    run_batch<double>(call);
  else
    run_batch<float>(call);
}

void run_single(int64_t m, int64_t k, const GemmOperand& a, const GemmPart& part, const GemmOptions& options) {
  if (part.n == 0) return;
  const JointEpilogue epilogue = options.epilogue ? as_joint(*options.epilogue) : JointEpilogue{};
  dispatch({m,
            k,
            options.batch,
            a,
            {&part, 1},
            options.alpha,
            options.accumulate,
            false,
            options.epilogue ? &epilogue : nullptr,
            options.isa});
}

}  // namespace

PackedB PackedB::at(const void* memory, int64_t k, int64_t n, GemmType type, CpuIsa isa) {
  PackedB result;
  result.k_ = k;
  result.n_ = n;
  result.type_ = type;
  result.isa_ = isa;
  result.size_bytes_ = packed_b_bytes(k, n, type, isa);
  result.data_ = std::shared_ptr<const void>(std::shared_ptr<const void>(), memory);
  return result;
}

int64_t packed_b_bytes(int64_t k, int64_t n, GemmType type, CpuIsa isa) {
  check(k >= 0 && n >= 0, "pack_b: sizes {} x {} must not be negative", k, n);
  check_isa(isa);
  auto bytes = [&](const auto& core) { return packed_elements(core, k, n, storage_of(type)) * size_of(type); };
  return type == GemmType::f64 ? bytes(core_of<double>(isa)) : bytes(core_of<float>(isa));
}

void pack_b(int64_t k, int64_t n, const GemmOperand& b, void* to, CpuIsa isa) {
  const View view{b.data, b.row_stride, b.col_stride, storage_of(b.type)};
  if (b.type == GemmType::f64)
    pack_whole(core_of<double>(isa), k, n, view, to);
  else
    pack_whole(core_of<float>(isa), k, n, view, to);
}

PackedB pack_b(int64_t k, int64_t n, const GemmOperand& b, CpuIsa isa) {
  void* data = allocate_aligned(packed_b_bytes(k, n, b.type, isa));
  std::shared_ptr<const void> owner(data, [](const void* p) { std::free(const_cast<void*>(p)); });
  pack_b(k, n, b, data, isa);
  PackedB result = PackedB::at(data, k, n, b.type, isa);
  result.data_ = std::move(owner);
  return result;
}

void gemm(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, const GemmOutput& c,
          const GemmOptions& options) {
  run_single(m, k, a, {n, b, nullptr, c}, options);
}

void gemm(int64_t m, const GemmOperand& a, const PackedB& b, const GemmOutput& c, const GemmOptions& options) {
  run_single(m, b.k(), a, {b.n(), {}, &b, c}, options);
}

void gemm_joint(int64_t m, int64_t k, const GemmOperand& a, std::span<const GemmPart> parts,
                const JointOptions& options) {
  if (options.together) {
    check(int64_t(parts.size()) <= kMaxTogether, "matmul: {} products together, at most {}", parts.size(),
          kMaxTogether);
    for (const GemmPart& part : parts)
      check(part.n == parts[0].n, "matmul: products together have {} and {} columns", parts[0].n, part.n);
  }
  for (const GemmPart& part : parts)
    check(part.n == 0 || part.c.data || options.epilogue, "matmul: a product that nothing reads");
  // Parts without columns have nothing to do, but keep their number.
  if (std::all_of(parts.begin(), parts.end(), [](const GemmPart& part) { return part.n == 0; })) return;
  // One by itself needs no place apart from its result for its tiles.
  const bool together = options.together && parts.size() > 1;
  if (parts[0].encoded) {
    for (const GemmPart& part : parts)
      check(part.encoded && part.encoded->format.k == k && part.encoded->format.n == part.n && options.batch == 1 &&
                a.type != GemmType::f64,
            "matmul: encoded parts of other shapes, or beside others");
    if (m > 0 && streams(m, a, parts, options.isa)) return stream_encoded(m, k, a, parts, options);
  }
  dispatch({m, k, options.batch, a, parts, 1, false, together, options.epilogue, options.isa});
}

}  // namespace sinter::runtime
