// `sinter bench --serve`: a server of OpenAI's API under load.
#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/cli/bench.h"
#include "sinter/serve/http_load.h"

namespace sinter::cli {

namespace {

// One load, measured.
struct LoadRow {
  std::string load;
  int64_t answered = 0, refused = 0, failed = 0;
  double seconds = 0, tokens_per_s = 0, requests_per_s = 0;
  Statistics first, gap, per_token, whole;
  double good_per_s = 0;  // requests within the targets
};

LoadRow measure(const serve::LoadOptions& options, const BenchOptions& targets) {
  const serve::LoadResult result = serve::run_load(options);
  LoadRow row;
  row.load = options.users > 0 ? format("{} users", options.users) : format("{} requests/s", options.rate);
  row.seconds = result.seconds;
  std::vector<double> first, gap, per_token, whole;
  int64_t tokens = 0, good = 0;
  for (auto& answer : result.answers) {
    if (!answer.is_answered()) {
      ++(answer.status == 429 ? row.refused : row.failed);
      continue;
    }
    ++row.answered;
    tokens += answer.tokens;
    first.push_back(answer.first * 1e3);
    whole.push_back(answer.whole * 1e3);
    for (double each : answer.gaps) gap.push_back(each * 1e3);
    if (auto each = answer.per_token()) per_token.push_back(*each * 1e3);
    good += answer.first * 1e3 <= targets.target_first_ms &&
            answer.per_token().value_or(0) * 1e3 <= targets.target_token_ms;
  }
  row.tokens_per_s = double(tokens) / result.seconds;
  row.requests_per_s = double(row.answered) / result.seconds;
  row.good_per_s = double(good) / result.seconds;
  row.first = Statistics::of(first), row.gap = Statistics::of(gap);
  row.per_token = Statistics::of(per_token), row.whole = Statistics::of(whole);
  return row;
}

void print_table(const std::vector<LoadRow>& rows, bool has_targets) {
  std::vector<std::string> columns = {"load", "answered", "429", "failed",  "tokens/s", "requests/s", "TTFT p50",
                                      "p99",  "TPOT p50", "p99", "ITL p99", "e2e p50",  "p99"};
  if (has_targets) columns.push_back("goodput");
  Table table(columns);
  auto ms = [](double value) { return fixed(value, 2) + " ms"; };
  for (auto& r : rows) {
    std::vector<std::string> cells = {r.load,
                                      format("{}", r.answered),
                                      format("{}", r.refused),
                                      format("{}", r.failed),
                                      fixed(r.tokens_per_s, 1),
                                      fixed(r.requests_per_s, 2),
                                      ms(r.first.p50),
                                      ms(r.first.p99),
                                      ms(r.per_token.p50),
                                      ms(r.per_token.p99),
                                      ms(r.gap.p99),
                                      ms(r.whole.p50),
                                      ms(r.whole.p99)};
    if (has_targets) cells.push_back(fixed(r.good_per_s, 2));
    table.add(std::move(cells));
  }
  std::cout << table.text();
}

void print_json(const std::vector<LoadRow>& rows) {
  auto times = [](const Statistics& s) {
    return nlohmann::ordered_json{{"mean", s.mean}, {"p50", s.p50}, {"p90", s.p90}, {"p99", s.p99}, {"n", s.count}};
  };
  auto out = nlohmann::ordered_json::array();
  for (auto& r : rows)
    out.push_back({{"load", r.load},
                   {"answered", r.answered},
                   {"refused", r.refused},
                   {"failed", r.failed},
                   {"seconds", r.seconds},
                   {"tokens_per_s", r.tokens_per_s},
                   {"requests_per_s", r.requests_per_s},
                   {"goodput_per_s", r.good_per_s},
                   {"time_to_first_token_ms", times(r.first)},
                   {"inter_token_latency_ms", times(r.gap)},
                   {"time_per_output_token_ms", times(r.per_token)},
                   {"whole_ms", times(r.whole)}});
  std::cout << out.dump(2) << "\n";
}

}  // namespace

void run_serve_bench(const BenchOptions& options) {
  serve::LoadOptions load;
  load.url = options.serve;
  load.key = options.api_key;
  load.requests = options.requests;
  load.prompts = options.prompts;
  load.new_tokens = {options.new_tokens};
  load.seed = options.seed;
  std::vector<LoadRow> rows;
  for (int64_t users :
       options.rates.empty() && options.users.empty() ? std::vector<int64_t>{options.concurrency} : options.users) {
    load.users = users;
    rows.push_back(measure(load, options));
  }
  for (double rate : options.rates) {
    load.users = 0;
    load.rate = rate;
    rows.push_back(measure(load, options));
  }
  options.json ? print_json(rows) : print_table(rows, options.target_first_ms < 1e9 || options.target_token_ms < 1e9);
  const bool any = std::ranges::any_of(rows, [](auto& row) { return row.answered > 0; });
  check(any, "bench: {} answered nothing", options.serve);
}

}  // namespace sinter::cli
