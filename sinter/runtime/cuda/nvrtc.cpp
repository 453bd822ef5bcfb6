// NVRTC's interface is small and stable, so it is declared here: CUDA text compiles in a build without CUDA's headers.
#include <dlfcn.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
#include <sstream>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cuda/compile_count.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/refusal.h"

namespace sinter::runtime {

namespace {

// A part of every key: raise it when the options below change.
constexpr int kCodeFormat = 2;
constexpr int kOldest = 12;
constexpr int kMostAtOnce = 8;  // programs

constexpr int kSuccess = 0, kInvalidOption = 5;
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
  std::string file;  // where it was found
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
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(it.version), &found) && found.dli_fname) it.file = found.dli_fname;
  return {};
}

Nvrtc& nvrtc() {
  static Nvrtc& instance = *[] {
    StageTimer timer(CompileStage::kLibraries);
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

  int compile(const std::string& architecture) {
    std::string target = "--gpu-architecture=" + architecture;
    // Since 12.9: no declarations of textures and the like, and no cache besides our store.
    bool newer = api_.major > 12 || api_.minor >= 9;
    const char* options[] = {target.c_str(), "-std=c++17", "-default-device", "-minimal", "--no-cache"};
    return api_.compile(program_, newer ? 5 : 3, options);
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
  // It reads one text at a time, and more threads than these only get into each other's way.
  static auto& room = *new std::counting_semaphore<kMostAtOnce>(kMostAtOnce);
  room.acquire();
  struct Release {
    ~Release() { room.release(); }
  } release;
  OwnProgram program(api, text);
  int result = program.compile(architecture);
  std::string log = program.log();
  if (result != kSuccess) {
    if (log.empty()) log = api.error_text(result);
    if (result != kInvalidOption)
      throw Refused(format("the CUDA program '{}' does not compile for {}:\n{}", label, architecture, log), label, log,
                    text);
    throw_error(
        format("NVRTC {} cannot compile the CUDA program '{}' for {}: {}\nA GPU that is newer than NVRTC needs a newer "
               "one.",
               api.version_text, label, architecture, log));
  }
  if (!log.empty()) sinter::log(LogTopic::kCode, "NVRTC on '{}': {}", label, log);
  return program.cubin();
}

// What was refused in this process, which is not tried again.
class Refusals {
 public:
  std::optional<Refused> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto it = all_.find(key);
    return it == all_.end() ? std::nullopt : std::optional(it->second);
  }
  void add(const std::string& key, const Refused& refusal) {
    std::lock_guard lock(mutex_);
    all_.try_emplace(key, refusal);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Refused> all_;
};

Refusals& refusals() {
  static auto& instance = *new Refusals;
  return instance;
}

// Which NVRTC compiled last, so that a process which finds all of its code need not load one to learn its version.
struct Remembered {
  std::string version;
  bool current = false;  // the same library would be found now

  static std::string key() { return make_key({{"kind", "nvrtc"}, {"format", "1"}}); }

  // Size and time of change of a file; they tell a library that was replaced.
  static std::string state_of(const char* file) {
    struct stat facts{};
    if (stat(file, &facts) != 0) return "none";
    return format("{} {} {}", facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
  }
  // What decides which library is found, and which file that was.
  static std::string place(const std::string& file) {
    std::string where = format("{} {} {} {}", cuda_driver_version(), file, state_of(file.c_str()), state_of("/etc/ld.so.cache"));
    for (const char* name : {"SINTER_NVRTC", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"})
      if (const char* value = std::getenv(name)) where += format(" {}={}", name, value);
    return where;
  }

  static Remembered read() {
    Remembered out;
    auto bytes = process_store().load(key());
    if (!bytes) return out;
    std::istringstream lines(*bytes);
    std::string file, where;
    std::getline(lines, out.version) && std::getline(lines, file) && std::getline(lines, where);
    out.current = !file.empty() && where == hash_hex(place(file));
    return out;
  }
  static void write(const Nvrtc& api) {
    if (!api.file.empty())
      process_store().save(key(), format("{}\n{}\n{}\n", api.version_text, api.file, hash_hex(place(api.file))),
                   "NVRTC " + api.version_text);
  }
};

const Remembered& remembered() {
  static const auto& instance = *new Remembered(Remembered::read());
  return instance;
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
  refuse_if_planted(text, label);
  auto& count = cuda_compile_count();
  std::string source = text_part(text);
  auto key_for = [&](const std::string& version) {
    return make_key({{"kind", "cuda-code"},
                     {"source", source},
                     {"compiler", "nvrtc " + version},
                     {"target", architecture},
                     {"format", format("{}", kCodeFormat)}});
  };
  auto from_disk = [&](const std::string& key) {
    auto bytes = process_store().load(key);
    std::lock_guard lock(count.mutex);
    count.stats.disk_hits += bytes.has_value();
    return bytes;
  };
  // What came with a package was made by an NVRTC that need not be here.
  if (auto key = CodeStore::mounted_key(key_for("")))
    if (auto bytes = from_disk(*key)) return std::move(*bytes);
  if (remembered().current)
    if (auto bytes = from_disk(key_for(remembered().version))) return std::move(*bytes);
  Nvrtc& api = nvrtc();
  if (!api.problem.empty() && !remembered().version.empty())
    if (auto bytes = from_disk(key_for(remembered().version))) return std::move(*bytes);
  check(api.problem.empty(), "the CUDA program '{}' cannot be compiled: {}{}", label, api.problem, CodeStore::mounted_note());
  if (!remembered().current) {
    static std::once_flag once;
    std::call_once(once, [&] { Remembered::write(api); });
  }
  std::string key = key_for(api.version_text);
  if (auto bytes = from_disk(key)) return std::move(*bytes);
  // Of processes that start together one compiles, and the others find its work.
  CodeStore::Lock key_lock = process_store().lock(key);
  if (auto bytes = from_disk(key)) return std::move(*bytes);
  if (auto refusal = refusals().find(key)) throw *refusal;
  auto begin = std::chrono::steady_clock::now();
  std::string bytes;
  try {
    bytes = build(api, text, label, architecture);
  } catch (const Refused& refusal) {
    refusals().add(key, refusal);
    throw;
  }
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  process_store().note_miss(key, label);
  process_store().save(key, bytes, label);
  std::lock_guard lock(count.mutex);
  ++count.stats.compiles;
  count.stats.seconds += elapsed.count();
  return bytes;
}

}  // namespace sinter::runtime
