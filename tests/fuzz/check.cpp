// Whether a program does the same eagerly and compiled.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sinter/tensor/memory_format.h"
#include "sinter/base/fault.h"
#include "sinter/base/format.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/pairs.h"
#include "tests/fuzz/subject.h"

namespace sinter::fuzz {

namespace {

std::string text_of(const IntList& list) { return to_string(Shape(std::span<const int64_t>(list))); }

bool mentions(const std::string& error, std::initializer_list<const char*> texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const char* text) { return error.find(text) != std::string::npos; });
}

// A rule about values that kernels keep.
bool is_fault(const std::string& error) {
  for (int fault = 0; fault < int(Fault::kCount); ++fault)
    if (error.find(fault_text(Fault(fault))) != std::string::npos) return true;
  return false;
}

// What the data decides is looked at when it is used: not in code that gives nothing, and the writes before it may come
// after it.
bool fails_late(const Observation& want) {
  return want.failed && (is_fault(want.error) || mentions(want.error, {"out of range", "could be anything",
                                                                       "is not among the", "has no view of shape",
                                                                       "no elements to choose from"}));
}

// A compiled program keeps values, not memory: a write takes nothing away from a gradient inside.
bool fails_by_a_write(const Observation& want) {
  return want.failed && mentions(want.error, {"has been changed by an in-place write since"});
}

// All of a view was overwritten: compiled it keeps its history, with a gradient of zeros, as in PyTorch; eager drops it.
bool keeps_more_history(const Observation& want, const Observation& got) {
  for (size_t i = 0; i < std::min(want.tensors.size(), got.tensors.size()); ++i) {
    const Seen &a = want.tensors[i], &b = got.tensors[i];
    bool is_zero = std::ranges::all_of(b.values, [](double value) { return value == 0; });
    if (a.defined ? b.requires_grad && !a.requires_grad : b.defined && is_zero && b.name.starts_with("gradient")) return true;
  }
  return false;
}

// Gradients, and what a step makes of them, where the gradient is not asked about.
bool is_vague(const Observation& want, const Observation& got, const Seen& seen) {
  if (!want.failed && !want.backward_failed && !keeps_more_history(want, got)) return false;
  return seen.name.starts_with("gradient") || seen.name.starts_with("parameter") || seen.name.starts_with("state");
}

// What compile() is known to refuse, with an Error: see docs/guide.md.
bool is_refused(const Observation& got) {
  return mentions(got.error, {"cannot be captured", "the gradient of a compiled function needs a value",
                              "no output depends on input", "the gradient asks about a size", "a value from before a break",
                              "no input of the graph gives the symbolic size",
                              "how often a captured loop runs"});
}

size_t common_tensors(const Observation& a, const Observation& b) {
  return std::min(a.tensors.size(), b.tensors.size());
}

// How two observations differ in what does not depend on rounding; empty when they do not.
std::string difference_in_form(const Observation& want, const Observation& got) {
  if (got.broken && !want.broken && !fails_late(want)) return format("breaks: {}", got.error);
  if (fails_late(want) || is_refused(got)) return {};
  if (fails_by_a_write(want) && !got.failed) return {};
  if (want.failed != got.failed)
    return want.failed ? format("does not fail; eager: {}", want.error) : format("fails: {}", got.error);
  bool more_history = keeps_more_history(want, got);
  if (got.backward_failed && !want.backward_failed && !more_history) return format("backward fails: {}", got.error);
  if (want.numbers != got.numbers)
    return format("the numbers of the host are '{}' instead of '{}'", got.numbers, want.numbers);
  for (size_t i = 0; i < common_tensors(want, got); ++i) {
    const Seen &a = want.tensors[i], &b = got.tensors[i];
    if (is_vague(want, got, a)) continue;
    if (a.defined != b.defined) return format("{} is {}", a.name, b.defined ? "defined" : "undefined");
    if (a.dtype != b.dtype) return format("{} has dtype {} instead of {}", a.name, b.dtype, a.dtype);
    if (a.sizes != b.sizes) return format("{} has sizes {} instead of {}", a.name, text_of(b.sizes), text_of(a.sizes));
    // A gradient that is one number for many elements may have memory for more of them (docs/guide.md, Gradients).
    if (a.strides != b.strides && !overlaps_itself(a.sizes, a.strides))
      return format("{} has strides {} instead of {}", a.name, text_of(b.strides), text_of(a.strides));
    if (a.requires_grad && !b.requires_grad) return format("{} does not require a gradient", a.name);
  }
  // Where the backward failed, the step after it was not made.
  if (want.tensors.size() != got.tensors.size() && !want.backward_failed && !more_history)
    return format("keeps {} tensors instead of {}", got.tensors.size(), want.tensors.size());
  if (want.sharing != got.sharing) return format("memory is shared as {} instead of {}", got.sharing, want.sharing);
  return {};
}

