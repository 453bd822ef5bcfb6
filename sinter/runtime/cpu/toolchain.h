#pragma once
// C++ kernel text → code that can be called, on the CPU: from memory, else from disk, else from a compiler.
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/refusal.h"

namespace sinter::runtime {

// Loaded code. Unloaded when the last owner lets go: whoever keeps a symbol keeps the code.
class CpuCode {
 public:
  virtual ~CpuCode() = default;
  // Null when there is no extern "C" function or variable of that name.
  virtual void* find_symbol(const std::string& name) const = 0;
  // The same; throws Error instead of returning null.
  void* symbol(const std::string& name) const;
  template <class Function>
  Function function(const std::string& name) const {
    return reinterpret_cast<Function>(symbol(name));
  }
};

struct ToolchainStats {
  int64_t compiles = 0;     // runs of a compiler that gave code
  int64_t disk_hits = 0;    // code read from the store
  int64_t memory_hits = 0;  // code already loaded
  double seconds = 0;       // spent in compilers
};

enum class CpuCompiler {
  kAuto,   // clang; g++ when the clang plugin is missing, fails, refuses a text or computes wrongly
  kClang,  // clang or an Error
  kGxx,    // g++ or an Error
};

struct ToolchainOptions {
  CpuTarget target = host_target();
  std::string cache_directory;  // empty: nothing is kept on disk
  CpuCompiler compiler = CpuCompiler::kAuto;
  // For tests: what this compiler is given in place of a text, so that it seems to be at fault.
  std::function<std::string(CpuCompiler compiler, const CpuTarget& target, std::string source)> tamper = {};
};

// Thread-safe. Requests for the same text wait for one compile; different texts compile side by side.
class Toolchain {
 public:
  explicit Toolchain(ToolchainOptions options);

  // `source` is C++20 without includes whose kernels are extern "C"; functions of libc and libm may be declared and
  // called. Multiply-adds are contracted, signed zeros, infinities and NaNs are kept, and pointers may alias across
  // types. `label` names the text in messages. Throws Refused with the diagnostics when no compiler takes the text, or Error
  // with what to install when there is none.
  // `prelude` goes before the source; keys know it by its hash alone, so that a long text shared by many kernels is kept
  // once. Where it speaks of SINTER_SELF_CHECK, it defines with that macro sinter_self_check(), which gives null or what
  // the compiler got wrong. Each release is asked once for each target, beside the first compile, and the answer is kept in
  // the store. A compiler that fails makes way for the next, and if none is left, the target for one without AVX-512.
  std::shared_ptr<const CpuCode> compile(const std::string& source, const std::string& label, std::string_view prelude = {});

  ToolchainStats stats() const;

 private:
  struct Compilation {
    std::mutex mutex;
    std::weak_ptr<const CpuCode> code;
    std::optional<Refused> refusal;  // it is not asked for again
  };
  struct Compiler;
  // What is wrong with a compiler's code; empty when nothing is.
  using Verdict = std::shared_future<std::string>;

  std::shared_ptr<const CpuCode> build(const std::string& text, const std::string& label, std::string_view prelude);
  std::shared_ptr<const CpuCode> from_disk(const Compiler& compiler, const std::string& key);
  // Null when the verdict is against the compiler.
  std::shared_ptr<const CpuCode> from_compiler(const Compiler& compiler, const CpuTarget& target, const std::string& key,
                                               const std::string& source, const std::string& label,
                                               const Verdict& verdict);
  std::string run_compiler(const Compiler& compiler, const CpuTarget& target, std::string source,
                           const std::string& label) const;
  Verdict verdict_on(const Compiler& compiler, const CpuTarget& target, std::string_view prelude);
  std::string self_check(const Compiler& compiler, const CpuTarget& target, const std::string& prelude,
                         const std::string& key) const;
  void warn_fallback(const std::string& way, const std::string& reason);

  ToolchainOptions options_;
  CodeStore store_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, std::shared_ptr<Compilation>> compilations_;
  ToolchainStats stats_;
  bool warned_ = false;
  std::mutex verdicts_mutex_;  // guards what follows
  std::map<std::string, Verdict> verdicts_;
};

// The toolchain of the process: host_target(), CodeStore::default_directory(), and the compiler that the environment
// variable SINTER_CPU_COMPILER names (clang, gxx), if any.
Toolchain& cpu_toolchain();

// While alive, the process compiles with this compiler alone, and takes nothing that was compiled before: to find out
// whether a compiler is at fault. One at a time, and nobody else may compile meanwhile.
class ToolchainScope {
 public:
  explicit ToolchainScope(CpuCompiler compiler);
  ~ToolchainScope();
  ToolchainScope(const ToolchainScope&) = delete;

 private:
  Toolchain other_;
};

inline std::shared_ptr<const CpuCode> compile_cpu(const std::string& source, const std::string& label,
                                                  std::string_view prelude = {}) {
  return cpu_toolchain().compile(source, label, prelude);
}
inline ToolchainStats toolchain_stats() { return cpu_toolchain().stats(); }

}  // namespace sinter::runtime
