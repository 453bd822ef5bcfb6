// `sinter bench --model FILE.pt2` and FILE.onnx.
#include <algorithm>
#include <chrono>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/capture/compile.h"
#include "sinter/cli/bench.h"
#include "sinter/cli/bench_check.h"
#include "sinter/cli/exported.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWarmups = 3;

// Numbers in the place of zeros, which many results would hide in. Integers may be places in a table: they stay zeros.
TensorList drawn_inputs(const ExportedModel& model, Device device, uint64_t seed) {
  manual_seed(seed);
  TensorList out;
  for (auto& input : model->example_inputs()) {
    Tensor drawn = is_floating(input.dtype()) ? randn(input.sizes()).to(input.dtype()) : input;
    out.push_back(drawn.to(device));
  }
  return out;
}

void check_results(const std::string& mode, const TensorList& have, const TensorList& want, double tolerance) {
  for (size_t i = 0; i < have.size(); ++i)
    if (have[i].defined() && is_floating(have[i].dtype()) && have[i].numel() > 0)
      check_close(mode, have[i], want[i], tolerance);
}

BenchRow measure_exported(const ExportedModel& model, const std::string& mode, const TensorList& inputs,
                          const BenchOptions& options, const std::function<void(const TensorList&)>& check_first) {
  const BenchMode chosen(mode);
  const Device device = parse_device(options.device);
  auto compiled = compile(model, {.mode = chosen.mode});
  TensorList results;
  auto timed = [&] {
    const auto begin = Clock::now();
    results = chosen.eager ? model->forward(inputs) : compiled(inputs);
    // A device may still be at work when the call returns.
    for (auto& result : results)
      if (result.defined() && !result.device().is_cpu() && result.numel() > 0)
        result.flatten().narrow(0, 0, 1).to(cpu());
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  BenchRow row{.mode = mode, .batch = inputs.empty() || inputs[0].dim() == 0 ? 1 : inputs[0].size(0).to_int()};
  reset_memory_peak(device);
  const auto begin = Clock::now();
  row.first_call_s = timed();
  check_first(results);
  for (row.warmup_repeats = 1; row.warmup_repeats < kWarmups; ++row.warmup_repeats) timed();
  row.warmup_s = std::chrono::duration<double>(Clock::now() - begin).count();
  std::vector<double> milliseconds;
  double spent = 0;
  while (int64_t(milliseconds.size()) < options.repeats && spent < options.max_seconds) {
    milliseconds.push_back(timed() * 1e3);
    spent += milliseconds.back() / 1e3;
  }
  row.repeats = int64_t(milliseconds.size());
  row.prefill_ms = Statistics::of(milliseconds);
  row.items_per_s = double(row.batch) / row.prefill_ms.mean * 1e3;
  row.compile_s = std::max(0.0, row.first_call_s - row.prefill_ms.p50 / 1e3);
  row.peak_bytes = memory_peak(device);
  return row;
}

}  // namespace

void bench_exported(const BenchOptions& options, BenchReport& report) {
  check(options.dtype.empty() && options.quantize.empty(),
        "bench: '{}' has the weights it was exported with; leave out --dtype and --quantize", options.model);
  check(options.workload == "fixed", "bench: --workload {} needs a model that generates text", options.workload);
  NoGradGuard no_grad;
  const Device device = parse_device(options.device);
  const ExportedModel model = load_exported_model(options.model, device);
  const TensorList inputs = drawn_inputs(model, device, options.seed);
  report.generates = false;
  DType dtype = kFloat32;
  for (auto& parameter : model->parameters()) {
    report.parameters += parameter.numel().to_int();
    dtype = parameter.dtype();
  }
  report.dtype = to_string(dtype);
  const double tolerance = options.tolerance >= 0 ? options.tolerance : bench_tolerance(dtype);
  auto modes = options.modes;
  std::stable_partition(modes.begin(), modes.end(), [](auto& mode) { return mode == "eager"; });
  Progress bar("bench", int64_t(modes.size()), "modes");
  TensorList reference;
  for (auto& mode : modes) {
    report.rows.push_back(measure_exported(model, mode, inputs, options, [&](const TensorList& results) {
      if (!reference.empty()) return check_results(mode, results, reference, tolerance);
      for (auto& result : results) reference.push_back(result.defined() ? result.clone() : result);
    }));
    bar.advance(1);
  }
}

}  // namespace sinter::cli
