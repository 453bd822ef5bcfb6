// What compile() makes of programs as people write them: eager and compiled times, the kernels of the plan, the bytes
// and operations that no program can avoid and how near to the machine's ceilings they are done.
// Usage: fusion [--json] [--quick] [--plans] [--threads N] [PROGRAM ...]; --list names them; --serve answers a driver
// that takes turns with another library: a line `PROGRAM SECONDS` on standard input times one round of each kind.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "bench/support/ceilings.h"
#include "bench/support/programs.h"
#include "bench/support/report.h"
#include "bench/support/serve.h"
#include "bench/support/timing.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

// A program on its data. Times of the first calls are seconds.
struct Case {
  Work eager, compiled;
  double bytes = 0, flops = 0;  // that must be moved and done
  double eager_first = 0, compiled_first = 0;
  int kernels = 0;   // of the forward program's plan
  double error = 0;  // the largest difference between the two, relative to the largest value
  std::string plan;
};

struct Floor {
  double bytes = 0, flops = 0;
};

double bytes_of(const TensorList& tensors) {
  double bytes = 0;
  for (auto& t : tensors) bytes += double(t.numel()) * double(item_size(t.dtype()));
  return bytes;
}

double difference(const Tensor& a, const Tensor& b) {
  double scale = amax(sinter::abs(a)).item<double>(), d = amax(sinter::abs(sub(a, b))).item<double>();
  return d == 0 ? 0 : d / scale;
}

// Everything in a plan that runs.
int kernels_in(const Explanation& explanation) {
  int count = 0;
  for (auto& program : explanation.programs)
    for (auto& plan : program.plans) {
      std::istringstream lines(plan);
      for (std::string line; std::getline(lines, line);)
        for (const char* kind : {"pointwise ", "kernel ", "opaque ", "fused ", "write ", "copy "})
          count += line.rfind(kind, 0) == 0;
    }
  return count;
}

// What a case tells of the compiled function, how far its results are from the expected ones, and what it must do at least.
void describe(Case& out, const capture::Function& function, const TensorList& got, const TensorList& expected,
              const Floor& floor) {
  auto explanation = capture::explain(function);
  out.kernels = kernels_in(explanation);
  for (auto& program : explanation.programs)
    for (auto& plan : program.plans) out.plan += plan;
  for (size_t i = 0; i < expected.size(); ++i) out.error = std::max(out.error, difference(expected[i], got[i]));
  out.bytes = floor.bytes;
  out.flops = floor.flops;
}

// The program f over its inputs, unrecorded.
template <class F>
Case forward(F f, const TensorList& inputs, const Floor& floor) {
  auto fast = compile(f);
  Case out;
  NoGradGuard no_grad;
  TensorList expected, got;
  out.eager_first = timed([&] { expected = f(inputs); });
  out.compiled_first = timed([&] { got = fast(inputs); });
  describe(out, fast.function(), got, expected, floor);
  out.eager = repeat([=] {
    NoGradGuard guard;
    f(inputs);
  });
  out.compiled = repeat([=] {
    NoGradGuard guard;
    fast(inputs);
  });
  return out;
}

// The same with the gradients of the leaves, of its first result.
template <class F>
Case training(F f, const TensorList& inputs, const TensorList& leaves, const Floor& floor) {
  for (auto& leaf : leaves) leaf.requires_grad_();
  auto fast = compile(f);
  Case out;
  Tensor seed = ones_like(f(inputs)[0]).detach();
  auto step = [=](const auto& program) {
    for (auto& leaf : leaves) leaf.set_grad({});
    program(inputs)[0].backward(seed);
  };
  auto gradients = [&] {
    TensorList out;
    for (auto& leaf : leaves) out.push_back(leaf.grad());
    return out;
  };
  out.eager_first = timed([&] { step(f); });
  auto expected = gradients();
  out.compiled_first = timed([&] { step(fast); });
  auto got = gradients();
  describe(out, fast.function(), got, expected, floor);
  out.eager = repeat([=] { step(f); });
  out.compiled = repeat([=] { step(fast); });
  return out;
}

// --- the programs beside those of support/programs.h; bench/peers/torch_compile.py has the same, by the same names

