#pragma once
// Numbers about a server, in the text format of Prometheus. Names are those that vLLM's dashboards know, with our
// prefix.
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/serve/comparison.h"

namespace sinter::serve {

// Any thread may add and read.
class Counter {
 public:
  void add(double by = 1) {
    double before = value_.load(std::memory_order_relaxed);
    while (!value_.compare_exchange_weak(before, before + by, std::memory_order_relaxed)) {
    }
  }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

class Histogram {
 public:
  // Upper bounds, rising; beyond the last one there is one more bucket.
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);

  struct State {
    std::vector<int64_t> counts;  // by bucket, not added up
    double sum = 0;
    int64_t count = 0;
  };
  State state() const;
  const std::vector<double>& bounds() const { return bounds_; }

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  State state_;
};

using Labels = std::vector<std::pair<std::string, std::string>>;

// The metrics of one server. What it gives out lives as long as it.
class Registry {
 public:
  // Labels that all of them have.
  explicit Registry(Labels common) : common_(std::move(common)) {}

  // A counter's name is without "_total". The same name and labels give the same object.
  Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram& histogram(const std::string& name, const std::string& help, std::vector<double> bounds,
                       const Labels& labels = {});
  // Read when the text is made; must not call the registry.
  void gauge(const std::string& name, const std::string& help, std::function<double()> value,
             const Labels& labels = {});
  std::string text() const { return text_of({this}); }
  // Of several, which have the same names: their common labels tell them apart.
  static std::string text_of(const std::vector<const Registry*>& registries);

 private:
  struct Series {
    Labels labels;
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Histogram> histogram;
    std::function<double()> gauge;
  };
  struct Metric {
    std::string help, type;
    std::list<Series> series;
  };
  Series& series(const std::string& name, const std::string& help, const char* type, const Labels& labels);
  std::string written(const Labels& own, const std::string& le = "") const;
  // The lines of one metric, where there is such.
  void add_lines(const std::string& name, std::string& out) const;

  const Labels common_;
  mutable std::mutex mutex_;
  std::map<std::string, Metric> metrics_;
};

// Those of an engine.
struct EngineMetrics {
  explicit EngineMetrics(Registry& registry);

  Counter &prompt_tokens, &generation_tokens, &prefix_queries, &prefix_hits, &preemptions;
  Counter &recompiles, &compile_seconds, &delayed, &failures;
  Counter &busy_seconds, &turn_seconds;
  Histogram &first_token, &between_tokens, &per_token, &whole, &queued, &prefill, &decode, &inference;
  Histogram &request_prompt, &request_generation, &request_most, &request_choices, &step_tokens;
  AnswerLog answers;
  Registry& registry;
};

}  // namespace sinter::serve
