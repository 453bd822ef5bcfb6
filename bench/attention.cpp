// Attention as one kernel beside its body of matrix products and softmax (eager, and compiled with fusion), the two
// matrix products alone, and the machine's ceilings. Rounds alternate, the best of each counts.
// Usage: attention [threads]
#include <cstdio>

#include "bench/support/ceilings.h"
#include "bench/support/kernel_bench.h"
#include "bench/support/timing.h"
#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/executable.h"
#include "sinter/graph/trace.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/view.h"
#include "sinter/passes/pipeline.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

struct Size {
  int64_t batch, heads, queries, keys, size;
  bool causal;
  DType dtype = kFloat32;
};

// The body as a program of fused kernels.
std::shared_ptr<Executable> compiled_body(const TensorList& inputs, bool causal) {
  std::vector<Type> types;
  for (auto& t : inputs) types.push_back({t.dtype(), t.sizes(), t.device()});
  Graph graph = trace(
      [&](const TensorList& x) { return TensorList{scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, causal)}; },
      types);
  return compile_program({.graph = run_passes(std::move(graph)), .symbols = {}, .writes = {}, .name = "body"});
}

}  // namespace

int main(int argc, char** argv) {
  parse_wanted(argc, argv);
  std::printf("threads %d, FMA ceiling %.1f GFLOP/s, read %.1f GB/s\n", num_threads(), measure_fma_ceiling() * 1e-9,
              measure_read_bandwidth() * 1e-9);
  std::printf("%-38s %10s %9s %7s %12s %12s %12s\n", "query, keys", "us", "GFLOP/s", "GB/s", "x body", "x compiled",
              "x products");
  const Size sizes[] = {{1, 8, 512, 512, 64, false},        {1, 8, 512, 512, 64, true},
                        {4, 8, 128, 128, 64, false},        {4, 8, 128, 128, 64, true},
                        {1, 8, 1, 2048, 64, false},         {1, 8, 1, 16384, 64, false},
                        {1, 8, 8, 2048, 64, false},         {1, 8, 512, 512, 64, false, kBFloat16},
                        {1, 8, 1, 2048, 64, false, kBFloat16}};
  const Op& op = *find_op("scaled_dot_product_attention");
  for (auto& s : sizes) {
    auto make = [&](int64_t rows, int64_t size) { return randn({s.batch, s.heads, rows, size}).to(s.dtype); };
    Tensor q = make(s.queries, s.size), k = make(s.keys, s.size), v = make(s.keys, s.size);
    Tensor turned = k.transpose(-2, -1), scores = make(s.queries, s.keys);
    Attrs attrs(AttentionAttrs{.is_causal = s.causal, .scale = {}});
    std::vector<TensorArg> operands = {q, k, v};
    auto program = compiled_body({q, k, v}, s.causal);
    TensorList results(1);
    auto timings = alternate({repeat([&] { scaled_dot_product_attention(q, k, v, {}, 0, s.causal); }),
                              repeat([&] { op.decompose(operands, attrs); }),
                              repeat([&] { program->run(operands, {}, results); }),
                              repeat([&] {
                                matmul(q, turned);
                                matmul(scores, v);
                              })},
                             {.count = 9, .seconds = 0.01});
    const double best = timings[0].best, pairs = double(s.batch * s.heads * s.queries * s.keys) * (s.causal ? 0.5 : 1);
    const double bytes = 2.0 * double(s.batch * s.heads * s.keys * s.size * item_size(s.dtype));
    std::printf("%-38s %10.1f %9.1f %7.1f %12.2f %12.2f %12.2f\n",
                format("{}{}, {}{}", s.dtype, q.sizes(), s.keys, s.causal ? " causal" : "").c_str(), best * 1e6,
                4 * pairs * double(s.size) / best * 1e-9, bytes / best * 1e-9, timings[1].best / best,
                timings[2].best / best, timings[3].best / best);
    std::fflush(stdout);
  }
}