TensorList pointwise_program(const TensorList& in) {
  return {((in[0] * 1.5 + in[1]).sigmoid() - 0.25).relu() * in[1]};
}

TensorList transposed_add_program(const TensorList& in) { return {in[0] + in[1].transpose(0, 1)}; }

constexpr int64_t kWidth = 256, kLayers = 4;

TensorList gpt_parameters() {
  TensorList out;
  auto weight = [&](int64_t rows, int64_t columns) {
    out.push_back(randn({rows, columns}) * 0.05);
    out.push_back(zeros({rows}));
  };
  auto norm = [&] {
    out.push_back(ones({kWidth}));
    out.push_back(zeros({kWidth}));
  };
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    norm();
    weight(3 * kWidth, kWidth);
    weight(kWidth, kWidth);
    norm();
    weight(4 * kWidth, kWidth);
    weight(kWidth, 4 * kWidth);
  }
  return out;
}

// in[0] is [batch, length, width]; the rest are gpt_parameters().
TensorList gpt_program(const TensorList& in) {
  Tensor x = in[0];
  for (size_t at = 1; at < in.size(); at += 12) {
    auto p = [&](size_t i) { return in[at + i]; };
    x = programs::attention_block({x, p(0), p(1), p(2), p(3), p(4), p(5)})[0];
    Tensor h = gelu(linear(layer_norm(x, {kWidth}, p(6), p(7)), p(8), p(9)), "tanh");
    x = x + linear(h, p(10), p(11));
  }
  return {x};
}

Case gelu_mlp(int64_t rows, bool train) {
  TensorList in{randn({rows, 1024}), randn({4096, 1024}) * 0.03, zeros({4096}), randn({1024, 4096}) * 0.03,
                zeros({1024})};
  Floor floor{bytes_of(in) + double(rows) * 4096, double(rows) * 1024 * 4096 * 4};
  if (!train) return forward(programs::gelu_mlp, in, floor);
  return training(programs::gelu_mlp, in, in, {2 * floor.bytes, 3 * floor.flops});
}

Case gpt(bool train) {
  TensorList in{randn({1, 128, kWidth})};
  for (auto& t : gpt_parameters()) in.push_back(t);
  const double rows = 128, weights = 12 * kWidth * kWidth, scores = 2 * 128 * kWidth;
  Floor floor{bytes_of(in) + bytes_of({in[0]}), kLayers * 2 * rows * (weights + scores)};
  if (!train) return forward(gpt_program, in, floor);
  return training(gpt_program, in, in, {2 * floor.bytes, 3 * floor.flops});
}

Case encoder_layer(bool train) {
  nn::TransformerEncoderLayer layer(
      nn::TransformerEncoderLayerOptions(256, 8).dim_feedforward(1024).batch_first(true).activation("gelu"));
  layer->eval();
  TensorList in{randn({2, 128, 256})}, parameters = layer->parameters();
  auto f = [layer](const TensorList& x) -> TensorList { return {layer(x[0])}; };
  Floor floor{bytes_of(parameters) + 2 * bytes_of(in), 2.0 * 256 * (12 * 256 * 256 + 2 * 128 * 256)};
  if (!train) return forward(f, in, floor);
  parameters.push_back(in[0]);
  return training(f, in, parameters, {2 * floor.bytes, 3 * floor.flops});
}

Case bn_relu_conv() {
  nn::BatchNorm2d norm(64);
  nn::Conv2d conv(nn::Conv2dOptions(64, 64, 3).padding(1).bias(false));
  norm->eval();
  TensorList in{randn({4, 64, 56, 56})};
  auto f = [norm, conv](const TensorList& x) -> TensorList { return {conv(relu(norm(x[0])))}; };
  return forward(f, in, {2 * bytes_of(in), 2.0 * 4 * 56 * 56 * 64 * 64 * 9});
}

Case rows_program(programs::Program f, size_t weights, bool train) {
  TensorList in{randn({2048, 1024})};
  for (size_t i = 0; i < weights; ++i) in.push_back(randn({1024}));
  double array = bytes_of({in[0]});
  if (!train) return forward(f, in, {2 * array, 0});
  // Forward reads and writes; backward reads the gradient and what the forward kept, and writes.
  return training(f, in, in, {5 * array, 0});
}