// What rounding may do to each element: the largest difference of runs on disturbed values.
struct Sensitivity {
  bool unstable = false;  // the disturbance changes more than values
  std::vector<std::vector<double>> slack;
};

Observation after(Subject subject, std::vector<Round> rounds, double disturbance) {
  Observation last;
  for (auto& round : rounds) {
    round.disturbance = disturbance;
    last = subject(round);
  }
  return last;
}

// After the last of these calls. `most` limits what the interpreter (`precise`) has a say in, as a part of each value.
Sensitivity sensitivity(const Program& program, const std::vector<Round>& rounds, const Observation& want, double step,
                        const Observation& precise, double most) {
  Sensitivity out;
  for (auto& seen : want.tensors) out.slack.emplace_back(seen.values.size(), 0.0);
  auto widen = [&](const Observation& other, double most) {
    for (size_t i = 0; i < common_tensors(want, other); ++i)
      for (size_t e = 0; e < std::min(want.tensors[i].values.size(), other.tensors[i].values.size()); ++e) {
        double value = want.tensors[i].values[e], change = std::abs(other.tensors[i].values[e] - value);
        if (std::isnan(change)) continue;
        out.slack[i][e] = std::max(out.slack[i][e], std::min(change, most * (1 + std::abs(value))));
        out.unstable = out.unstable || (change != 0 && most > 1 && !is_floating(want.tensors[i].dtype));
      }
  };
  for (double disturbance : {step, -step, 3 * step}) {
    Observation moved = after(Subject(program, nullptr, disturbance), rounds, disturbance);
    out.unstable = out.unstable || !difference_in_form(want, moved).empty();
    if (out.unstable) return out;
    widen(moved, std::numeric_limits<double>::infinity());
  }
  // Values that cancel out may keep doing so when they are disturbed: what rounding leaves of them, doubles do not have.
  widen(precise, most);
  return out;
}

std::string difference_in_values(const Observation& want, const Observation& got, double tolerance,
                                 const Sensitivity* allowed) {
  for (size_t i = 0; i < common_tensors(want, got); ++i) {
    const Seen &a = want.tensors[i], &b = got.tensors[i];
    if (is_vague(want, got, a)) continue;
    if (a.values.size() != b.values.size())
      return format("{} has {} elements instead of {}", a.name, b.values.size(), a.values.size());
    for (size_t e = 0; e < a.values.size(); ++e) {
      double slack = is_floating(a.dtype) ? tolerance * (1 + std::abs(a.values[e])) : 0;
      if (allowed) slack += 4 * allowed->slack[i][e];
      bool same = a.values[e] == b.values[e] || std::abs(a.values[e] - b.values[e]) <= slack ||
                  (std::isnan(a.values[e]) && std::isnan(b.values[e]));
      if (!same) return format("element {} of {} is {} instead of {}", e, a.name, b.values[e], a.values[e]);
    }
  }
  return {};
}

// The same calls on other values; the number that the program is given stays.
std::vector<Round> on_other_values(std::vector<Round> rounds, uint32_t other) {
  for (auto& round : rounds) round.values += 3 * other;
  return rounds;
}

