// Requests as a service sees them: of many lengths, several at once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "sinter/base/error.h"
#include "sinter/cli/bench.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct Request {
  std::vector<int64_t> prompt;
  int64_t new_tokens;
};

// Bursts of one to `concurrency` requests. Prompts are as likely between 8 and 16 tokens as between 256 and 512.
std::vector<std::vector<Request>> draw_bursts(int64_t vocab, const BenchOptions& options) {
  std::mt19937_64 draw(options.seed);
  auto whole = [&](int64_t least, int64_t most) { return least + int64_t(draw() % uint64_t(most - least + 1)); };
  auto [low, high] = std::minmax_element(options.prompts.begin(), options.prompts.end());
  double shortest = double(*low < *high ? *low : std::max<int64_t>(*high / 16, 1)), longest = double(*high);
  std::vector<std::vector<Request>> bursts;
  for (int64_t left = options.requests; left > 0; left -= int64_t(bursts.back().size())) {
    auto& burst = bursts.emplace_back();
    for (int64_t n = std::min(left, whole(1, options.concurrency)); n > 0; --n) {
      double part = double(draw() % 10001) / 10000;
      int64_t length = int64_t(std::lround(shortest * std::pow(longest / shortest, part)));
      Request request{.prompt = {}, .new_tokens = whole((options.new_tokens + 3) / 4, options.new_tokens)};
      for (int64_t i = 0; i < length; ++i) request.prompt.push_back(whole(0, vocab - 1));
      burst.push_back(std::move(request));
    }
  }
  return bursts;
}

}  // namespace

WorkloadRow measure_workload(const std::shared_ptr<models::CausalLM>& model, const std::string& mode,
                             const BenchOptions& options, const Advance& advance, const TokenChecker& check_tokens) {
  WorkloadRow row{.mode = mode};
  reset_memory_peak(model->parameters().at(0).device());
  auto bursts = draw_bursts(model->config().vocab_size, options);
  int64_t longest = *std::max_element(options.prompts.begin(), options.prompts.end());
  BenchMode chosen(mode);
  TextGenerator generator(
      model, {.mode = chosen.mode,
              .eager = chosen.eager,
              .cache_length = options.cache_length > 0 ? options.cache_length : longest + options.new_tokens});
  std::vector<std::vector<int64_t>> all_prompts, all_tokens;
  std::vector<double> latencies, first_tokens, quiet;
  double busy = 0;
  int64_t tokens = 0;
  for (size_t b = 0; b < bursts.size(); ++b) {
    auto& burst = bursts[b];
    std::vector<std::vector<int64_t>> prompts;
    std::vector<RequestRow> rows;
    for (auto& request : burst) {
      prompts.push_back(request.prompt);
      rows.push_back({.burst = int64_t(b), .batch = int64_t(burst.size()), .prompt = int64_t(request.prompt.size())});
    }
    auto loaded = [] {
      auto stats = runtime::toolchain_stats();
      return stats.compiles + stats.disk_hits;
    };
    int64_t loaded_before = loaded();
    auto begin = Clock::now();
    auto elapsed = [&] { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); };
    GenerateOptions generate{.max_new_tokens = options.new_tokens};
    generate.on_token = [&](int64_t r, int64_t) {
      auto& request = rows[size_t(r)];
      request.latency_ms = elapsed();
      if (++request.new_tokens == 1) request.first_token_ms = request.latency_ms;
      return request.new_tokens < burst[size_t(r)].new_tokens;
    };
    auto generations = generator.generate(prompts, generate);
    busy += elapsed() / 1e3;
    int64_t made = generator.times().compiled, kernels = loaded() - loaded_before;
    row.recompilations += made;
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r].recompilations = made;
      rows[r].kernels = kernels;
      latencies.push_back(rows[r].latency_ms);
      first_tokens.push_back(rows[r].first_token_ms);
      if (made == 0 && kernels == 0) quiet.push_back(rows[r].latency_ms);
      tokens += rows[r].new_tokens;
      row.requests.push_back(rows[r]);
      all_prompts.push_back(prompts[r]);
      all_tokens.push_back(generations[r].ids);
      advance(1);
    }
  }
  row.latency_ms = Statistics::of(latencies);
  row.first_token_ms = Statistics::of(first_tokens);
  row.latency_without_recompilation_ms = Statistics::of(quiet);
  row.tokens_per_s = double(tokens) / busy;
  row.peak_bytes = memory_peak(model->parameters().at(0).device());
  check_tokens(all_prompts, all_tokens);
  return row;
}

}  // namespace sinter::cli
