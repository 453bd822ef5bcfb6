// Convolutions on the CPU: layers of ResNet-50 and MobileNet, one image, beside oneDNN on row-major tensors and on
// tensors in its own layouts; then the gradients of the input and the weight, and pools. Usage: convolution [threads]
// [filter]
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/support/ceilings.h"
#include "bench/support/kernel_bench.h"
#include "bench/support/onednn.h"
#include "bench/support/timing.h"
#include "sinter/base/format.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/conv/conv.h"
#include "sinter/runtime/cpu/conv/pool.h"

using namespace sinter;
using namespace sinter::bench;
using namespace sinter::runtime;

namespace {

ConvShape shape_of(const ConvolutionShape& s) {
  ConvShape out;
  out.images = s.n;
  out.groups = s.groups;
  out.channels = s.c / s.groups;
  out.filters = s.filters / s.groups;
  const int64_t in[2] = {s.h, s.w};
  for (int d = 0; d < 2; ++d) {
    out.in[d + 1] = in[d];
    out.kernel[d + 1] = s.kernel;
    out.stride[d + 1] = s.stride;
    out.padding[d + 1] = s.padding;
    out.out[d + 1] = (in[d] + 2 * s.padding - s.kernel) / s.stride + 1;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Wanted wanted = parse_wanted(argc, argv);
  const double ceiling = measure_fma_ceiling() * 1e-9;
  std::printf("threads %d, FMA ceiling %.1f GFLOP/s\n", num_threads(), ceiling);
  std::printf("%-34s %9s %8s %5s %9s %6s %9s %6s %9s %9s\n", "layer", "us", "GFLOP/s", "", "oneDNN", "ratio", "its own",
              "ratio", "d input", "d weight");
  const ConvolutionShape layers[] = {
      {1, 3, 224, 224, 64, 7, 3, 2},       {1, 64, 56, 56, 64, 1, 0},           {1, 64, 56, 56, 64, 3, 1},
      {1, 64, 56, 56, 256, 1, 0},          {1, 256, 56, 56, 64, 1, 0},          {1, 256, 56, 56, 128, 1, 0},
      {1, 128, 56, 56, 128, 3, 1, 2},      {1, 128, 28, 28, 512, 1, 0},         {1, 256, 56, 56, 512, 1, 0, 2},
      {1, 512, 28, 28, 128, 1, 0},         {1, 128, 28, 28, 128, 3, 1},         {1, 256, 28, 28, 256, 3, 1, 2},
      {1, 256, 14, 14, 1024, 1, 0},        {1, 1024, 14, 14, 256, 1, 0},        {1, 256, 14, 14, 256, 3, 1},
      {1, 512, 14, 14, 512, 3, 1, 2},      {1, 512, 7, 7, 2048, 1, 0},          {1, 2048, 7, 7, 512, 1, 0},
      {1, 512, 7, 7, 512, 3, 1},           {1, 3, 224, 224, 768, 16, 0, 16},    {1, 32, 112, 112, 32, 3, 1, 1, 32},
      {1, 96, 112, 112, 96, 3, 1, 2, 96},  {1, 144, 56, 56, 144, 3, 1, 1, 144}, {1, 144, 56, 56, 144, 3, 1, 2, 144},
      {1, 384, 14, 14, 384, 3, 1, 1, 384}, {1, 960, 7, 7, 960, 3, 1, 1, 960}};
  for (const ConvolutionShape& l : layers) {
    const ConvShape s = shape_of(l);
    const std::string name = format("{}x{}x{} -> {} {}x{} / {}{}", l.c, l.h, l.w, l.filters, l.kernel, l.kernel,
                                    l.stride, l.groups > 1 ? " depthwise" : "");
    if (!wanted(name)) continue;
    const int64_t ins = l.h * l.w, outs = s.out[1] * s.out[2], taps = l.kernel * l.kernel;
    auto x = few_bits(l.n * l.c * ins), w = few_bits(l.filters * s.channels * taps), g = few_bits(l.n * l.filters * outs);
    auto y = g, peer = g, dx = x, dw = w;
    const ConvOperand xs{x.data(), {l.c * ins, ins, ins, l.w, 1}},
        gs{g.data(), {l.filters * outs, outs, outs, s.out[2], 1}};
    std::vector<Work> works{
        repeat([&] { convolution(s, xs, w.data(), GemmType::f32, y.data(), GemmType::f32); }),
        repeat([&] { convolution_transposed(s, gs, w.data(), GemmType::f32, dx.data(), GemmType::f32); }),
        repeat([&] { convolution_weight_grad(s, xs, gs, dw.data(), GemmType::f32); })};
    for (bool own : {false, true})
      if (auto work = onednn_convolution(l, x.data(), w.data(), peer.data(), own)) works.push_back(*work);
    const auto t = alternate(works, {.count = 5, .seconds = 0.004});
    const double flops = 2.0 * double(outs * l.filters * s.channels * taps), best = t[0].best,
                 rate = flops / best * 1e-9;
    std::printf("%-34s %9.1f %8.1f %4.0f%%", name.c_str(), best * 1e6, rate, 100 * rate / ceiling);
    for (size_t i = 3; i < 5; ++i)
      if (i < t.size())
        std::printf(" %9.1f %6.2f", t[i].best * 1e6, t[i].best / best);
      else
        std::printf(" %9s %6s", "-", "-");
    std::printf(" %9.1f %9.1f", t[1].best * 1e6, t[2].best * 1e6);
    double error = 0;
    for (size_t i = 0; t.size() > 3 && i < y.size(); ++i) error = std::max(error, double(std::abs(y[i] - peer[i])));
    std::printf("%s\n", error > 1e-2 ? "  WRONG" : "");
    std::fflush(stdout);
  }
  if (!wanted.text.empty()) return 0;
  std::printf("\n%-34s %9s %9s\n", "pool of 64x112x112, 3x3 / 2", "us", "GB/s");
  const ConvShape s = shape_of({64, 1, 112, 112, 1, 3, 1, 2});
  auto x = few_bits(64 * 112 * 112), y = few_bits(64 * 56 * 56);
  std::vector<int64_t> places(y.size());
  const char* names[] = {"max_pool", "max_pool_indices", "window_sum", "window_sum_transposed"};
  const auto t = alternate({repeat([&] { max_pool(s, x.data(), GemmType::f32, y.data()); }),
                            repeat([&] { max_pool_indices(s, x.data(), GemmType::f32, places.data()); }),
                            repeat([&] { window_sum(s, x.data(), GemmType::f32, y.data()); }),
                            repeat([&] { window_sum_transposed(s, y.data(), GemmType::f32, x.data()); })},
                           {.count = 5});
  for (size_t i = 0; i < 4; ++i)
    std::printf("%-34s %9.1f %9.1f\n", names[i], t[i].best * 1e6,
                double((x.size() + y.size() * (i == 1 ? 2 : 1)) * 4) / t[i].best * 1e-9);
}
