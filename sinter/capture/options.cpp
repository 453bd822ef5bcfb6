#include "sinter/capture/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "sinter/engine/backend.h"

namespace sinter {

namespace {

constexpr std::string_view kModes[] = {"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"};

struct IntOption {
  std::string_view name;
  int64_t standard, least;
  bool is_switch = false;
};
constexpr IntOption kIntOptions[] = {
    {"recompile_limit", 8, 1},  // entries of one function before it falls back to eager
    {"edge_limit", 8, 1},       // answers of one question before the function is called every time
    {"recheck", 0, 0},          // retrace every Nth call and compare; 0: never
    {"freeze", 0, 0, true},     // captured tensors keep their values; weights are rearranged once for the kernels
    {"background", 0, 0, true},  // programs run op by op until they have been compiled in the background
    {"strict", 0, 0, true},     // a kernel that a compiler refuses is an error instead of falling apart
    {"autotune_budget_ms", 300, 0},  // spent at most on each choice that max-autotune makes; 0: no tuning
    {"check", 0, 0},            // compare every Nth call with the referee; 0: none
    {"throw", 0, 0, true},      // what a check finds is an Error
};

// The one option that is a share.
constexpr const char* kActivationMemory = "activation_memory";

std::string known_options() {
  std::string names = kActivationMemory;
  for (auto& option : kIntOptions) names += (names.empty() ? "" : ", ") + std::string(option.name);
  return names;
}

const IntOption* find_option(std::string_view name) {
  auto* found = std::find_if(std::begin(kIntOptions), std::end(kIntOptions), [&](auto& o) { return o.name == name; });
  return found == std::end(kIntOptions) ? nullptr : found;
}

// SINTER_CHECK=N or N,throw stands in for the options of functions that say nothing of them.
void apply_environment_check(OptionMap& options) {
  const char* text = std::getenv("SINTER_CHECK");
  if (!text || !*text || options.contains("check")) return;
  std::string_view left = text;
  int64_t every = 0;
  auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), every);
  left.remove_prefix(size_t(end - left.data()));
  check(error == std::errc() && every >= 0 && (left.empty() || left == ",throw"),
        "SINTER_CHECK={}: write SINTER_CHECK=N to compare every Nth call with the referee, or SINTER_CHECK=N,throw", text);
  options["check"] = every;
  if (!left.empty()) options.try_emplace("throw", int64_t(1));
}

}  // namespace

std::string to_string(Mode mode) { return std::string(kModes[size_t(mode)]); }

Mode parse_mode(std::string_view text) {
  std::string known;
  for (size_t i = 0; i < std::size(kModes); ++i) {
    if (kModes[i] == text) return Mode(i);
    known += (known.empty() ? "" : ", ") + std::string(kModes[i]);
  }
  throw_error(format("compile: there is no mode '{}'; the modes are {}", text, known));
}

CompileOptions checked(CompileOptions options) {
  if (const char* mode = std::getenv("SINTER_MODE"); mode && *mode && options.mode == Mode::kDefault)
    options.mode = parse_mode(mode);
  apply_environment_check(options.options);
  for (auto& [name, value] : options.options) {
    if (name == kActivationMemory) {
      if (auto* whole = std::get_if<int64_t>(&value)) value = double(*whole);
      auto* share = std::get_if<double>(&value);
      check(share && *share >= 0 && *share <= 1, "compile: the option '{}' takes a share from 0 to 1", name);
      continue;
    }
    auto* known = find_option(name);
    check(known != nullptr, "compile: there is no option '{}'; the options are {}", name, known_options());
    if (auto* on = std::get_if<bool>(&value); on && known->is_switch) value = int64_t(*on);
    auto* number = std::get_if<int64_t>(&value);
    check(!known->is_switch || (number && *number <= 1), "compile: the option '{}' is true or false", name);
    check(number && *number >= known->least, "compile: the option '{}' takes a whole number from {} on", name, known->least);
  }
  auto backends = list_backends();
  std::string names;
  for (auto& backend : backends) names += (names.empty() ? "" : ", ") + backend;
  check(std::find(backends.begin(), backends.end(), options.backend) != backends.end(),
        "compile: there is no backend '{}'; the backends are {}", options.backend, names);
  return options;
}

double activation_memory(const CompileOptions& options) {
  auto it = options.options.find(kActivationMemory);
  return it == options.options.end() ? 1 : std::get<double>(it->second);
}

int64_t int_option(const CompileOptions& options, const std::string& name) {
  auto it = options.options.find(name);
  if (it != options.options.end()) return std::get<int64_t>(it->second);
  return find_option(name)->standard;
}

}  // namespace sinter
