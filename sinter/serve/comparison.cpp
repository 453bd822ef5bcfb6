#include "sinter/serve/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "sinter/base/format.h"

namespace sinter::serve {

namespace {

constexpr double kSure = 0.05;
constexpr int64_t kFewest = 20;  // answers of a group, before anything is said of it

struct Aspect {
  const char* name;
  double AnswerTimes::*time;
};
constexpr Aspect kAspects[] = {{"the time to the first token", &AnswerTimes::first_s},
                               {"the time between tokens", &AnswerTimes::per_token_s},
                               {"the whole time", &AnswerTimes::whole_s}};
constexpr double kQuantiles[] = {0.5, 0.99};

std::vector<double> values_of(const std::vector<AnswerTimes>& all, double AnswerTimes::*time) {
  std::vector<double> out;
  for (auto& each : all)
    if (each.*time >= 0 && !each.waited_for_compiling) out.push_back(each.*time);
  return out;
}

double log_choose(double n, double k) { return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1); }

std::string milliseconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", s * 1e3);
  return text;
}

}  // namespace

void AnswerLog::add(const AnswerTimes& times) {
  std::lock_guard lock(mutex_);
  if (ring_.size() < kMost)
    ring_.push_back(times);
  else
    ring_[next_] = times;
  next_ = (next_ + 1) % kMost;
}

std::vector<AnswerTimes> AnswerLog::latest() const {
  std::lock_guard lock(mutex_);
  return ring_;
}

Quantile quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  const double n = double(values.size()), spread = 1.96 * std::sqrt(n * q * (1 - q));
  auto at = [&](double place) { return values[size_t(std::clamp(place, 0.0, n - 1))]; };
  // Of so many values a number that follows the binomial distribution lies below the true quantile.
  const double low = std::floor(n * q - spread) - 1, high = std::ceil(n * q + spread);
  return {at(std::ceil(n * q) - 1), low < 0 ? 0 : at(low),
          high >= n ? std::numeric_limits<double>::infinity() : at(high)};
}

double same_source(const std::vector<double>& a, const std::vector<double>& b, double q) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> all(a);
  all.insert(all.end(), b.begin(), b.end());
  const double limit = quantile(all, q).value;
  auto above = [&](const std::vector<double>& values) {
    return double(std::ranges::count_if(values, [&](double v) { return v > limit; }));
  };
  // However the values are dealt, so many are above; how many of them a gets is hypergeometric.
  const double n = double(all.size()), size = double(a.size()), total = above(all), seen = above(a);
  auto probability = [&](double k) {
    return std::exp(log_choose(total, k) + log_choose(n - total, size - k) - log_choose(n, size));
  };
  const double own = probability(seen) * (1 + 1e-9);
  double sum = 0;
  for (double k = std::max(0.0, size - (n - total)); k <= std::min(total, size); ++k)
    if (double p = probability(k); p <= own) sum += p;
  return std::min(1.0, sum);
}

std::vector<Difference> differences(const std::vector<AnswerTimes>& a, const std::vector<AnswerTimes>& b) {
  std::vector<Difference> out;
  for (auto& aspect : kAspects) {
    const auto of_a = values_of(a, aspect.time), of_b = values_of(b, aspect.time);
    if (int64_t(of_a.size()) < kFewest || int64_t(of_b.size()) < kFewest) continue;
    for (double q : kQuantiles)
      out.push_back({format("p{} of {}", int(q * 100), aspect.name), quantile(of_a, q).value, quantile(of_b, q).value,
                     same_source(of_a, of_b, q)});
  }
  // All are looked at together.
  for (auto& each : out) each.is_real = each.p < kSure / double(std::size(kAspects) * std::size(kQuantiles));
  return out;
}

std::string verdict(const std::string& name_a, const std::string& name_b, const std::vector<Difference>& differences) {
  if (differences.empty())
    return format("too few answers to compare {} and {}: {} of each are needed", name_a, name_b, kFewest);
  std::string real, others;
  for (auto& each : differences) {
    const bool a_is_faster = each.a < each.b;
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, "%.3g", a_is_faster ? each.b / each.a : each.a / each.b);
    if (each.is_real)
      real += format("{}{} is {} × faster than {} at {} ({} against {})", real.empty() ? "" : "; ",
                     a_is_faster ? name_a : name_b, ratio, a_is_faster ? name_b : name_a, each.what,
                     milliseconds(std::min(each.a, each.b)), milliseconds(std::max(each.a, each.b)));
    else
      others += (others.empty() ? "" : ", ") + each.what;
  }
  if (real.empty()) return format("{} and {} are not distinguishable: {}", name_a, name_b, others);
  return others.empty() ? real : format("{}; not distinguishable: {}", real, others);
}

}  // namespace sinter::serve
