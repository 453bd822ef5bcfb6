#pragma once
// How a function is compiled.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "sinter/base/api.h"
#include "sinter/base/error.h"

namespace sinter SINTER_API {

enum class Mode : uint8_t { kDefault, kReduceOverhead, kMaxAutotune, kMaxAutotuneNoCudagraphs };
// "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs".
std::string to_string(Mode mode);
Mode parse_mode(std::string_view text);
// Whether kernels are chosen by the clock.
inline bool tunes(Mode mode) { return mode == Mode::kMaxAutotune || mode == Mode::kMaxAutotuneNoCudagraphs; }

// A mode, or its name: .mode = Mode::kMaxAutotune, .mode = "max-autotune".
struct ModeOption {
  Mode mode;
  ModeOption(Mode mode) : mode(mode) {}
  ModeOption(const char* name) : mode(parse_mode(name)) {}
  ModeOption(const std::string& name) : mode(parse_mode(name)) {}
  operator Mode() const { return mode; }
};

// Which sizes are symbolic: those seen with a second value, all from the start, none.
enum class Dynamic : uint8_t { kAuto, kTrue, kFalse };
inline constexpr Dynamic kAuto = Dynamic::kAuto;

// {"recheck", 100}, {"recompile_limit", 16}: see docs/guide.md for the names.
using OptionMap = std::map<std::string, std::variant<bool, int64_t, double, std::string>>;

namespace capture {
struct Fingerprint;
}

struct CompileOptions {
  ModeOption mode = Mode::kDefault;  // SINTER_MODE in the environment stands in for the default
  bool fullgraph = false;      // a break is an Error
  Dynamic dynamic = Dynamic::kAuto;
  std::string backend = "sinter";
  OptionMap options = {};
  std::string name = {};       // for logs and explain()
  // Asked at each new capture for what the function is known by, if anything: see capture/fingerprint.h.
  std::function<std::shared_ptr<const capture::Fingerprint>()> fingerprint = {};
};

// The same with the environment applied; an Error names an option, a mode or a backend that does not exist.
CompileOptions checked(CompileOptions options);
// The value of an integer option, or what it is without.
int64_t int_option(const CompileOptions& options, const std::string& name);
// The share of what gradients need that is kept for them: {"activation_memory", 0.5}.
double activation_memory(const CompileOptions& options);

}  // namespace sinter
