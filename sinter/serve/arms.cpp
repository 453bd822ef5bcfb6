#include "sinter/serve/arms.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {

Json interval(const Quantile& q) {
  return {{"value", q.value}, {"low", q.low}, {"high", std::isfinite(q.high) ? Json(q.high) : Json()}};
}

Json times_of(const std::vector<AnswerTimes>& answers, double AnswerTimes::*time) {
  std::vector<double> values;
  for (auto& each : answers)
    if (each.*time >= 0) values.push_back(each.*time);
  Json out{{"n", values.size()}};
  if (values.empty()) return out;
  for (double q : {0.5, 0.9, 0.99}) out[format("p{}", int(q * 100))] = interval(quantile(values, q));
  return out;
}

Json state_of(const Arm& arm) {
  Registry& metrics = arm.engine->metrics();
  auto value = [&](const char* name) { return metrics.counter(name, "").value(); };
  std::vector<AnswerTimes> steady, waited;
  for (auto& each : arm.engine->latest_answers()) (each.waited_for_compiling ? waited : steady).push_back(each);
  const double busy = value("busy_seconds");
  Json out{{"name", arm.name}, {"share", arm.share}};
  out["tokens"] = value("generation_tokens");
  out["tokens_per_busy_second"] = busy > 0 ? value("generation_tokens") / busy : 0;
  out["busy_seconds"] = busy;
  out["turn_seconds"] = value("turn_seconds");
  out["failed_steps"] = value("steps_failed");
  out["recompiles"] = value("recompiles");
  out["delayed_by_compiling"] = value("requests_delayed_by_compile");
  out["time_to_first_token_seconds"] = times_of(steady, &AnswerTimes::first_s);
  out["time_per_token_seconds"] = times_of(steady, &AnswerTimes::per_token_s);
  out["whole_seconds"] = times_of(steady, &AnswerTimes::whole_s);
  out["waited_for_compiling"] = {{"whole_seconds", times_of(waited, &AnswerTimes::whole_s)}};
  return out;
}

}  // namespace

std::pair<std::string, double> parse_arm(const std::string& text) {
  const size_t colon = text.rfind(':');
  char* end = nullptr;
  const double share = colon == std::string::npos ? 0 : std::strtod(text.c_str() + colon + 1, &end);
  check(colon != std::string::npos && colon > 0 && end && *end == 0 && colon + 1 < text.size(),
        "serve: '{}' is no arm; one is written as name:share, compiled:90", text);
  return {text.substr(0, colon), share};
}

Arms::Arms(std::vector<Arm> arms) : arms_(std::move(arms)) {
  check(!arms_.empty(), "serve: there is nothing to serve");
  std::set<std::string> names;
  for (auto& arm : arms_) {
    check(names.insert(arm.name).second, "serve: two arms are called '{}'", arm.name);
    check(arm.share > 0 && std::isfinite(arm.share), "serve: the share of '{}' is {}, which must be positive", arm.name,
          arm.share);
  }
}

const Arm& Arms::of_key(const std::string& key) const {
  double sum = 0, at = double(hash_text(key, /*seed=*/0x5bd1e995) >> 11) * 0x1p-53;
  for (auto& arm : arms_) sum += arm.share;
  at *= sum;
  for (auto& arm : arms_) {
    if (at < arm.share) return arm;
    at -= arm.share;
  }
  return arms_.back();
}

const Arm* Arms::named(const std::string& name) const {
  auto at = std::ranges::find(arms_, name, &Arm::name);
  return at == arms_.end() ? nullptr : &*at;
}

bool Arms::are_ready() const {
  return std::ranges::all_of(arms_, [](auto& arm) { return arm.engine->is_ready(); });
}

void Arms::close() {
  for (auto& arm : arms_) arm.engine->close();
}

std::string Arms::metrics_text() const {
  std::vector<const Registry*> registries;
  for (auto& arm : arms_) registries.push_back(&arm.engine->metrics());
  return Registry::text_of(registries);
}

std::string Arms::report() const {
  Json out{{"arms", Json::array()}, {"comparisons", Json::array()}};
  for (auto& arm : arms_) out["arms"].push_back(state_of(arm));
  const auto first = arms_[0].engine->latest_answers();
  for (size_t i = 1; i < arms_.size(); ++i) {
    const auto found = differences(first, arms_[i].engine->latest_answers());
    Json comparison{
        {"a", arms_[0].name}, {"b", arms_[i].name}, {"verdict", verdict(arms_[0].name, arms_[i].name, found)}};
    comparison["differences"] = Json::array();
    for (auto& each : found)
      comparison["differences"].push_back({{"what", each.what},
                                           {"a_seconds", each.a},
                                           {"b_seconds", each.b},
                                           {"p", each.p},
                                           {"is_real", each.is_real}});
    out["comparisons"].push_back(std::move(comparison));
  }
  return to_line(out);
}

}  // namespace sinter::serve