Case cross_entropy_case(bool train) {
  TensorList in{randn({1024, 8192}), randint(8192, {1024})};
  double array = bytes_of({in[0]});
  if (!train) return forward(programs::cross_entropy, in, {array, 0});
  return training(programs::cross_entropy, in, {in[0]}, {3 * array, 0});
}

Case rms_norm_residual(bool train) {
  TensorList in{randn({2048, 1024}), randn({2048, 1024}), randn({1024})};
  double array = bytes_of({in[0]});
  if (!train) return forward(programs::rms_norm_residual, in, {4 * array, 0});
  return training(programs::rms_norm_residual, in, in, {8 * array, 0});
}

Case swiglu(bool train) {
  TensorList in{randn({64, 1024}), randn({2816, 1024}) * 0.03, randn({2816, 1024}) * 0.03, randn({1024, 2816}) * 0.03};
  Floor floor{bytes_of(in) + 64 * 4096, 64.0 * 1024 * 2816 * 6};
  if (!train) return forward(programs::swiglu, in, floor);
  return training(programs::swiglu, in, in, {2 * floor.bytes, 3 * floor.flops});
}

Case rotary() {
  TensorList in{randn({2, 16, 512, 64}), randn({512, 64}), randn({512, 64})};
  return forward(programs::rotary, in, {2 * bytes_of({in[0]}), 0});
}

Case pointwise(bool train) {
  TensorList in{randn({2048, 2048}), randn({2048, 2048})};
  double array = bytes_of({in[0]});
  if (!train) return forward(pointwise_program, in, {3 * array, 0});
  return training(pointwise_program, in, in, {8 * array, 0});
}

Case transposed_add() {
  TensorList in{randn({2048, 2048}), randn({2048, 2048})};
  return forward(transposed_add_program, in, {3 * bytes_of({in[0]}), 0});
}

Case adamw() {
  TensorList in{randn({1 << 20}), randn({1 << 20}), zeros({1 << 20}), zeros({1 << 20})};
  // Eager and compiled write the same tensors, one after the other: their results are not compared.
  Case out = forward(programs::adamw, in, {7 * bytes_of({in[0]}), 0});
  out.error = 0;
  return out;
}

struct Entry {
  const char* name;
  Case (*make)();
};
const Entry kPrograms[] = {
    {"softmax", [] { return rows_program(programs::softmax, 0, false); }},
    {"cross_entropy", [] { return cross_entropy_case(false); }},
    {"layer_norm", [] { return rows_program(programs::layer_norm, 2, false); }},
    {"rms_norm_residual", [] { return rms_norm_residual(false); }},
    {"gelu_mlp_1", [] { return gelu_mlp(1, false); }},
    {"gelu_mlp_16", [] { return gelu_mlp(16, false); }},
    {"gelu_mlp_256", [] { return gelu_mlp(256, false); }},
    {"swiglu_64", [] { return swiglu(false); }},
    {"rotary", rotary},
    {"encoder_layer", [] { return encoder_layer(false); }},
    {"bn_relu_conv", bn_relu_conv},
    {"adamw_1m", adamw},
    {"pointwise_6", [] { return pointwise(false); }},
    {"transposed_add", transposed_add},
    {"gpt_4_layers", [] { return gpt(false); }},
    {"softmax_train", [] { return rows_program(programs::softmax, 0, true); }},
    {"cross_entropy_train", [] { return cross_entropy_case(true); }},
    {"layer_norm_train", [] { return rows_program(programs::layer_norm, 2, true); }},
    {"rms_norm_residual_train", [] { return rms_norm_residual(true); }},
    {"gelu_mlp_256_train", [] { return gelu_mlp(256, true); }},
    {"swiglu_64_train", [] { return swiglu(true); }},
    {"pointwise_6_train", [] { return pointwise(true); }},
    {"encoder_layer_train", [] { return encoder_layer(true); }},
    {"gpt_4_layers_train", [] { return gpt(true); }},
};

Case make(const std::string& name) {
  for (auto& entry : kPrograms)
    if (name == entry.name) {
      manual_seed(1);
      return entry.make();
    }
  throw Error(format("fusion: no program '{}'; --list names them", name));
}

