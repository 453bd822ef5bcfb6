// Attention alone on a GPU: steps of decoding over a static cache, beside the bytes of keys and values that are shown over the
// bandwidth, and causal prompts, beside the operations that count over the tensor cores' peak. bf16. Launches of a recorded
// graph take turns at several caches, so that none is found in the device's own cache.
// Usage: gpu_attention [--only NAME]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "sinter/runtime/cuda/attention/attention.h"
#include "sinter/runtime/cuda/ceilings.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/tensor/tensor.h"

using namespace sinter;

namespace {

struct Size {
  const char* name;
  int64_t rows, heads, key_heads, queries, cache, shown, size;
};

// Operands as a model's projections and cache have them.
struct Operands {
  Tensor query, key, value, mask, out, workspace;

  explicit Operands(const Size& s) {
    const TensorOptions where = TensorOptions(kBFloat16).device(cuda());
    query = randn({s.rows, s.queries, s.heads, s.size}, where);
    key = randn({s.rows, s.key_heads, s.cache, s.size}, where);
    value = randn({s.rows, s.key_heads, s.cache, s.size}, where);
    out = empty_like(query);
    if (s.queries == 1) mask = (arange(s.cache) < s.shown).to(cuda());
  }

  runtime::CudaAttention problem(const Size& s) {
    runtime::CudaAttention p{.batch = s.rows, .heads = s.heads, .queries = s.queries, .keys = s.cache, .size = s.size,
                             .value_size = s.size, .group = s.heads / s.key_heads, .dtype = kBFloat16};
    p.query = {query.data_ptr(), s.queries * s.heads * s.size, s.size, s.heads * s.size};
    p.key = {key.data_ptr(), s.key_heads * s.cache * s.size, s.cache * s.size, s.size};
    p.value = {value.data_ptr(), s.key_heads * s.cache * s.size, s.cache * s.size, s.size};
    p.out = out.data_ptr();
    p.out_batch_stride = s.queries * s.heads * s.size, p.out_head_stride = s.size, p.out_row_stride = s.heads * s.size;
    p.causal = s.queries > 1;
    p.scale = 0.125f;
    if (mask.defined()) p.mask.data = mask.data_ptr(), p.mask.type = runtime::AttentionMaskType::kBool, p.mask.key_stride = 1;
    if (int64_t bytes = runtime::cuda_attention_workspace(p, runtime::cuda_device_info(0))) {
      workspace = zeros({bytes}, TensorOptions(kUInt8).device(cuda()));
      p.workspace = workspace.data_ptr();
    }
    return p;
  }
};

// Milliseconds of a launch: the best of several replays.
double measure(const Size& s) {
  const double bytes = double(s.rows * s.key_heads * s.shown * s.size) * 4;
  std::vector<Operands> all;
  for (int i = 0; i < std::clamp(int(2e8 / bytes), 1, 16); ++i) all.emplace_back(s);
  std::vector<runtime::CudaAttention> problems;
  for (auto& x : all) problems.push_back(x.problem(s));
  const int launches = s.queries > 1 ? 4 : 32;
  auto queue = [&] {
    for (int i = 0; i < launches; ++i) runtime::cuda_attention(0, problems[size_t(i) % problems.size()]);
  };
  queue();
  runtime::cuda_synchronize(0);
  auto graph = runtime::CudaGraph::capture(0, queue);
  double best = 1e9;
  for (int repeat = 0; repeat < 20; ++repeat) {
    runtime::CudaEvent begin(0), end(0);
    begin.record(runtime::cuda_stream(0));
    graph->launch(runtime::cuda_stream(0));
    end.record(runtime::cuda_stream(0));
    runtime::cuda_synchronize(0);
    best = std::min(best, double(end.milliseconds_since(begin)) / launches);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 2 && !std::strcmp(argv[1], "--only") ? argv[2] : "";
  const Size sizes[] = {
      {"decode", 1, 32, 8, 1, 1024, 513, 64},      {"decode", 8, 32, 8, 1, 1024, 513, 64},
      {"decode", 32, 32, 8, 1, 1024, 513, 64},     {"decode", 64, 32, 8, 1, 1024, 513, 64},
      {"decode", 1, 32, 8, 1, 4608, 4097, 64},     {"decode", 1, 32, 8, 1, 16896, 16385, 64},
      {"decode", 8, 32, 8, 1, 4608, 4097, 64},     {"decode", 1, 32, 8, 1, 1024, 513, 128},
      {"decode", 8, 32, 8, 1, 1024, 513, 128},     {"decode", 32, 32, 8, 1, 1024, 513, 128},
      {"decode", 1, 32, 8, 1, 16896, 16385, 128},  {"decode", 8, 12, 12, 1, 1024, 513, 64},
      {"prompt", 1, 32, 8, 512, 512, 512, 64},     {"prompt", 8, 32, 8, 512, 512, 512, 64},
      {"prompt", 1, 32, 8, 4096, 4096, 4096, 64},  {"prompt", 1, 32, 8, 16384, 16384, 16384, 64},
      {"prompt", 1, 32, 8, 512, 512, 512, 128},    {"prompt", 1, 32, 8, 4096, 4096, 4096, 128},
      {"prompt", 1, 32, 8, 16384, 16384, 16384, 128},
  };
  const auto ceilings = runtime::cuda_ceilings(0);
  std::printf("%-8s %5s %7s %7s %5s %10s %10s %6s  %s\n", "", "rows", "queries", "keys", "size", "us", "GB/s, TF/s", "of it",
              "kernel");
  for (auto& s : sizes) {
    if (!only.empty() && only != s.name) continue;
    const double ms = measure(s);
    const double bytes = double(s.rows * s.key_heads * s.shown * s.size) * 4;
    const double flops = 2.0 * double(s.rows * s.heads * s.queries) * double(s.queries) * double(s.size);
    const bool prompt = s.queries > 1;
    const double rate = prompt ? flops / ms * 1e-9 : bytes / ms * 1e-6;
    Operands x(s);
    std::printf("%-8s %5lld %7lld %7lld %5lld %10.2f %10.0f %5.0f%%  %s\n", s.name, (long long)s.rows, (long long)s.queries,
                (long long)s.shown, (long long)s.size, ms * 1e3, rate,
                100 * rate / (prompt ? ceilings.flops * 1e-12 : ceilings.tiers.back().read * 1e-9),
                runtime::cuda_attention_sources(x.problem(s), runtime::cuda_device_info(0))[0].name.c_str());
  }
}
