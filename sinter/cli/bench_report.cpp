// Rows as a table, as JSON and as a chart.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "sinter/base/table.h"
#include "sinter/cli/bench.h"
#include "sinter/cli/chart.h"

namespace sinter::cli {

namespace {

using nlohmann::json;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json statistics_json(const Statistics& s) {
  return {{"mean", s.mean}, {"std", s.std}, {"min", s.min},    {"p50", s.p50},
          {"p90", s.p90},   {"p99", s.p99}, {"count", s.count}};
}

json row_json(const BenchRow& row) {
  json prefill = statistics_json(row.prefill_ms), decode;
  prefill["tokens_per_s"] = or_null(row.prefill_tokens_per_s);
  if (row.decode_ms) {
    decode = statistics_json(*row.decode_ms);
    decode["tokens_per_s"] = or_null(row.tokens_per_s);
  }
  return {{"mode", row.mode},
          {"batch", row.batch},
          {"prompt", row.prompt > 0 ? json(row.prompt) : json()},
          {"first_call_s", row.first_call_s},
          {"compile_s", row.compile_s},
          {"warmup_s", row.warmup_s},
          {"warmup_repeats", row.warmup_repeats},
          {"repeats", row.repeats},
          {"prefill_ms", prefill},
          {"decode_ms", decode},
          {"tokens_per_s", or_null(row.tokens_per_s)},
          {"items_per_s", row.items_per_s},
          {"peak_bytes", row.peak_bytes},
          {"bandwidth_fraction", or_null(row.bandwidth_fraction)},
          {"floor_bytes", or_null(row.floor_bytes)},
          {"floor_ms", or_null(row.floor_ms)},
          {"speedup", or_null(row.speedup)},
          {"prefill_speedup", or_null(row.prefill_speedup)},
          {"warnings", row.warnings}};
}

json workload_json(const WorkloadRow& row) {
  json requests = json::array();
  for (auto& r : row.requests)
    requests.push_back({{"burst", r.burst},
                        {"batch", r.batch},
                        {"prompt", r.prompt},
                        {"new_tokens", r.new_tokens},
                        {"first_token_ms", r.first_token_ms},
                        {"latency_ms", r.latency_ms},
                        {"recompilations", r.recompilations},
                        {"kernels", r.kernels}});
  return {{"mode", row.mode},
          {"workload", "varied"},
          {"latency_ms", statistics_json(row.latency_ms)},
          {"first_token_ms", statistics_json(row.first_token_ms)},
          {"latency_without_recompilation_ms", statistics_json(row.latency_without_recompilation_ms)},
          {"recompilations", row.recompilations},
          {"tokens_per_s", row.tokens_per_s},
          {"peak_bytes", row.peak_bytes},
          {"speedup", or_null(row.speedup)},
          {"requests", requests}};
}

std::string milliseconds(const Statistics& s) { return fixed(s.mean, 3) + " ± " + fixed(s.std, 3); }
std::string times(const std::optional<double>& v) { return v ? fixed(*v, 2) + "x" : "-"; }
std::string megabytes(int64_t bytes) { return fixed(double(bytes) / 1e6, 1); }

std::string rows_text(const BenchReport& report) {
  const char* first = report.generates ? "prefill ms" : "forward ms";
  Table table({"mode", "batch", "prompt", "first call s", "compile s", "warm-up s", first, "p50", "p90", "p99", "per s",
               "peak MB", "speed-up", "repeats"});
  for (auto& r : report.rows)
    table.row(r.mode, r.batch, r.prompt > 0 ? std::to_string(r.prompt) : "-", fixed(r.first_call_s, 3),
              fixed(r.compile_s, 3), fixed(r.warmup_s, 3), milliseconds(r.prefill_ms), fixed(r.prefill_ms.p50, 3),
              fixed(r.prefill_ms.p90, 3), fixed(r.prefill_ms.p99, 3),
              fixed(r.prefill_tokens_per_s.value_or(r.items_per_s), 1), megabytes(r.peak_bytes),
              times(r.prefill_speedup), r.repeats);
  std::string out = table.text();
  bool decodes = std::any_of(report.rows.begin(), report.rows.end(), [](auto& r) { return r.decode_ms.has_value(); });
  if (!decodes) return out;
  Table steps(
      {"mode", "batch", "prompt", "decode ms", "p50", "p90", "p99", "tokens/s", "floor ms", "of bandwidth", "speed-up",
       "steps"});
  for (auto& r : report.rows)
    if (r.decode_ms)
      steps.row(r.mode, r.batch, r.prompt, milliseconds(*r.decode_ms), fixed(r.decode_ms->p50, 3),
                fixed(r.decode_ms->p90, 3), fixed(r.decode_ms->p99, 3), fixed(*r.tokens_per_s, 1),
                r.floor_ms ? fixed(*r.floor_ms, 3) : "-", r.bandwidth_fraction ? fixed(*r.bandwidth_fraction * 100, 0) + "%" : "-", times(r.speedup),
                r.decode_ms->count);
  return out + "\n" + steps.text();
}

std::string workload_text(const BenchReport& report) {
  Table table({"mode", "requests", "latency p50 ms", "p99", "first token p50", "p99", "p99 without recompilation",
               "recompilations", "tokens/s", "peak MB", "speed-up"});
  for (auto& r : report.workload)
    table.row(r.mode, r.requests.size(), fixed(r.latency_ms.p50, 2), fixed(r.latency_ms.p99, 2),
              fixed(r.first_token_ms.p50, 2), fixed(r.first_token_ms.p99, 2),
              fixed(r.latency_without_recompilation_ms.p99, 2), r.recompilations, fixed(r.tokens_per_s, 1),
              megabytes(r.peak_bytes), times(r.speedup));
  std::string out =
      table.text() + "\nRequest by request; * marks those that waited for a recompilation, + for kernels alone:\n";
  std::vector<std::string> columns = {"burst", "batch", "prompt"};
  for (auto& r : report.workload) columns.push_back(r.mode + " ms");
  Table each(columns);
  for (size_t i = 0; i < report.workload[0].requests.size(); ++i) {
    auto& one = report.workload[0].requests[i];
    std::vector<std::string> cells = {std::to_string(one.burst), std::to_string(one.batch), std::to_string(one.prompt)};
    for (auto& r : report.workload)
      cells.push_back(fixed(r.requests[i].latency_ms, 2) + (r.requests[i].recompilations > 0 ? " *"
                                                            : r.requests[i].kernels > 0      ? " +"
                                                                                             : ""));
    each.add(cells);
  }
  return out + each.text();
}

// "eager" at batch 1, prompt 128 is a bar of the group "1 x 128".
BarPanel panel_of(const BenchReport& report, const std::string& title,
                  const std::function<const Statistics*(const BenchRow&)>& pick) {
  BarPanel panel{.title = title, .groups = {}, .series = {}};
  auto place = [](auto& list, const std::string& name, auto name_of) {
    return size_t(std::find_if(list.begin(), list.end(), [&](auto& x) { return name_of(x) == name; }) - list.begin());
  };
  for (auto& row : report.rows) {
    std::string group =
        row.prompt > 0 ? format("batch {}, prompt {}", row.batch, row.prompt) : format("batch {}", row.batch);
    size_t g = place(panel.groups, group, [](auto& x) { return x; });
    if (g == panel.groups.size()) panel.groups.push_back(group);
    size_t s = place(panel.series, row.mode, [](auto& x) { return x.name; });
    if (s == panel.series.size()) panel.series.push_back({.name = row.mode, .values = {}, .deviations = {}});
    auto& series = panel.series[s];
    if (const Statistics* value = pick(row)) {
      series.values.resize(g, -1);
      series.deviations.resize(g, 0);
      series.values.push_back(value->mean);
      series.deviations.push_back(value->std);
    }
  }
  for (auto& series : panel.series) series.values.resize(panel.groups.size(), -1);
  return panel;
}

}  // namespace

void fill_speedups(BenchReport& report) {
  for (auto& eager : report.rows) {
    if (eager.mode != "eager") continue;
    for (auto& row : report.rows) {
      if (row.batch != eager.batch || row.prompt != eager.prompt) continue;
      row.prefill_speedup = eager.prefill_ms.p50 / row.prefill_ms.p50;
      row.speedup = row.decode_ms && eager.decode_ms ? eager.decode_ms->p50 / row.decode_ms->p50 : row.prefill_speedup;
    }
  }
  for (auto& eager : report.workload)
    if (eager.mode == "eager")
      for (auto& row : report.workload) row.speedup = eager.latency_ms.p50 / row.latency_ms.p50;
}

std::string bench_json(const BenchReport& report) {
  json list = json::array();
  for (auto& row : report.rows) list.push_back(row_json(row));
  for (auto& row : report.workload) list.push_back(workload_json(row));
  for (auto& entry : list) {
    entry["model"] = report.model;
    entry["dtype"] = report.dtype;
    entry["device"] = report.device;
    entry["attention"] = report.attention;
    entry["threads"] = report.threads;
    entry["parameters"] = report.parameters;
  }
  return list.dump(2) + "\n";
}

std::string bench_text(const BenchReport& report) {
  std::string out =
      format("{}: {} parameters, {}, {}, attention {}, {} threads\n{}\n\n", report.model, report.parameters,
             report.dtype, report.device, report.attention, report.threads, report.ceilings);
  return out + (report.workload.empty() ? rows_text(report) : workload_text(report));
}

std::string bench_svg(const BenchReport& report) {
  std::string heading = format("{} in {}", report.model, report.dtype);
  std::string caption = format("{}, attention {}, {} threads; ", report.device, report.attention, report.threads);
  if (!report.workload.empty()) {
    BarPanel panel{.title = "latency of a request, ms", .groups = {"p50", "p90", "p99"}, .series = {}};
    for (auto& r : report.workload)
      panel.series.push_back({.name = r.mode, .values = {r.latency_ms.p50, r.latency_ms.p90, r.latency_ms.p99}});
    return bar_chart_svg(heading, caption + "varied requests, recompilations included", {panel});
  }
  std::vector<BarPanel> panels = {panel_of(report, report.generates ? "prefill, ms" : "forward pass, ms",
                                           [](const BenchRow& r) { return &r.prefill_ms; })};
  if (report.generates)
    panels.push_back(
        panel_of(report, "decode step, ms", [](const BenchRow& r) { return r.decode_ms ? &*r.decode_ms : nullptr; }));
  return bar_chart_svg(heading, caption + "mean, standard deviation as lines; lower is better", panels);
}

}  // namespace sinter::cli