Json facts(const std::string& name, const Case& c) {
  return {{"program", name},
          {"bytes", c.bytes},
          {"flops", c.flops},
          {"kernels", c.kernels},
          {"eager_first_s", c.eager_first},
          {"compiled_first_s", c.compiled_first},
          {"error", c.error},
          {"wrong", !(c.error < 1e-3)}};
}

// --- this library alone

void table(Report& report, const std::vector<std::string>& names, bool quick) {
  report.section("fusion", "Programs, eager and compiled, beside the ceilings measured in the same rounds",
                 {{"program", "program"},
                  {"kernels", "kernels"},
                  {"eager_us", "eager us", 1},
                  {"compiled_us", "compiled us", 1},
                  {"speedup", "eager / compiled", 2},
                  {"mib", "floor MiB", 1},
                  {"of_bandwidth", "of bandwidth", 0, true},
                  {"of_fma", "of FMA", 0, true},
                  {"compiled_first_ms", "first call ms", 1}});
  Rounds rounds{.count = quick ? 3 : 9, .seconds = quick ? 0.005 : 0.02};
  for (auto& name : names) {
    Case c = make(name);
    // Streams of as many bytes as the program must move, so that they live in the same caches.
    StreamCeiling stream(std::max<int64_t>(4096, int64_t(c.bytes / 2)) / 4096 * 4096);
    std::vector<Work> works{c.eager, c.compiled, stream.work(Traffic::kCopy, false)};
    if (StreamCeiling::can_stream()) works.push_back(stream.work(Traffic::kCopy, true));
    auto fma = fma_ceiling();
    if (fma) works.push_back(fma->work);
    auto t = alternate(works, rounds);
    double copy = t[2].best;
    if (StreamCeiling::can_stream()) copy = std::min(copy, t[3].best);
    Json row = facts(name, c);
    row["eager_us"] = t[0].best * 1e6;
    row["compiled_us"] = t[1].best * 1e6;
    row["speedup"] = t[0].best / t[1].best;
    row["mib"] = c.bytes / double(1 << 20);
    row["of_bandwidth"] = c.bytes / t[1].best / (double(stream.bytes(Traffic::kCopy)) / copy);
    if (fma && c.flops > 0) row["of_fma"] = c.flops / t[1].best / (fma->flops / t.back().best);
    row["compiled_first_ms"] = c.compiled_first * 1e3;
    row["deviation"] = t[1].deviation;
    report.row(row);
  }
  report.note("Best rounds. Floor: operands read once, results written once (training: what the gradients need too).");
  report.note("Bandwidth: a copy loop that moves the floor's bytes. Kernels: of the forward program.");
}

// --- taking turns with another library

int serve_programs() {
  return serve_cases(make, [](const std::string& name, const Case& c, double least) {
    Json reply = facts(name, c);
    reply["eager_s"] = summarize(timed_calls(c.eager, least)).best;
    reply["compiled_s"] = summarize(timed_calls(c.compiled, least)).best;
    return reply;
  });
}

}  // namespace

int main(int argc, char** argv) try {
  bool json = false, quick = false, plans = false;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--serve") return serve_programs();
    if (text == "--list") {
      for (auto& entry : kPrograms) std::puts(entry.name);
      return 0;
    }
    if (text == "--json")
      json = true;
    else if (text == "--quick")
      quick = true;
    else if (text == "--plans")
      plans = true;
    else if (text == "--threads" && i + 1 < argc)
      set_num_threads(std::atoi(argv[++i]));
    else
      names.push_back(text);
  }
  if (names.empty())
    for (auto& entry : kPrograms) names.push_back(entry.name);
  if (plans) {
    for (auto& name : names) std::printf("%s\n%s\n", name.c_str(), make(name).plan.c_str());
    return 0;
  }
  double start = seconds();
  Report report(json);
  report.fact("threads", num_threads());
  report.fact("target", runtime::host_target().name);
  if (auto cores = measure_free_cores()) report.fact("free_cores", std::round(*cores * 100) / 100);
  table(report, names, quick);
  report.finish(seconds() - start);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
