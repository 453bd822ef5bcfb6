#pragma once
// `sinter bench`: what a model costs in each mode. The pieces: one row measures a mode at a batch and a prompt length
// (bench_measure.cpp), a varied workload measures requests (bench_workload.cpp), results are compared before anything
// is timed (bench_check.h), reports are made from rows alone (bench_report.cpp).
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/generate/text_generator.h"
#include "sinter/models/models.h"

namespace CLI {
class App;
}

namespace sinter::cli {

struct BenchOptions {
  std::string model, config;  // one of them
  std::vector<std::string> modes = {"eager", "default", "reduce-overhead"};
  std::vector<int64_t> batches = {1}, prompts = {128};
  int64_t new_tokens = 64;
  std::string dtype;  // empty: that of the checkpoint, f32 for a configuration
  std::string quantize;  // int8 or int4; empty: weights stay
  std::string device = "cpu";
  std::string attention = "sdpa";
  int64_t cache_length = 0;  // 0: prompt and new tokens
  int threads = 0;           // 0: as the library chooses
  int64_t repeats = 50;
  double max_seconds = 30;  // of timing, a row
  double tolerance = -1;    // between modes; negative: by dtype
  std::string workload = "fixed";
  int64_t concurrency = 4, requests = 32;
  uint64_t seed = 0;
  bool json = false;
  std::string svg;

  // Of a server: its address, and how it is asked.
  std::string serve, api_key;
  std::vector<int64_t> users;
  std::vector<double> rates;
  double target_first_ms = 1e9, target_token_ms = 1e9;
};

// Adds the subcommand; `options` outlives the app.
void add_bench(CLI::App& app, BenchOptions& options);
void run_bench(const BenchOptions& options);
void run_serve_bench(const BenchOptions& options);  // bench_serve.cpp

// Of measured values; all zero where there are none. Percentiles are of the nearest rank.
struct Statistics {
  double mean = 0, std = 0, min = 0, p50 = 0, p90 = 0, p99 = 0;
  int64_t count = 0;
  static Statistics of(std::vector<double> values);
};

struct BenchRow {
  std::string mode;
  int64_t batch = 1, prompt = 0;  // prompt: 0 for images
  double first_call_s = 0;        // a first prefill and decode step, or forward pass
  double compile_s = 0;           // what that took beyond the median of later ones
  double warmup_s = 0;            // before anything was timed, the first calls included
  int64_t warmup_repeats = 0, repeats = 0;
  Statistics prefill_ms = {};  // or the forward pass of a model that does not generate
  std::optional<Statistics> decode_ms = {};
  std::optional<double> prefill_tokens_per_s = {}, tokens_per_s = {};
  double items_per_s = 0;  // sequences or images, by the prefill
  int64_t peak_bytes = 0;
  std::optional<double> bandwidth_fraction = {};          // of a decode step: floor_ms over its median
  std::optional<double> floor_bytes = {}, floor_ms = {};  // what a step has to read, and the least time for it
  std::optional<double> speedup = {}, prefill_speedup = {};
  std::vector<std::string> warnings = {};
};

struct RequestRow {
  int64_t burst = 0, batch = 0, prompt = 0, new_tokens = 0;
  double first_token_ms = 0, latency_ms = 0;
  int64_t recompilations = 0;  // programs made while the request waited
  int64_t kernels = 0;         // compiled or loaded meanwhile: what a first use costs eagerly
};

struct WorkloadRow {
  std::string mode;
  std::vector<RequestRow> requests = {};
  Statistics latency_ms = {}, first_token_ms = {}, latency_without_recompilation_ms = {};
  int64_t recompilations = 0;
  double tokens_per_s = 0;
  int64_t peak_bytes = 0;
  std::optional<double> speedup = {};
};

struct BenchReport {
  std::string model, dtype, device, attention, ceilings;
  int threads = 0;
  int64_t parameters = 0;
  bool generates = true;
  std::vector<BenchRow> rows;
  std::vector<WorkloadRow> workload;
  std::vector<std::string> warnings;  // beside those of the rows
};

// What a mode's name means: eager, or a mode of compile().
struct BenchMode {
  explicit BenchMode(const std::string& name);
  bool eager;
  Mode mode = Mode::kDefault;
};

// Told once for each repeat.
using Advance = std::function<void(int64_t)>;

// Told what prompts were continued with; throws when it is wrong.
using TokenChecker = std::function<void(const std::vector<std::vector<int64_t>>& prompts,
                                        const std::vector<std::vector<int64_t>>& tokens)>;

// The most memory that tensors on the device have had since the last reset.
int64_t memory_peak(Device device);
void reset_memory_peak(Device device);

// Measures a model that generates; the first tokens are checked before anything is timed.
BenchRow measure_decoder(const std::shared_ptr<models::CausalLM>& model, const std::string& mode, int64_t batch,
                         int64_t prompt, const BenchOptions& options, const Advance& advance,
                         const TokenChecker& check_tokens);
// Measures the forward pass of any other model.
BenchRow measure_forward(const std::shared_ptr<models::Model>& model, const std::string& mode, int64_t batch,
                         int64_t prompt, const BenchOptions& options, const Advance& advance,
                         const std::function<void(const Tensor& result)>& check_result);

// Measures an exported program on inputs of the sizes that it tells, once in each mode: rows as those of a forward pass.
void bench_exported(const BenchOptions& options, BenchReport& report);

// Requests of drawn lengths that come in bursts of drawn sizes, the same for every mode; a burst comes when the one
// before is done. There is no warm-up: what a service pays at first shows. All tokens are checked at the end.
WorkloadRow measure_workload(const std::shared_ptr<models::CausalLM>& model, const std::string& mode,
                             const BenchOptions& options, const Advance& advance, const TokenChecker& check_tokens);

// Bytes that one decode step has to read: weights, and the cache's rows of `batch` sequences of `length` tokens.
int64_t decode_bytes(models::CausalLM& model, int64_t batch, int64_t length);

// Random ids for `batch` prompts, the same for every mode.
std::vector<std::vector<int64_t>> random_prompts(int64_t vocab, int64_t batch, int64_t length, uint64_t seed);

// Speed-ups against the eager row of the same batch and prompt, where there is one.
void fill_speedups(BenchReport& report);
std::string bench_json(const BenchReport& report);
std::string bench_text(const BenchReport& report);
std::string bench_svg(const BenchReport& report);

// Tells whether the machine slowed down while it was measured: a loop of multiply-adds before and after, and the
// system's count of throttlings where there is one.
class ClockWatch {
 public:
  ClockWatch();
  // A line for people, or nothing.
  std::optional<std::string> slowdown() const;

 private:
  double seconds_;
  int64_t throttled_;
};

}  // namespace sinter::cli
