// From a profile of eager ops to the parts that are worth compiling. Each part is rebuilt as a graph, taken through the
// passes and fusion as compile() would, and weighed by the bytes its kernels move.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/engine/cost.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/engine/profile_timer.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/cpu/ceilings.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

using Call = EagerCall;

constexpr int kFarLines = 40;            // lines of one function lie closer than that, as a rule
constexpr size_t kLongestRegion = 4096;  // ops
constexpr double kReach = 0.8;           // of the measured bandwidth, for a fused kernel
constexpr double kCallSeconds = 1e-6;    // of an eager op, or a compiled function, beyond its kernels
constexpr double kLeastGain = 1.05;

// Of a kernel that only moves memory.
double moving_seconds(const Cost& cost) {
  auto& ceilings = runtime::measured_ceilings();
  return ceilings.seconds(double(cost.read), double(cost.written), 0, double(cost.bytes())) / kReach;
}

struct Place {
  std::string file;
  int line = 0;
  bool operator==(const Place&) const = default;
};

Place place_of(const std::string& where) {
  size_t colon = where.rfind(':');
  if (colon == std::string::npos) return {};
  return {where.substr(0, colon), std::atoi(where.c_str() + colon + 1)};
}

// Consecutive ops [begin, end) of one thread.
struct Region {
  size_t begin = 0, end = 0;
};

class Run {
 public:
  Run(std::vector<const Call*> calls, const std::vector<Profile::KernelRow>& rows) : calls_(std::move(calls)) {
    for (auto* call : calls_) places_.push_back(place_of(rows[size_t(call->row)].where));
    find_uses();
  }

  std::vector<Region> regions() const {
    std::vector<Region> out;
    for (size_t begin = 0; begin < calls_.size();) {
      size_t end = end_of(begin);
      // One line again and again: as many calls of it.
      size_t period = period_of(begin, end);
      for (; begin < end; begin += period) out.push_back({begin, begin + period});
    }
    return out;
  }

  // Ops and lines: equal for runs of the same code.
  std::string key(const Region& region) const {
    std::string out;
    for (size_t i = region.begin; i < region.end; ++i)
      out += format("{}:{} {}{}\n", places_[i].file, places_[i].line, calls_[i]->op->name,
                    calls_[i]->outputs.empty() ? Shape() : calls_[i]->outputs[0].type.shape);
    return out;
  }

  // Op by op the shortest time so far: other processes disturb some calls, seldom all.
  void measure(const Region& region, std::vector<double>& best) const {
    best.resize(region.end - region.begin, 1e30);
    for (size_t i = region.begin; i < region.end; ++i)
      best[i - region.begin] = std::min(best[i - region.begin], calls_[i]->seconds);
  }

  // What the ops did beside moving memory, which compiled code has to do as well: arithmetic, all of a product.
  double arithmetic(const Region& region, const std::vector<double>& best) const {
    double out = 0;
    for (size_t i = region.begin; i < region.end; ++i) {
      double taken = best[i - region.begin];
      auto& cost = calls_[i]->cost;
      out += cost.flops > 0 ? taken : std::max(0.0, taken - kCallSeconds - moving_seconds(cost));
    }
    return out;
  }

  // But for times: `expected_seconds` is without arithmetic. Nothing where there is nothing to fuse.
  std::optional<Advice> weigh(const Region& region) const {
    Advice out;
    std::vector<std::string> lines;
    for (size_t i = region.begin; i < region.end; ++i) {
      lines.push_back(format("{}:{}", places_[i].file, places_[i].line));
      out.ops += calls_[i]->op->kind != OpKind::kView;
      out.bytes += calls_[i]->cost.bytes();
    }
    out.where = join_places(lines);
    if (out.ops < 2 || out.where.empty()) return std::nullopt;
    TracerScope untraced(nullptr);
    Graph graph = graph_of(region);
    PipelineOptions pipeline = planning_pipeline(target_of(graph));
    Graph fused = run_passes(std::move(graph), pipeline);
    out.expected_seconds = kCallSeconds;
    for (auto& node : fused.nodes()) {
      Cost cost = cost_of(node);
      if (cost.bytes() == 0) continue;
      ++out.kernels;
      out.compiled_bytes += cost.bytes();
      if (cost.flops == 0) out.expected_seconds += moving_seconds(cost);
    }
    return out;
  }

 private:
  using Key = std::tuple<const void*, const void*, int64_t>;
  static Key key_of(const Call::Ref& ref) { return {ref.impl, ref.memory, ref.offset}; }
  using Result = std::pair<size_t, size_t>;  // a call and which of its outputs

  // For each output the last call that reads it; for each input what made it.
  void find_uses() {
    std::map<Key, Result> made;
    last_use_.resize(calls_.size());
    sources_.resize(calls_.size());
    for (size_t i = 0; i < calls_.size(); ++i) {
      for (auto& input : calls_[i]->inputs) {
        auto it = input.type.weak ? made.end() : made.find(key_of(input));
        bool known = it != made.end() && calls_[it->second.first]->outputs[it->second.second].type == input.type;
        sources_[i].push_back(known ? std::optional(it->second) : std::nullopt);
        if (known) last_use_[it->second.first][it->second.second] = i;
      }
      last_use_[i].resize(calls_[i]->outputs.size(), 0);
      for (size_t r = 0; r < calls_[i]->outputs.size(); ++r) made[key_of(calls_[i]->outputs[r])] = {i, r};
    }
  }

