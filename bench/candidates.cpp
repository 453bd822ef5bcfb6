// The candidates that max-autotune has for a matrix product and a convolution, beside each other in the same rounds.
// A ratio is the default's time by the candidate's: above 1 the candidate is faster.
// Usage: candidates [threads] [filter]
#include <cstdio>
#include <string>
#include <vector>

#include "bench/support/kernel_bench.h"
#include "bench/support/onednn.h"
#include "bench/support/timing.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/device/make_step.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/fused.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

struct Line {
  std::string name;
  const Op* op;
  Attrs attrs;
  std::vector<TensorArg> inputs;
  Tensor out;
};

// A contraction by itself, as the fusion pass makes a kernel of it.
FusedAttrs alone(const Op& op, const std::vector<Type>& types, const Attrs& attrs) {
  Graph body;
  std::vector<Value> inputs;
  for (auto& type : types) inputs.push_back(body.add_input(type));
  Value result = body.add(op, inputs, attrs).result();
  body.set_outputs({result});
  Shape domain = result.type().shape;
  const FusedKind kind = attrs.empty() ? FusedKind::kProduct : FusedKind::kConvolution;
  return {.kind = kind, .body = SubGraph(std::move(body)), .domain = std::move(domain)};
}

void print(const Line& line, double work, const Work* peer) {
  std::vector<const TensorImpl*> inputs;
  std::vector<Type> types;
  StepArguments arguments;
  auto add = [&](const Tensor& t) { arguments.add_address(int64_t(reinterpret_cast<uintptr_t>(t.data_ptr()))); };
  for (auto& input : line.inputs) {
    inputs.push_back(&input.tensor().impl());
    types.push_back({input.dtype(), input.tensor().sizes(), {}});
    add(input.tensor());
  }
  add(line.out);
  const TensorImpl* output = &line.out.impl();
  std::shared_ptr<CompiledStep> step = make_step(alone(*line.op, types, line.attrs), inputs, {&output, 1}, Device());
  step->load();
  auto candidates = step->other_candidates();
  candidates.insert(candidates.begin(), step);
  std::vector<Work> works;
  for (auto& candidate : candidates) works.push_back(repeat([&] { candidate->launch(arguments); }));
  // OpenMP's own threads spin for a while after each call: until they sleep they would take our cores.
  if (peer) works.push_back(*peer);
  const int rounds = work < 4e9 ? 7 : 3;
  auto timings = alternate(works, {.count = rounds, .seconds = 0.004, .settle = peer ? 0.02 : 0});
  std::printf("%-28s sinter %9.1f us %7.1f GFLOP/s", line.name.c_str(), timings[0].best * 1e6,
              work / timings[0].best * 1e-9);
  for (size_t i = 1; i < works.size(); ++i)
    std::printf("   %s %.2f", i < candidates.size() ? candidates[i]->candidate().c_str() : "onednn on OpenMP",
                timings[0].best / timings[i].best);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Wanted wanted = parse_wanted(argc, argv);
  std::printf("threads %d\n", num_threads());
  for (DType dtype : {kFloat32, kBFloat16})
    for (auto [k, n] : {std::pair<int64_t, int64_t>{768, 3072}, {2048, 8192}, {4096, 4096}, {1024, 1024}})
      for (int64_t m : {1, 8, 32, 128, 512, 1024}) {
        std::string name = format("{} {}x{}x{}", dtype, m, n, k);
        if (!wanted(name)) continue;
        Line line{name, find_op("mm"), {}, {}, empty({m, n}, TensorOptions(dtype))};
        Tensor a = randn({m, k}).to(dtype), b = randn({k, n}).to(dtype);
        line.inputs = {a, b};
        Work peer = repeat([&, m = m, n = n, k = k] {
          onednn_sgemm(m, n, k, a.data_ptr<float>(), b.data_ptr<float>(), false, line.out.data_ptr<float>());
        });
        bool has_peer = have_onednn() && dtype == kFloat32 && num_threads() > 1;
        print(line, 2.0 * double(m) * double(n) * double(k), has_peer ? &peer : nullptr);
      }
  struct Layer {
    int64_t images, channels, filters, size, kernel;
  };
  for (auto& l :
       {Layer{1, 64, 64, 56, 3}, Layer{8, 64, 64, 56, 3}, Layer{1, 256, 256, 14, 3}, Layer{1, 256, 64, 56, 1}}) {
    std::string name = format("conv {}x{}x{}x{} {} of {}", l.images, l.channels, l.size, l.size, l.filters, l.kernel);
    if (!wanted(name)) continue;
    ConvolutionAttrs attrs;
    attrs.stride = {1, 1};
    attrs.padding = {l.kernel / 2, l.kernel / 2};
    attrs.dilation = {1, 1};
    Line line{name, find_op("convolution"), attrs, {}, empty({l.images, l.filters, l.size, l.size})};
    line.inputs = {randn({l.images, l.channels, l.size, l.size}), randn({l.filters, l.channels, l.kernel, l.kernel})};
    print(line, 2.0 * double(l.images * l.filters * l.size * l.size * l.channels * l.kernel * l.kernel), nullptr);
  }
}