double tolerance_of(const Program& program) { return program.coarse ? 3e-2 : 1e-4; }

// Whether what fails eagerly in the last of these calls gives nothing (no result is made of it), and fails because of the
// data: on other values of the same sizes it does not.
bool fails_for_nothing(const Program& program, const std::vector<Round>& rounds) {
  auto fails = [&](const Program& some, uint32_t other) {
    return after(Subject(some, nullptr), on_other_values(rounds, other), 0).failed;
  };
  for (auto needed = program; !needed.statements.empty(); needed.statements.pop_back()) {
    int last = needed.inputs() + int(needed.statements.size()) - 1;
    needed.results.clear();
    Program before = needed;
    before.statements.pop_back();
    if (fails(before, 0)) continue;
    if (std::count(program.results.begin(), program.results.end(), last) > 0) return false;
    for (uint32_t other = 1; other < 10; ++other)
      if (!fails(needed, other)) return true;
    return false;
  }
  return false;
}

// Whether the interpreter agrees on most other values of the same sizes: saturated in single precision, a sigmoid makes elements
// equal that are not so in double.
bool is_rare(const Program& program, const std::vector<Round>& rounds) {
  CompileOptions in_doubles{.backend = "interpreter"};
  int differ = 0;
  for (uint32_t other = 1; other <= 4; ++other) {
    auto calls = on_other_values(rounds, other);
    Observation want = after(Subject(program, nullptr), calls, 0), got = after(Subject(program, &in_doubles), calls, 0);
    differ += !difference_in_values(want, got, tolerance_of(program), nullptr).empty();
  }
  return differ < 2;
}

// Whether rounding inside the program explains what was got: each value lies among those that the program gives eagerly when
// the results of its statements are moved a little.
bool decided_by_rounding(const Program& program, const std::vector<Round>& rounds, const Observation& want,
                         const Observation& got, double step, double tolerance) {
  std::vector<std::vector<double>> low, high;
  for (auto& seen : want.tensors) low.push_back(seen.values);
  high = low;
  for (int pattern = 0; pattern < RoundingScope::kPatterns; ++pattern) {
    RoundingScope scope(pattern % 2 ? 3 * step : step, pattern);
    Observation moved = after(Subject(program, nullptr), rounds, 0);
    if (moved.failed || moved.tensors.size() != want.tensors.size()) continue;
    for (size_t i = 0; i < low.size(); ++i) {
      auto& values = moved.tensors[i].values;
      if (values.size() != low[i].size()) return true;  // it decides how many there are
      for (size_t e = 0; e < values.size(); ++e) {
        low[i][e] = std::min(low[i][e], values[e]);
        high[i][e] = std::max(high[i][e], values[e]);
      }
    }
  }
  for (size_t i = 0; i < common_tensors(want, got); ++i) {
    auto& values = got.tensors[i].values;
    if (is_vague(want, got, want.tensors[i])) continue;
    for (size_t e = 0; e < std::min(values.size(), low[i].size()); ++e) {
      double slack = is_floating(want.tensors[i].dtype) ? tolerance * (1 + std::abs(want.tensors[i].values[e])) : 0;
      if (is_floating(want.tensors[i].dtype)) slack += 0.1 * (high[i][e] - low[i][e]);  // not all of them were tried
      if (values[e] < low[i][e] - slack || values[e] > high[i][e] + slack) return false;
      if (std::isnan(values[e]) != std::isnan(want.tensors[i].values[e])) return false;
    }
  }
  return true;
}

