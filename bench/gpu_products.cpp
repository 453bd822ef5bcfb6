// Skinny products alone on a GPU: every way that the code generator offers for the products of a Llama's step, with the bytes
// of the matrix over the bandwidth as floor. bf16. Launches of a recorded graph take turns at several matrices, so that none
// is found in the device's own cache, and each is allowed to start while the one before it ends.
// Usage: gpu_products [ROWS ...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sinter/base/format.h"
#include "sinter/codegen/cuda/gemv.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/cuda/ceilings.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/stream.h"

using namespace sinter;
using namespace sinter::codegen;

namespace {

struct Product {
  const char* name;
  int64_t k;
  std::vector<int64_t> widths;
  bool together;
};

GemvSpec spec_of(const Product& p, int rows) {
  GemvSpec spec{.name = "product", .m = rows, .k = p.k, .slots = 8, .together = p.together, .a_slot = 0, .a_stride = {.value = p.k}};
  for (int64_t n : p.widths) {
    const int i = int(spec.parts.size());
    spec.parts.push_back({.n = n, .b_slot = 1 + i, .b_stride = {.value = p.k}, .c_slot = 4 + i, .c_stride = {.value = n}});
  }
  return spec;
}

// What such launches take one after the other, in microseconds.
double measure(const runtime::CudaFunction& function, const GemvText& text, const std::vector<StepArguments>& slots) {
  constexpr int kLaunches = 48;
  runtime::CudaGrid grid{.blocks = {text.blocks, 1, 1}, .threads = {text.threads, 1, 1}, .shared_bytes = text.shared_bytes,
                         .overlaps_previous = true};
  auto queue = [&] {
    for (int i = 0; i < kLaunches; ++i) cuda_launch(function, cuda(), grid, 0, slots[size_t(i) % slots.size()]);
  };
  queue();
  runtime::cuda_synchronize(0);
  auto graph = runtime::CudaGraph::capture(0, queue);
  double best = 1e9;
  for (int repeat = 0; repeat < 6; ++repeat) {
    runtime::CudaEvent begin(0), end(0);
    begin.record(runtime::cuda_stream(0));
    graph->launch(runtime::cuda_stream(0));
    end.record(runtime::cuda_stream(0));
    runtime::cuda_synchronize(0);
    best = std::min(best, end.milliseconds_since(begin) * 1e3 / kLaunches);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> rows;
  for (int i = 1; i < argc; ++i) rows.push_back(std::atoi(argv[i]));
  if (rows.empty()) rows = {1, 2, 8, 16, 32, 64};
  const Product products[] = {
      {"1B q, k, v", 2048, {2048, 512, 512}, false}, {"1B output", 2048, {2048}, true},
      {"1B gate, up", 2048, {8192, 8192}, true},     {"1B down", 8192, {2048}, true},
      {"1B head", 2048, {128256}, true},             {"8B q, k, v", 4096, {4096, 1024, 1024}, false},
      {"8B gate, up", 4096, {14336, 14336}, true},   {"8B down", 14336, {4096}, true},
  };
  auto& info = runtime::cuda_device_info(0);
  const double bandwidth = runtime::cuda_ceilings(0).tiers.back().read;
  const TensorOptions where = TensorOptions(kBFloat16).device(cuda());
  for (auto& p : products) {
    int64_t columns = 0;
    for (int64_t n : p.widths) columns += n;
    const double bytes = double(p.k * columns) * 2;
    const int sets = std::clamp(int(3e8 / bytes) + 1, 2, 16);
    for (int m : rows) {
      const GemvSpec base = spec_of(p, m);
      std::vector<GemvSpec> specs;
      std::vector<GemvText> texts;
      std::vector<runtime::CudaSource> sources;
      for (auto& tuning : gemv_candidates(base, {.multiprocessors = info.multiprocessors, .clusters = info.major >= 9})) {
        GemvSpec spec = base;
        spec.tuning = tuning;
        spec.name = format("product_{}_{}_{}_{}", p.k, columns, m, specs.size());
        texts.push_back(emit_gemv(spec));
        sources.push_back({spec.name, texts.back().text, int(texts.back().shared_bytes)});
        specs.push_back(spec);
      }
      auto functions = runtime::load_cuda(sources, cuda_prelude() + gemv_prelude(), 0);
      std::vector<Tensor> kept;
      std::vector<StepArguments> slots;
      auto keep = [&](Tensor t) {
        kept.push_back(t);
        return int64_t(reinterpret_cast<uintptr_t>(t.data_ptr()));
      };
      for (int i = 0; i < sets; ++i) {
        std::vector<int64_t> own(8, 0);
        own[0] = keep(randn({m, p.k}, where));
        for (size_t j = 0; j < p.widths.size(); ++j) {
          own[1 + j] = keep(randn({p.widths[j], p.k}, where));
          own[4 + j] = keep(empty({m, p.widths[j]}, where));
        }
        slots.emplace_back();
        for (int64_t address : own) slots.back().add_address(address);
      }
      std::vector<std::pair<double, size_t>> times;
      for (size_t i = 0; i < specs.size(); ++i) times.push_back({measure(functions[i], texts[i], slots), i});
      const double first = times[0].first;
      std::sort(times.begin(), times.end());
      std::printf("%-12s %3d rows: floor %6.2f us, default %7.2f (%3.0f%%) %s\n", p.name, m, bytes / bandwidth * 1e6, first,
                  100 * bytes / bandwidth * 1e6 / first, to_string(specs[0].tuning).c_str());
      for (size_t i = 0; i < times.size() && i < 3; ++i)
        std::printf("   %7.2f us  #%zu %s, %u bytes, %d registers\n", times[i].first, times[i].second,
                    to_string(specs[times[i].second].tuning).c_str(), texts[times[i].second].shared_bytes,
                    functions[times[i].second].registers());
    }
  }
}