  // The lines of one function: one file, not far apart, until they begin again.
  size_t end_of(size_t begin) const {
    int low = places_[begin].line, high = low;
    size_t i = begin + 1;
    for (; i < calls_.size() && i - begin < kLongestRegion; ++i) {
      auto& at = places_[i];
      if (at.file != places_[begin].file || at.line < low - kFarLines || at.line > high + kFarLines) break;
      bool again = at == places_[begin] && calls_[i]->op == calls_[begin]->op && !(places_[i - 1] == at);
      if (again) break;
      low = std::min(low, at.line);
      high = std::max(high, at.line);
    }
    return i;
  }

  // The shortest run of ops of which the region is a repetition; its length where there is none.
  size_t period_of(size_t begin, size_t end) const {
    size_t n = end - begin;
    auto same = [&](size_t a, size_t b) {
      return calls_[begin + a]->op == calls_[begin + b]->op && places_[begin + a] == places_[begin + b];
    };
    std::vector<size_t> border(n, 0);  // by prefix: the longest end of it that is also its beginning
    for (size_t i = 1; i < n; ++i) {
      size_t k = border[i - 1];
      while (k > 0 && !same(i, k)) k = border[k - 1];
      border[i] = same(i, k) ? k + 1 : 0;
    }
    size_t period = n - border[n - 1];
    return period > 1 && n % period == 0 ? period : n;
  }

  Graph graph_of(const Region& region) const {
    Graph graph;
    std::map<Result, Value> values;
    std::map<Key, Value> inputs;
    std::vector<Value> outputs;
    for (size_t i = region.begin; i < region.end; ++i) {
      auto& call = *calls_[i];
      std::vector<Value> operands;
      for (size_t k = 0; k < call.inputs.size(); ++k) {
        auto& source = sources_[i][k];
        if (call.inputs[k].type.weak) {
          operands.push_back(graph.add_scalar(call.inputs[k].number));
        } else if (source && source->first >= region.begin) {
          operands.push_back(values.at(*source));
        } else {
          auto [it, fresh] = inputs.try_emplace(key_of(call.inputs[k]));
          if (fresh || !(it->second.type() == call.inputs[k].type)) it->second = graph.add_input(call.inputs[k].type);
          operands.push_back(it->second);
        }
      }
      auto& node = graph.add(*call.op, operands, call.attrs);
      for (size_t r = 0; r < call.outputs.size(); ++r) {
        Value value = node.result(int(r));
        values[{i, r}] = value;
        // Read behind the region, or by nobody that was seen: a result.
        if (last_use_[i][r] == 0 || last_use_[i][r] >= region.end) outputs.push_back(value);
      }
    }
    graph.set_outputs(std::move(outputs));
    return graph;
  }

  std::vector<const Call*> calls_;
  std::vector<Place> places_;
  std::vector<std::vector<size_t>> last_use_;                // 0: none
  std::vector<std::vector<std::optional<Result>>> sources_;  // by input
};

}  // namespace

std::vector<Advice> Profile::advise() const {
  std::vector<KernelRow> rows;
  std::vector<EagerCall> calls;
  {
    std::lock_guard lock(state_->mutex);
    rows = state_->rows;
    calls = state_->eager;
  }
  std::map<int, std::vector<const EagerCall*>> by_thread;
  for (auto& call : calls) by_thread[call.thread].push_back(&call);
  struct Known {
    std::optional<Advice> advice;
    const Run* run = nullptr;
    Region region = {};
    std::vector<double> best = {};
  };
  std::vector<std::unique_ptr<Run>> runs;
  std::map<std::string, Known> known;
  for (auto& [thread, list] : by_thread) {
    const Run& run = *runs.emplace_back(std::make_unique<Run>(list, rows));
    for (auto& region : run.regions()) {
      auto [it, fresh] = known.try_emplace(run.key(region));
      auto& [advice, first_run, first, best] = it->second;
      if (fresh) {
        try {
          advice = run.weigh(region);
          first_run = &run;
          first = region;
        } catch (const Error&) {
          // What does not make a graph cannot be compiled either.
        }
      }
      if (!advice) continue;
      ++advice->calls;
      run.measure(region, best);
    }
  }
  std::vector<Advice> out;
  for (auto& [key, one] : known) {
    if (!one.advice) continue;
    Advice advice = *one.advice;
    for (double taken : one.best) advice.seconds += taken;
    advice.expected_seconds += one.run->arithmetic(one.region, one.best);
    if (advice.gain() >= kLeastGain) out.push_back(advice);
  }
  auto saved = [](const Advice& a) { return double(a.calls) * (a.seconds - a.expected_seconds); };
  std::stable_sort(out.begin(), out.end(), [&](auto& a, auto& b) { return saved(a) > saved(b); });
  return out;
}

std::string Profile::advice() const {
  std::string out;
  constexpr size_t kMost = 10;
  auto all = advise();
  for (size_t i = 0; i < std::min(all.size(), kMost); ++i) {
    auto& a = all[i];
    out += format("{}: {} ops, {} moved, {} in {} would do if compiled: about {}x faster", a.where, a.ops,
                  bytes_text(double(a.bytes)), bytes_text(double(a.compiled_bytes)),
                  a.kernels == 1 ? std::string("1 kernel") : format("{} kernels", a.kernels), fixed(a.gain(), 1));
    out += format(" ({} each, {})\n", seconds_text(a.seconds), a.calls == 1 ? std::string("once") : format("{} times", a.calls));
  }
  return out.empty() ? "nothing here would gain by compile()\n" : out;
}

}  // namespace sinter