std::string difference(const Program& program, const std::vector<Round>& rounds, const Observation& want,
                       const Observation& got, bool by_interpreter) {
  double tolerance = tolerance_of(program);
  std::string text = difference_in_form(want, got);
  if (text.empty() && !fails_late(want) && !fails_by_a_write(want) && !is_refused(got))
    text = difference_in_values(want, got, tolerance, nullptr);
  if (text.empty() || (want.failed && !got.failed && fails_for_nothing(program, rounds))) return {};
  // Rounding may decide a comparison that values close by decide otherwise. The interpreter is a third opinion, but not of
  // itself, and not where what was captured is wrong: then all that run it agree.
  CompileOptions op_by_op{.backend = "eager"}, in_doubles{.backend = "interpreter"};
  Observation captured = after(Subject(program, &op_by_op), rounds, 0);
  Observation precise = after(Subject(program, &in_doubles), rounds, 0);
  bool limited = by_interpreter || (difference_in_values(captured, precise, tolerance, nullptr).empty() &&
                                    !difference_in_values(want, captured, tolerance, nullptr).empty());
  double most = limited ? 3 * tolerance : std::numeric_limits<double>::infinity();
  Sensitivity allowed = sensitivity(program, rounds, want, program.coarse ? 1e-2 : 2e-6, precise, most);
  if (allowed.unstable || (by_interpreter && is_rare(program, rounds))) return {};
  text = difference_in_form(want, got);
  if (!text.empty()) return text;
  text = difference_in_values(want, got, tolerance, &allowed);
  bool explained = !text.empty() && decided_by_rounding(program, rounds, want, got, program.coarse ? 4e-3 : 1e-6, tolerance);
  return explained ? std::string() : text;
}

struct Way {
  const char* text;
  CompileOptions options;
  std::vector<Round> rounds;
  bool for_gradients = false;  // makes a difference to them alone
};

bool has_gradients(const Program& program) {
  auto requires_grad = [](const Input& input) { return input.requires_grad; };
  return !program.state.layers.empty() || std::ranges::any_of(program.arguments, requires_grad) ||
         std::ranges::any_of(program.captured, requires_grad);
}

const std::vector<Way>& ways() {
  const Round first{}, other{.values = 1, .training = false}, third{.values = 3},
      larger{.rows = 5, .columns = 7, .values = 2}, square{.rows = 3, .columns = 3, .values = 4},
      row{.rows = 1, .columns = 6, .values = 5, .training = false};
  static const std::vector<Way> all = {
      {"", {}, {first, other, third, larger, square, first, row}},
      {".dynamic = Dynamic::kTrue", {.dynamic = Dynamic::kTrue}, {first, larger, square}},
      {".backend = \"eager\"", {.backend = "eager"}, {first, larger, other}},
      {".backend = \"interpreter\"", {.backend = "interpreter"}, {first, larger}},
      {".options = {{\"activation_memory\", 0.3}}", {.options = {{"activation_memory", 0.3}}}, {first, third}, true},
      {".options = {{\"activation_memory\", 0.0}}", {.options = {{"activation_memory", 0.0}}}, {first}, true},
      {".backend = \"pairs\"", {.backend = pair_counting_backend()}, {first}},
  };
  return all;
}

}  // namespace

std::optional<Failure> check(const Program& program, const Failure* only) {
  for (auto& way : ways()) {
    if ((only && only->options != way.text) || (way.for_gradients && !has_gradients(program))) continue;
    Subject eager(program, nullptr), compiled(program, &way.options);
    std::vector<Round> rounds;
    for (auto& round : only ? only->rounds : way.rounds) {
      rounds.push_back(round);
      Observation want = eager(round), got = compiled(round);
      // A gradient that asks which element was the largest asks for equality, which another precision does not have.
      bool by_interpreter = way.options.backend == "interpreter";
      want.backward_failed = want.backward_failed || by_interpreter;
      std::string text = difference(program, rounds, want, got, by_interpreter);
      if (!text.empty())
        return Failure{format("compiled with '{}', call {}: {}", way.text, rounds.size(), text), way.text, rounds};
      // What is kept from call to call is no longer the same.
      bool parts = fails_late(want) || is_refused(got) || want.backward_failed || keeps_more_history(want, got);
      if (!program.state.layers.empty() && parts) break;
    }
  }
  return {};
}

}  // namespace sinter::fuzz
