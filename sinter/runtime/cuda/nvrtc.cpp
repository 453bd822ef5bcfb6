// CUDA text → machine code: the store's, else NVRTC's.
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/base/log.h"
#include "sinter/base/stage_times.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/cuda/compile_count.h"
#include "sinter/runtime/cuda/compile_workers.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/library_search.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/cuda/nvrtc_library.h"
#include "sinter/runtime/refusal.h"

namespace sinter::runtime {

namespace {

// A part of every key: raise it when the options below change.
constexpr int kCodeFormat = 2;
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

const NvrtcLibrary& nvrtc() {
  static const auto& instance = *[] {
    StageTimer timer(CompileStage::kLibraries);
    return new NvrtcLibrary(candidates());
  }();
  return instance;
}

std::string build(const NvrtcLibrary& library, const std::string& text, const std::string& label,
                  const std::string& architecture) {
  NvrtcOutcome out = compile_on_any(library, text, architecture);
  if (out.kind == NvrtcOutcome::Kind::kRefused)
    throw Refused(format("the CUDA program '{}' does not compile for {}:\n{}", label, architecture, out.log), label,
                  out.log, text);
  if (out.kind == NvrtcOutcome::Kind::kFailed)
    throw_error(
        format("NVRTC {} cannot compile the CUDA program '{}' for {}: {}\nA GPU that is newer than NVRTC needs a newer "
               "one.",
               library.version(), label, architecture, out.log));
  if (!out.log.empty()) log(LogTopic::kCode, "NVRTC on '{}': {}", label, out.log);
  return std::move(out.code);
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
  static void write(const NvrtcLibrary& library) {
    const std::string &version = library.version(), &file = library.file();
    if (!file.empty())
      process_store().save(key(), format("{}\n{}\n{}\n", version, file, hash_hex(place(file))), "NVRTC " + version);
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
  CudaCompileStats out = count.stats;
  out.by_workers = compiled_by_workers();
  return out;
}

const std::string& nvrtc_problem() { return nvrtc().problem(); }
const std::string& nvrtc_version() { return nvrtc().version(); }
const std::string& nvrtc_file() { return nvrtc().file(); }

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
  const NvrtcLibrary& library = nvrtc();
  if (!library.problem().empty() && !remembered().version.empty())
    if (auto bytes = from_disk(key_for(remembered().version))) return std::move(*bytes);
  check(library.problem().empty(), "the CUDA program '{}' cannot be compiled: {}{}", label, library.problem(),
        CodeStore::mounted_note());
  if (!remembered().current) {
    static std::once_flag once;
    std::call_once(once, [&] { Remembered::write(library); });
  }
  std::string key = key_for(library.version());
  if (auto bytes = from_disk(key)) return std::move(*bytes);
  // Of processes that start together one compiles, and the others find its work.
  CodeStore::Lock key_lock = process_store().lock(key);
  if (auto bytes = from_disk(key)) return std::move(*bytes);
  if (auto refusal = refusals().find(key)) throw *refusal;
  auto begin = std::chrono::steady_clock::now();
  std::string bytes;
  try {
    bytes = build(library, text, label, architecture);
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
