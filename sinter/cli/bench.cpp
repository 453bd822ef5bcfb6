#include "sinter/cli/bench.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/base/thread_pool.h"
#include "sinter/cli/bench_check.h"
#include "sinter/cli/exported.h"
#include "sinter/models/models.h"
#include "sinter/models/parts/attention.h"
#include "sinter/ops/creation.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/device_runtime.h"

namespace sinter::cli {

namespace {

std::shared_ptr<models::Model> load(const BenchOptions& options) {
  models::FromOptions from{.dtype = {}, .device = parse_device(options.device), .quantize = options.quantize, .progress = {}};
  if (!options.dtype.empty()) {
    from.dtype = parse_dtype(options.dtype);
    check(from.dtype && is_floating(*from.dtype), "bench: --dtype {} is no floating type", options.dtype);
  }
  std::optional<Progress> bar;
  from.progress = [&](int64_t done, int64_t total) {
    if (!bar) bar.emplace("load", total, "B");
    bar->advance(done - bar->done());
  };
  manual_seed(options.seed);
  auto model = options.model.empty() ? models::from_config(options.config, from) : models::from_pretrained(options.model, from);
  if (!options.quantize.empty()) empty_cpu_cache();
  return model;
}

// Measures every mode at every size: eager first, which is then the reference.
void measure(const BenchOptions& options, const std::shared_ptr<models::Model>& model, BenchReport& report) {
  double tolerance = options.tolerance >= 0 ? options.tolerance : bench_tolerance(model->parameters().at(0).dtype());
  auto modes = options.modes;
  std::stable_partition(modes.begin(), modes.end(), [](auto& mode) { return mode == "eager"; });
  for (auto& mode : modes) BenchMode{mode};
  auto decoder = std::dynamic_pointer_cast<models::CausalLM>(model);
  bool images = bool(std::dynamic_pointer_cast<models::ImageClassifier>(model));
  report.generates = bool(decoder);
  TokenCheck check_tokens(decoder, tolerance);

  if (options.workload == "varied") {
    check(bool(decoder), "bench: --workload varied needs a model that generates text; {} does not",
          model->config().architecture);
    Progress bar("bench", int64_t(modes.size()) * options.requests, "requests");
    for (auto& mode : modes)
      report.workload.push_back(measure_workload(
          decoder, mode, options, [&](int64_t n) { bar.advance(n); },
          [&](auto& prompts, auto& tokens) { check_tokens(mode, "varied", prompts, tokens); }));
    return;
  }
  auto prompts = images ? std::vector<int64_t>{0} : options.prompts;
  int64_t rows = int64_t(modes.size() * options.batches.size() * prompts.size());
  Progress bar("bench", rows * options.repeats, "repeats");
  auto advance = [&](int64_t n) { bar.advance(n); };
  for (int64_t batch : options.batches)
    for (int64_t prompt : prompts) {
      Tensor reference;
      for (auto& mode : modes) {
        std::string key = format("{} {}", batch, prompt);
        auto row = decoder ? measure_decoder(decoder, mode, batch, prompt, options, advance,
                                             [&](auto& given, auto& tokens) { check_tokens(mode, key, given, tokens); })
                           : measure_forward(model, mode, batch, prompt, options, advance, [&](const Tensor& result) {
                               if (reference.defined()) return check_close(mode, result, reference, tolerance);
                               reference = result.clone();
                             });
        bar.advance(options.repeats - row.repeats);
        report.rows.push_back(std::move(row));
      }
    }
}

// Those of rows, which a busy machine has many of, as far as one wants to read them.
std::vector<std::string> warning_lines(const BenchReport& report) {
  constexpr size_t kShown = 3;
  std::vector<std::string> lines;
  for (auto& row : report.rows) lines.insert(lines.end(), row.warnings.begin(), row.warnings.end());
  if (size_t count = lines.size(); count > kShown) {
    lines.resize(kShown);
    lines.push_back(
        format("{} more measurements deviate like that; --json lists them with their rows", count - kShown));
  }
  lines.insert(lines.end(), report.warnings.begin(), report.warnings.end());
  return lines;
}

std::string known_configurations() {
  std::string out;
  for (auto& name : models::config_names()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace

void run_bench(const BenchOptions& options) {
  if (options.threads) set_num_threads(options.threads);
  models::set_attention(models::parse_attention(options.attention));
  std::ofstream chart;
  if (!options.svg.empty()) {
    chart.open(options.svg);
    check(bool(chart), "bench: '{}' cannot be written", options.svg);
  }
  BenchReport report;
  report.model = options.model.empty() ? options.config : options.model;
  report.attention = options.attention;
  report.threads = num_threads();
  std::shared_ptr<models::Model> model;
  if (!is_exported(options.model)) {
    model = load(options);
    report.dtype = to_string(model->parameters().at(0).dtype()) + (options.quantize.empty() ? "" : ", " + options.quantize);
    report.device = to_string(model->parameters().at(0).device());
    report.parameters = model->parameter_count();
  } else {
    report.device = options.device;
  }
  report.ceilings = runtime::ceilings_of(parse_device(report.device)).text();
  ClockWatch clocks;
  if (model)
    measure(options, model, report);
  else
    bench_exported(options, report);
  if (auto slowdown = clocks.slowdown()) report.warnings.push_back(*slowdown);
  fill_speedups(report);
  std::cout << (options.json ? bench_json(report) : bench_text(report));
  for (auto& warning : warning_lines(report)) std::cerr << "sinter: warning: " << warning << "\n";
  if (chart.is_open()) {
    chart << bench_svg(report);
    chart.close();
    check(bool(chart), "bench: '{}' cannot be written", options.svg);
  }
}

void add_bench(CLI::App& app, BenchOptions& o) {
  auto* bench = app.add_subcommand("bench", "Time a model in several modes, eager against compiled");
  auto* source = bench->add_option_group("model");
  source->add_option("--model", o.model, "Folder of a checkpoint, a hub id in the local Hugging Face cache, or a file of torch.export.save "
                     "(.pt2) or ONNX (.onnx)");
  source->add_option("--config", o.config,
                     "Sizes of a well-known model, with random weights: " + known_configurations());
#ifndef SINTER_NO_SERVE
  source->add_option("--serve", o.serve, "A server of OpenAI's API, http://host:port: asked for texts, with --prompt and --new tokens");
#endif
  source->require_option(1);
  auto positive = CLI::Range(int64_t(1), int64_t(1) << 24);
  bench->add_option("--modes", o.modes, "eager, default, reduce-overhead, max-autotune, max-autotune-no-cudagraphs")
      ->delimiter(',')
      ->check(CLI::IsMember({"eager", "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"}))
      ->capture_default_str();
  bench->add_option("--batch", o.batches, "Sequences or images at once; a list")->delimiter(',')->check(positive);
  bench->add_option("--prompt", o.prompts, "Tokens of a prompt; a list, without a meaning for images")
      ->delimiter(',')
      ->check(positive);
  bench->add_option("--new", o.new_tokens, "Tokens to generate, where the model does")
      ->check(positive)
      ->capture_default_str();
  bench->add_option("--quantize", o.quantize, "What the weights of linear layers become: int8 or int4 (default: they stay)")
      ->check(CLI::IsMember({"int8", "int4", "fp8"}));
  bench->add_option("--dtype", o.dtype, "f32, bf16 or f16 (default: that of the checkpoint, f32 for --config)")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}));
  bench->add_option("--device", o.device, "cpu, cuda or cuda:N")->capture_default_str();
  bench
      ->add_option("--attention", o.attention,
                   "sdpa: the attention op; decomposed: products and a softmax. All modes alike")
      ->check(CLI::IsMember({"sdpa", "decomposed"}))
      ->capture_default_str();
  bench->add_option("--cache-length", o.cache_length, "Positions of the cache (default: prompt and new tokens)")
      ->check(positive);
  bench->add_option("--threads", o.threads, "Threads to compute with (default: SINTER_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 1024));
  bench->add_option("--repeats", o.repeats, "Timed repeats of a row")->check(positive)->capture_default_str();
  bench->add_option("--max-seconds", o.max_seconds, "A row's timing ends after so long, whatever the repeats")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  bench->add_option("--tolerance", o.tolerance, "Relative difference allowed between modes (default: by dtype)")
      ->check(CLI::Range(0.0, 1.0));
  bench
      ->add_option("--workload", o.workload, "fixed: a row for each size; varied: requests of drawn lengths, in bursts")
      ->check(CLI::IsMember({"fixed", "varied"}))
      ->capture_default_str();
  bench->add_option("--concurrency", o.concurrency, "varied: most requests at once")
      ->check(positive)
      ->capture_default_str();
  bench->add_option("--requests", o.requests, "varied: how many")->check(positive)->capture_default_str();
#ifndef SINTER_NO_SERVE
  bench->add_option("--users", o.users, "serve: clients that ask again as soon as they have their answer; a list")
      ->delimiter(',')
      ->check(positive);
  bench->add_option("--rate", o.rates, "serve: requests a second that come at random times, answered or not; a list")
      ->delimiter(',')
      ->check(CLI::Range(1e-6, 1e6));
  bench->add_option("--target-ttft", o.target_first_ms, "serve: milliseconds to the first token of a good answer");
  bench->add_option("--target-tpot", o.target_token_ms, "serve: and from token to token");
  bench->add_option("--api-key", o.api_key, "serve: the key that it asks for");
#endif
  bench->add_option("--seed", o.seed, "Of weights, prompts and requests")->capture_default_str();
  bench->add_flag("--json", o.json, "Print a list of rows as JSON instead of tables");
  bench->add_option("--svg", o.svg, "Write a bar chart to this file");
  bench->footer(
      "Examples:\n"
      "  sinter bench --config llama-125m --dtype bf16 --batch 1,8 --prompt 128,512 --svg chart.svg\n"
      "  sinter bench --model path/to/checkpoint --modes eager,max-autotune --max-seconds 10 --json\n"
      "  sinter bench --config vit-b --batch 1,16\n"
      "  sinter bench --config llama-125m --workload varied --concurrency 8 --requests 64\n"
      "  sinter bench --serve http://localhost:8000 --users 1,4,8 --rate 20 --requests 200 --target-ttft 200\n"
      "First calls and warm-up are timed apart. Results are compared between the modes first: a mode that computes\n"
      "something else is an error. `of bandwidth` is the time to read weights and cache once, at the bandwidth\n"
      "measured here, over the median decode step. Speed-ups are ratios of medians.");
#ifndef SINTER_NO_SERVE
  bench->callback([&o] { o.serve.empty() ? run_bench(o) : run_serve_bench(o); });
#else
  bench->callback([&o] { run_bench(o); });
#endif
}

}  // namespace sinter::cli
