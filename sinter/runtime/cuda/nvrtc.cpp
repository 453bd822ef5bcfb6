// NVRTC's interface is small and stable, so it is declared here: CUDA text compiles in a build without CUDA's headers.
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cuda/compile_count.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/module.h"

namespace sinter::runtime {

namespace {

// A part of every key: raise it when the options below change.
constexpr int kCodeFormat = 1;
constexpr int kOldest = 12;

constexpr int kSuccess = 0, kCompilationFailed = 6;
using Program = struct OpaqueProgram*;

struct Nvrtc {
  const char* (*error_text)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char* text, const char* name, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;

  int major = 0, minor = 0;
  std::string version_text, problem;
  bool knows_split = true;  // --split-compile
  std::mutex mutex;         // it compiles one program at a time anyway
};

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("SINTER_NVRTC"); named && *named) return {named};
  // Code of a newer toolkit than the driver's does not load, so the driver's own generation comes first.
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  if (int version = cuda_driver_version(); version && version < 13000) std::swap(names[0], names[1]);
  std::vector<std::string> all = names;
  for (auto& folder : cuda_library_folders())
    for (auto& name : names) all.push_back(folder + "/" + name);
  return all;
}

std::string load(Nvrtc& it) {
  constexpr const char* kRemedy =
      "Install CUDA's run-time compiler (NVRTC 12 or newer: the toolkit, or the package cuda-nvrtc), and set CUDA_HOME "
      "where "
      "the loader does not find it";
  std::string reason, first_reason;
  std::optional<DynamicLibrary> library;
  for (auto& name : candidates()) {
    library = DynamicLibrary::try_open(name, /*lazy=*/true, &reason);
    if (library) break;
    if (first_reason.empty()) first_reason = reason;
  }
  if (!library) return format("NVRTC was not found: {}. {}", first_reason, kRemedy);
  static auto& keep = *new DynamicLibrary(std::move(*library));
  std::string missing;
  auto fetch = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(keep.find_symbol(symbol));
    if (!function && missing.empty()) missing = symbol;
  };
  fetch(it.error_text, "nvrtcGetErrorString");
  fetch(it.version, "nvrtcVersion");
  fetch(it.create, "nvrtcCreateProgram");
  fetch(it.destroy, "nvrtcDestroyProgram");
  fetch(it.compile, "nvrtcCompileProgram");
  fetch(it.cubin_size, "nvrtcGetCUBINSize");
  fetch(it.cubin, "nvrtcGetCUBIN");
  fetch(it.log_size, "nvrtcGetProgramLogSize");
  fetch(it.log, "nvrtcGetProgramLog");
  if (!missing.empty()) return format("the library {} has no {}. {}", keep.path(), missing, kRemedy);
  if (it.version(&it.major, &it.minor) != kSuccess || it.major < kOldest)
    return format("NVRTC {}.{} ({}) is too old. {}", it.major, it.minor, keep.path(), kRemedy);
  it.version_text = format("{}.{}", it.major, it.minor);
  it.knows_split = it.major > 12 || it.minor >= 1;
  return {};
}

Nvrtc& nvrtc() {
  static Nvrtc& instance = *[] {
    auto* it = new Nvrtc;
    it->problem = load(*it);
    return it;
  }();
  return instance;
}

class OwnProgram {
 public:
  OwnProgram(Nvrtc& api, const std::string& text) : api_(api) {
    int result = api.create(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr);
    check(result == kSuccess, "NVRTC does not take a program: {}", api.error_text(result));
  }
  ~OwnProgram() { api_.destroy(&program_); }
  OwnProgram(const OwnProgram&) = delete;

  int compile(const std::string& architecture, bool split) {
    std::string target = "--gpu-architecture=" + architecture;
    const char* options[] = {target.c_str(), "-std=c++17", "-default-device", "--split-compile=0"};
    return api_.compile(program_, split ? 4 : 3, options);
  }

  std::string log() const {
    size_t size = 0;
    if (api_.log_size(program_, &size) != kSuccess || size <= 1) return {};
    std::string text(size, '\0');
    if (api_.log(program_, text.data()) != kSuccess) return {};
    text.resize(size - 1);
    return text;
  }

  std::string cubin() const {
    size_t size = 0;
    int result = api_.cubin_size(program_, &size);
    std::string bytes(size, '\0');
    if (result == kSuccess) result = api_.cubin(program_, bytes.data());
    check(result == kSuccess && size > 0, "NVRTC gives no machine code: {}", api_.error_text(result));
    return bytes;
  }

 private:
  Nvrtc& api_;
  Program program_ = nullptr;
};

std::string build(Nvrtc& api, const std::string& text, const std::string& label, const std::string& architecture) {
  std::lock_guard lock(api.mutex);
  std::optional<OwnProgram> program(std::in_place, api, text);
  int result = program->compile(architecture, api.knows_split);
  if (result != kSuccess && api.knows_split && program->log().find("split-compile") != std::string::npos) {
    api.knows_split = false;
    program.emplace(api, text);
    result = program->compile(architecture, false);
  }
  std::string log = program->log();
  if (result != kSuccess) {
    if (log.empty()) log = api.error_text(result);
    if (result == kCompilationFailed)
      throw_error(format("the CUDA program '{}' does not compile for {}:\n{}", label, architecture, log));
    throw_error(
        format("NVRTC {} cannot compile the CUDA program '{}' for {}: {}\nA GPU that is newer than NVRTC needs a newer "
               "one.",
               api.version_text, label, architecture, log));
  }
  if (!log.empty()) sinter::log(LogTopic::kCode, "NVRTC on '{}': {}", label, log);
  return program->cubin();
}

}  // namespace

CudaCompileCount& cuda_compile_count() {
  static auto& instance = *new CudaCompileCount;
  return instance;
}

CudaCompileStats cuda_compile_stats() {
  auto& count = cuda_compile_count();
  std::lock_guard lock(count.mutex);
  return count.stats;
}

const std::string& nvrtc_problem() { return nvrtc().problem; }
const std::string& nvrtc_version() { return nvrtc().version_text; }

std::string compile_cuda(const std::string& text, const std::string& label, const std::string& architecture) {
  StageTimer timer(CompileStage::kToolchain);
  Nvrtc& api = nvrtc();
  check(api.problem.empty(), "the CUDA program '{}' cannot be compiled: {}", label, api.problem);
  static auto& store = *new CodeStore(CodeStore::default_directory());
  auto& count = cuda_compile_count();
  std::string key = make_key({{"kind", "cuda-code"},
                              {"source", text_part(text)},
                              {"compiler", "nvrtc " + api.version_text},
                              {"target", architecture},
                              {"format", format("{}", kCodeFormat)}});
  auto from_disk = [&] {
    auto bytes = store.load(key);
    std::lock_guard lock(count.mutex);
    count.stats.disk_hits += bytes.has_value();
    return bytes;
  };
  if (auto bytes = from_disk()) return std::move(*bytes);
  // Of processes that start together one compiles, and the others find its work.
  CodeStore::Lock key_lock = store.lock(key);
  if (auto bytes = from_disk()) return std::move(*bytes);
  auto begin = std::chrono::steady_clock::now();
  std::string bytes = build(api, text, label, architecture);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  store.note_miss(key, label);
  store.save(key, bytes, label);
  std::lock_guard lock(count.mutex);
  ++count.stats.compiles;
  count.stats.seconds += elapsed.count();
  return bytes;
}

}  // namespace sinter::runtime
