#include "sinter/runtime/cpu/toolchain.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/cpu/clang_plugin/interface.h"
#include "sinter/runtime/cpu/compilers.h"
#include "sinter/runtime/cpu/elf_loader.h"

namespace sinter::runtime {

namespace {

// A part of every key: raise it when the flags of a compiler or the demands of a loader change.
constexpr int kCodeFormat = 2;

// What a prelude asks before it checks its compiler.
constexpr std::string_view kSelfCheckMacro = "SINTER_SELF_CHECK";

class ObjectCode : public CpuCode {
 public:
  explicit ObjectCode(const std::string& bytes) : image_(ElfImage::load(bytes)) {}
  void* find_symbol(const std::string& name) const override { return image_.find_symbol(name); }

 private:
  ElfImage image_;
};

class LibraryCode : public CpuCode {
 public:
  explicit LibraryCode(DynamicLibrary library) : library_(std::move(library)) {}
  void* find_symbol(const std::string& name) const override { return library_.find_symbol(name); }

 private:
  DynamicLibrary library_;
};

std::shared_ptr<const CpuCode> load_object(const std::string& bytes) { return std::make_shared<ObjectCode>(bytes); }

std::shared_ptr<const CpuCode> load_library(const std::string& bytes) {
  // The file may go once it is mapped; its unique path keeps the loader from taking it for an earlier one.
  TemporaryDirectory directory;
  write_file(directory.file("kernel.so"), bytes);
  return std::make_shared<LibraryCode>(DynamicLibrary::open(directory.file("kernel.so")));
}

CpuCompiler compiler_from_environment() {
  const char* value = std::getenv("SINTER_CPU_COMPILER");
  if (!value || !*value) return CpuCompiler::kAuto;
  std::string text = value;
  if (text == "clang") return CpuCompiler::kClang;
  check(text == "gxx", "SINTER_CPU_COMPILER is '{}'; it may be clang or gxx", text);
  return CpuCompiler::kGxx;
}

}  // namespace

struct Toolchain::Compiler {
  CpuCompiler kind;
  std::string_view family;    // what an identity begins with
  std::string (*identity)();  // empty where the compiler is missing
  std::string (*release)();
  std::string (*compile)(const std::string& source, const std::string& label, const CpuTarget& target);
  std::shared_ptr<const CpuCode> (*load)(const std::string& bytes);
};

void* CpuCode::symbol(const std::string& name) const {
  void* address = find_symbol(name);
  check(address != nullptr, "the compiled code has no symbol '{}'", name);
  return address;
}

Toolchain::Toolchain(ToolchainOptions options) : options_(std::move(options)), store_(options_.cache_directory) {}

std::shared_ptr<const CpuCode> Toolchain::compile(const std::string& source, const std::string& label,
                                                  std::string_view prelude) {
  StageTimer timer(CompileStage::kToolchain);
  refuse_if_planted(source, label);
  // What identifies the code: the source, and the prelude by its hash.
  std::string text = prelude.empty() ? source : "prelude " + hash_hex(prelude) + "\n" + source;
  std::shared_ptr<Compilation> compilation;
  {
    std::lock_guard lock(mutex_);
    auto& found = compilations_[text];
    if (!found) found = std::make_shared<Compilation>();
    compilation = found;
  }
  std::lock_guard lock(compilation->mutex);
  if (auto code = compilation->code.lock()) {
    std::lock_guard stats_lock(mutex_);
    ++stats_.memory_hits;
    return code;
  }
  if (compilation->refusal) throw *compilation->refusal;
  try {
    auto code = build(text, label, prelude);
    compilation->code = code;
    return code;
  } catch (const Refused& refusal) {
    compilation->refusal = refusal;
    throw;
  }
}

std::shared_ptr<const CpuCode> Toolchain::build(const std::string& text, const std::string& label,
                                                std::string_view prelude) {
  static constexpr Compiler kCompilers[] = {
      {CpuCompiler::kClang, "clang", clang_identity, clang_release, compile_with_clang, load_object},
      {CpuCompiler::kGxx, "g++", gxx_identity, gxx_release, compile_with_gxx, load_library},
  };
  auto key_for = [&](const std::string& identity, const CpuTarget& target) {
    return make_key({{"kind", "cpu-code"},
                     {"source", text_part(prelude.empty() ? text : text.substr(text.find('\n') + 1))},
                     {"prelude", prelude.empty() ? "none" : text_part(prelude)},
                     {"compiler", identity},
                     {"target", target.name},
                     {"format", format("{}", kCodeFormat)}});
  };
  if (auto key = CodeStore::mounted_key(key_for("", options_.target)))
    for (auto& compiler : kCompilers)
      if (key_part(*key, "compiler").starts_with(compiler.family))
        if (auto code = from_disk(compiler, *key)) return code;
  std::string problems, distrust;
  std::optional<Refused> refusal;
  // Code for a target without AVX-512 takes the same text: its vectors are then two registers.
  std::vector<CpuTarget> targets = {options_.target};
  if (options_.target.isa == CpuIsa::kAvx512) targets.push_back(detect_cpu(CpuIsa::kAvx2));
  for (auto& target : targets) {
    for (auto& compiler : kCompilers) {
      if (options_.compiler != CpuCompiler::kAuto && options_.compiler != compiler.kind) continue;
      std::string identity = compiler.identity();
      if (identity.empty()) continue;
      std::string key = key_for(identity, target);
      if (auto code = from_disk(compiler, key)) return code;
      // Of processes that start together one compiles, and the others find its work.
      CodeStore::Lock lock = store_.lock(key);
      if (auto code = from_disk(compiler, key)) return code;
      // The line that names the prelude makes way for the prelude itself.
      std::string source = prelude.empty() ? text : std::string(prelude) + text.substr(text.find('\n') + 1);
      try {
        Verdict verdict = verdict_on(compiler, target, prelude);
        if (auto code = from_compiler(compiler, target, key, source, label, verdict)) {
          if (!distrust.empty()) warn_fallback(format("{} for {}", identity, target.name), distrust);
          return code;
        }
        std::string fault = format("{} computes {} wrongly for {}", compiler.release(), verdict.get(), target.name);
        problems += "\n" + fault;
        distrust += (distrust.empty() ? "" : "; ") + fault;
      } catch (const Refused& refused) {
        if (!refusal) refusal = refused;
      } catch (const CompilerFailure& failure) {
        problems += format("\n{}: {}", identity, failure.message());
        if (!refusal && dynamic_cast<const CompilerCrash*>(&failure))
          refusal.emplace(format("{} fails over the CPU kernel '{}': {}", identity, label, failure.message()), label,
                          failure.message(), source);
        if (options_.compiler == CpuCompiler::kAuto && compiler.kind == CpuCompiler::kClang)
          warn_fallback("g++", failure.message());
      }
    }
    if (distrust.empty()) break;
  }
  if (refusal) throw *refusal;
  throw_error(format("no compiler could make the CPU kernel '{}'{}\n"
                     "Sinter needs its clang plugin with clang {} (Debian: libclang-cpp{}), or g++ in PATH.{}",
                     label, problems, kClangVersion, kClangVersion, CodeStore::mounted_note()));
}

std::shared_ptr<const CpuCode> Toolchain::from_disk(const Compiler& compiler, const std::string& key) {
  auto bytes = store_.load(key);
  if (!bytes) return nullptr;
  try {
    auto code = compiler.load(*bytes);
    std::lock_guard lock(mutex_);
    ++stats_.disk_hits;
    return code;
  } catch (const Error&) {
    return nullptr;  // compiled anew, which tells why if it still does not load
  }
}

std::string Toolchain::run_compiler(const Compiler& compiler, const CpuTarget& target, std::string source,
                                    const std::string& label) const {
  if (options_.tamper) source = options_.tamper(compiler.kind, target, std::move(source));
  return compiler.compile(source, label, target);
}

std::shared_ptr<const CpuCode> Toolchain::from_compiler(const Compiler& compiler, const CpuTarget& target,
                                                        const std::string& key, const std::string& source,
                                                        const std::string& label, const Verdict& verdict) {
  // A verdict that is still being found is waited for after the compile.
  if (verdict.wait_for(std::chrono::seconds(0)) == std::future_status::ready && !verdict.get().empty()) return nullptr;
  auto begin = std::chrono::steady_clock::now();
  std::string bytes;
  try {
    bytes = run_compiler(compiler, target, source, label);
  } catch (const CompilerFailure&) {
    throw;
  } catch (const Error& error) {
    throw Refused(format("the CPU kernel '{}' does not compile:\n{}", label, error.message()), label, error.message(),
                  source);
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  if (!verdict.get().empty()) return nullptr;
  std::shared_ptr<const CpuCode> code;
  try {
    code = compiler.load(bytes);
  } catch (const Error& error) {
    throw CompilerCrash(error.message());
  }
  store_.note_miss(key, label);
  store_.save(key, bytes, label);
  std::lock_guard lock(mutex_);
  ++stats_.compiles;
  stats_.seconds += elapsed.count();
  return code;
}

Toolchain::Verdict Toolchain::verdict_on(const Compiler& compiler, const CpuTarget& target, std::string_view prelude) {
  auto found = [](const std::string& wrong) {
    std::promise<std::string> promise;
    promise.set_value(wrong);
    return promise.get_future().share();
  };
  if (prelude.find(kSelfCheckMacro) == std::string_view::npos) return found("");
  std::string key = make_key({{"kind", "self-check"},
                              {"compiler", compiler.release()},
                              {"target", target.name},
                              {"prelude", text_part(prelude)},
                              {"format", format("{}", kCodeFormat)}});
  std::lock_guard lock(verdicts_mutex_);
  auto& verdict = verdicts_[key];
  if (verdict.valid()) return verdict;
  if (auto wrong = store_.load(key)) return verdict = found(*wrong);
  return verdict = std::async(std::launch::async, [this, &compiler, target, prelude = std::string(prelude), key] {
           return self_check(compiler, target, prelude, key);
         });
}

std::string Toolchain::self_check(const Compiler& compiler, const CpuTarget& target, const std::string& prelude,
                                  const std::string& key) const {
  CodeStore::Lock lock = store_.lock(key);
  if (auto wrong = store_.load(key)) return *wrong;
  std::string wrong;
  try {
    auto bytes = run_compiler(compiler, target, format("#define {}\n{}", kSelfCheckMacro, prelude), "self_check");
    auto code = compiler.load(bytes);
    if (const char* text = code->function<const char* (*)()>("sinter_self_check")()) wrong = text;
  } catch (const Error&) {
    return "";  // the kernel that follows tells why it does not compile
  }
  store_.save(key, wrong, "self-check");
  return wrong;
}

void Toolchain::warn_fallback(const std::string& way, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (warned_) return;
    warned_ = true;
  }
  warn("compiling CPU kernels with {}, which is slower: {}", way, reason);
}

ToolchainStats Toolchain::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

namespace {
std::atomic<Toolchain*> other_toolchain{nullptr};
}

ToolchainScope::ToolchainScope(CpuCompiler compiler)
    : other_({.target = host_target(), .cache_directory = {}, .compiler = compiler}) {
  Toolchain* none = nullptr;
  check(other_toolchain.compare_exchange_strong(none, &other_), "another toolchain is in use already");
}
ToolchainScope::~ToolchainScope() { other_toolchain = nullptr; }

Toolchain& cpu_toolchain() {
  if (Toolchain* other = other_toolchain.load(std::memory_order_acquire)) return *other;
  // Never destroyed: kernels may still be asked for while the process ends.
  static auto* toolchain =
      new Toolchain({host_target(), CodeStore::default_directory(), compiler_from_environment()});
  return *toolchain;
}

}  // namespace sinter::runtime
