// One step of training: forward, backward, clipping and AdamW, op by op, with the loss compiled, and compiled whole.
// Usage: training CONFIG [--batch N] [--tokens N] [--image N] [--layers N] [--device cpu|cuda] [--dtype f32|bf16|autocast]
//        [--how eager,loss,whole] [--mode default|reduce-overhead] [--budget X] [--repeats N] [--profile] [--explain]
// CONFIG is a name of models/presets.cpp, or of the suite that `training --list` names. Random weights and data.
// Prints a line of JSON for each way: milliseconds a step, the first step, the loss after the last one, the peak of memory.
// `training --serve` answers a driver: a line `CONFIG SECONDS` on standard input times one round of whole steps in f32.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "bench/support/device_times.h"
#include "bench/support/report.h"
#include "bench/support/serve.h"
#include "bench/support/timing.h"
#include "bench/support/training_models.h"
#include "sinter/engine/profile.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

struct Options {
  std::string config, device = "cpu", dtype = "f32", mode = "default";
  TrainingSizes sizes = {};
  std::vector<std::string> ways = {"eager", "loss", "whole"};
  int repeats = 20;
  double budget = 1;
  bool profile = false, explain = false;
};

Options parse(int argc, char** argv) {
  Options out;
  check(argc > 1,
        "usage: training CONFIG [--batch N] [--tokens N] [--image N] [--layers N] [--device cpu|cuda] "
        "[--dtype f32|bf16|autocast] [--how eager,loss,whole] [--mode MODE] [--budget X] [--repeats N] [--profile] [--explain]");
  out.config = argv[1];
  for (int i = 2; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--profile" || name == "--explain") {
      (name == "--profile" ? out.profile : out.explain) = true;
      continue;
    }
    check(i + 1 < argc, "{} needs a value", name);
    std::string value = argv[++i];
    if (name == "--batch")
      out.sizes.batch = std::stoll(value);
    else if (name == "--tokens")
      out.sizes.tokens = std::stoll(value);
    else if (name == "--image")
      out.sizes.image = std::stoll(value);
    else if (name == "--layers")
      out.sizes.layers = std::stoll(value);
    else if (name == "--repeats")
      out.repeats = std::stoi(value);
    else if (name == "--budget")
      out.budget = std::stod(value);
    else if (name == "--device")
      out.device = value;
    else if (name == "--dtype")
      out.dtype = value;
    else if (name == "--mode")
      out.mode = value;
    else if (name == "--how") {
      out.ways.clear();
      std::istringstream list(value);
      for (std::string way; std::getline(list, way, ',');) out.ways.push_back(way);
    } else {
      check(false, "training knows no option {}", name);
    }
  }
  return out;
}

using Step = std::function<Tensor(const Tensor& x, const Tensor& y)>;

// A model, its optimiser, and a batch.
struct Training : TrainingModel {
  std::unique_ptr<optim::AdamW> optimizer;

  explicit Training(const Options& o) {
    manual_seed(1);
    static_cast<TrainingModel&>(*this) =
        training_model(o.config, o.sizes, o.dtype == "bf16" ? kBFloat16 : kFloat32, parse_device(o.device));
    optimizer = std::make_unique<optim::AdamW>(module->parameters(), optim::AdamWOptions(1e-4).weight_decay(0.1));
  }

  // With autocast the weights and the losses are f32, as in PyTorch.
  Step loss(const Options& o) const {
    return [logits = logits, device = parse_device(o.device).type(), autocast = o.dtype == "autocast"](auto& x, auto& y) {
      AutocastGuard guard(device, kBFloat16, autocast);
      return cross_entropy(logits(x).to(kFloat32), y);
    };
  }
  Step step(Step loss) {
    return [this, loss](const Tensor& x, const Tensor& y) {
      optimizer->zero_grad();
      Tensor l = loss(x, y);
      l.backward();
      nn::utils::clip_grad_norm_(module->parameters(), 1.0);
      optimizer->step();
      return l.detach();
    };
  }
};

Json host_times(const Pass& pass, int repeats) {
  pass();
  std::vector<double> rounds;
  for (int i = 0; i < repeats; ++i) rounds.push_back(timed([&] { pass().item(); }));
  Timing t = summarize(rounds);
  return {{"p50", t.median * 1e3}, {"best", t.best * 1e3}, {"deviation", t.deviation}};
}

Json measure(const Options& o, const std::string& way) {
  Training training(o);
  CompileOptions options{.mode = parse_mode(o.mode), .dynamic = Dynamic::kFalse, .name = way};
  options.options["activation_memory"] = o.budget;
  Step loss = training.loss(o);
  if (way == "loss") loss = compile(loss, options);
  Step step = training.step(loss);
  std::function<Explanation()> explain;
  if (way == "whole") {
    auto compiled = compile(step, options);
    explain = [compiled] { return capture::explain(compiled.function()); };
    step = compiled;
  }
  Pass pass = [&] { return step(training.x, training.y); };
  const bool gpu = o.device != "cpu";
  double first = timed([&] { pass().item(); }), second = timed([&] { pass().item(); });
  if (o.explain) {
    if (explain) std::cout << explain().fusion();
    return nullptr;
  }
  gpu ? runtime::reset_cuda_memory_peak(0) : reset_cpu_memory_peak();  // of a step, when its programs are there
  if (o.profile) {
    for (int i = 0; i < 2; ++i) pass();
    Profile profile([&] {
      for (int i = 0; i < 3; ++i) pass();
    });
    std::cout << profile.table(70);
    return nullptr;
  }
  Json times = gpu ? device_times(pass, o.repeats) : host_times(pass, o.repeats);
  Json row{{"model", o.config},
           {"how", way},
           {"mode", o.mode},
           {"batch", int64_t(training.x.size(0))},
           {"dtype", o.dtype},
           {"step_ms", times},
           {"first_s", first},
           {"second_s", second},
           {"loss", pass().item<double>()}};
  row["budget"] = o.budget;
  row["peak_gb"] = double(gpu ? runtime::cuda_memory_stats(0).peak : cpu_memory_stats().peak) / 1e9;
  if (explain) {
    // The first step has met no gradients, the last program is the one that runs.
    auto programs = explain().programs;
    row["beside_inputs_gb"] = double(programs.back().reports[0]->peak_bytes()) / 1e9;
    for (auto& point : programs.back().activations[0])
      if (point.share == o.budget) row["kept_gb"] = double(point.bytes) / 1e9;
  }
  return row;
}

// One entry of the suite, compiled whole.
struct Served {
  std::shared_ptr<Training> training;
  Work work;
  double first = 0;
};

Served served(const std::string& config) {
  Served out{.training = std::make_shared<Training>(Options{.config = config}), .work = {}};
  auto step = compile(out.training->step(out.training->loss({})), {.dynamic = Dynamic::kFalse});
  out.work = repeat([step, training = out.training] { step(training->x, training->y).item(); });
  out.first = timed([&] { out.work(1); });
  // The second step finds moments and is another program.
  out.work(2);
  return out;
}

int serve_suite() {
  return serve_cases(served, [](const std::string&, const Served& s, double least) {
    auto calls = timed_calls(s.work, least);
    return Json{{"first_s", s.first}, {"round_s", summarize(calls).median}, {"calls", calls.size()}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "--serve") return serve_suite();
    if (what == "--list") {
      for (auto& name : training_suite()) std::cout << name << "\n";
      return 0;
    }
    Options o = parse(argc, argv);
    for (auto& way : o.ways) {
      Json row = measure(o, way);
      if (!row.is_null()) std::cout << row.dump() << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
