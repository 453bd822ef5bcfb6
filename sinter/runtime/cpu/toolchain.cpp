#include "sinter/runtime/cpu/toolchain.h"

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
  // What identifies the code: the source, and the prelude by its hash.
  std::string text = prelude.empty() ? source : "prelude " + hash_hex(prelude) + "\n" + source;
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    auto& found = slots_[text];
    if (!found) found = std::make_shared<Slot>();
    slot = found;
  }
  std::lock_guard lock(slot->mutex);
  if (auto code = slot->code.lock()) {
    std::lock_guard stats_lock(mutex_);
    ++stats_.memory_hits;
    return code;
  }
  auto code = build(text, label, prelude);
  slot->code = code;
  return code;
}

std::shared_ptr<const CpuCode> Toolchain::build(const std::string& text, const std::string& label,
                                                std::string_view prelude) {
  static constexpr Compiler kCompilers[] = {
      {CpuCompiler::kClang, "clang", clang_identity, compile_with_clang, load_object},
      {CpuCompiler::kGxx, "g++", gxx_identity, compile_with_gxx, load_library},
  };
  auto key_for = [&](const std::string& identity) {
    return make_key({{"kind", "cpu-code"},
                     {"source", text_part(prelude.empty() ? text : text.substr(text.find('\n') + 1))},
                     {"prelude", prelude.empty() ? "none" : text_part(prelude)},
                     {"compiler", identity},
                     {"target", options_.target.name},
                     {"format", format("{}", kCodeFormat)}});
  };
  if (auto key = CodeStore::mounted_key(key_for("")))
    for (auto& compiler : kCompilers)
      if (key_part(*key, "compiler").starts_with(compiler.family))
        if (auto code = from_disk(compiler, *key)) return code;
  std::string problems;
  for (auto& compiler : kCompilers) {
    if (options_.compiler != CpuCompiler::kAuto && options_.compiler != compiler.kind) continue;
    std::string identity = compiler.identity();
    if (identity.empty()) continue;
    std::string key = key_for(identity);
    if (auto code = from_disk(compiler, key)) return code;
    // Of processes that start together one compiles, and the others find its work.
    CodeStore::Lock lock = store_.lock(key);
    if (auto code = from_disk(compiler, key)) return code;
    try {
      // The line that names the prelude makes way for the prelude itself.
      std::string source = prelude.empty() ? text : std::string(prelude) + text.substr(text.find('\n') + 1);
      return from_compiler(compiler, key, source, label);
    } catch (const CompilerFailure& failure) {
      problems += format("\n{}: {}", identity, failure.message());
      if (options_.compiler == CpuCompiler::kAuto && compiler.kind == CpuCompiler::kClang)
        warn_fallback(failure.message());
    }
  }
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

std::shared_ptr<const CpuCode> Toolchain::from_compiler(const Compiler& compiler, const std::string& key,
                                                        const std::string& source, const std::string& label) {
  auto begin = std::chrono::steady_clock::now();
  std::string bytes;
  try {
    bytes = compiler.compile(source, label, options_.target);
  } catch (const CompilerFailure&) {
    throw;
  } catch (const Error& error) {
    throw_error(format("the CPU kernel '{}' does not compile:\n{}", label, error.message()));
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  std::shared_ptr<const CpuCode> code;
  try {
    code = compiler.load(bytes);
  } catch (const Error& error) {
    throw CompilerFailure(error.message());
  }
  store_.note_miss(key, label);
  store_.save(key, bytes, label);
  std::lock_guard lock(mutex_);
  ++stats_.compiles;
  stats_.seconds += elapsed.count();
  return code;
}

void Toolchain::warn_fallback(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (warned_) return;
    warned_ = true;
  }
  warn("compiling CPU kernels with g++, which is slower: {}", reason);
}

ToolchainStats Toolchain::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

Toolchain& cpu_toolchain() {
  // Never destroyed: kernels may still be asked for while the process ends.
  static auto* toolchain =
      new Toolchain({host_target(), CodeStore::default_directory(), compiler_from_environment()});
  return *toolchain;
}

}  // namespace sinter::runtime
