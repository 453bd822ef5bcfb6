#include "sinter/runtime/cuda/module.h"

#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "sinter/base/hash.h"
#include "sinter/base/stage_times.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cuda/compile_count.h"
#include "sinter/runtime/cuda/graph.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/runtime/refusal.h"

namespace sinter::runtime {

namespace {

constexpr int kUnaskedShared = 48 << 10;  // dynamic shared memory that a kernel has without asking
constexpr size_t kMaxParams = 4096;

struct KernelFacts {
  std::string name;
  int device = 0, shared_bytes = 0;
};

// Facts of all loaded kernels, by handle. Not on the way of a launch.
struct Kernels {
  std::mutex mutex;
  std::unordered_map<CUfunc_st*, KernelFacts> facts;

  KernelFacts of(CUfunc_st* function) {
    std::lock_guard lock(mutex);
    auto found = facts.find(function);
    return found == facts.end() ? KernelFacts{"a kernel"} : found->second;
  }
};

Kernels& kernels() {
  static auto& instance = *new Kernels;
  return instance;
}

// The last launches of all threads, the oldest overwritten.
constexpr unsigned kRecent = 8;
std::atomic<CUfunc_st*> recent[kRecent];
std::atomic<unsigned> launches{0};

// What the driver says against the code of one kernel is a refusal; the rest is about the device.
[[noreturn]] void throw_load_error(CUresult result, const std::string& what, const CudaSource& source) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_SHARED_OBJECT_INIT_FAILED:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      break;
    default:
      throw_driver_error(result, what);
  }
  const char* name = nullptr;
  driver().cuGetErrorName(result, &name);
  std::string reason = format("{}: the CUDA driver says {}", what, name ? name : "nothing known");
  throw Refused(reason, source.name, reason, source.text);
}

class LoadedModule {
 public:
  LoadedModule(const std::string& cubin, const CudaSource& source, int device) : device_(device) {
    CudaDeviceGuard guard(device);
    RelaxedCapture relaxed;
    CUresult result = driver().cuModuleLoadData(&module_, cubin.data());
    if (result == CUDA_SUCCESS) return;
    std::string what = format("loading '{}' on cuda:{}", source.name, device);
    int version = cuda_driver_version();
    if (std::atoi(nvrtc_version().c_str()) <= version / 1000) throw_load_error(result, what, source);
    throw_driver_error(
        result,
        what + format(" (compiled by NVRTC {}, while the driver supports CUDA {}.{}: update the driver, or install the "
                      "NVRTC of its generation)",
                      nvrtc_version(), version / 1000, version % 1000 / 10));
  }

  ~LoadedModule() {
    {
      std::lock_guard lock(kernels().mutex);
      for (auto* function : functions_) kernels().facts.erase(function);
    }
    // While a graph is recorded nothing may be waited for: the code then stays.
    if (!module_ || is_capturing_cuda_graph()) return;
    QuietDeviceGuard guard(device_);
    if (driver().cuStreamSynchronize(cuda_device(device_).stream) == CUDA_SUCCESS) driver().cuModuleUnload(module_);
  }
  LoadedModule(const LoadedModule&) = delete;

  CUfunc_st* function(const CudaSource& source) {
    const std::string& name = source.name;
    CudaDeviceGuard guard(device_);
    RelaxedCapture relaxed;
    CUfunction function = nullptr;
    CUresult result = driver().cuModuleGetFunction(&function, module_, name.c_str());
    check(result != CUDA_ERROR_NOT_FOUND, "the compiled CUDA program has no kernel '{}'", name);
    if (result != CUDA_SUCCESS) throw_driver_error(result, format("finding the kernel '{}'", name));
    // Asking makes the driver load the code now, which it may not do inside a recorded graph.
    int registers = 0;
    result = driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
    if (result != CUDA_SUCCESS) throw_load_error(result, format("loading the kernel '{}'", name), source);
    functions_.push_back(function);
    std::lock_guard lock(kernels().mutex);
    kernels().facts[function] = {name, device_, kUnaskedShared};
    return function;
  }

 private:
  int device_;
  CUmodule module_ = nullptr;
  std::vector<CUfunc_st*> functions_;
};

// Kernels of one device that somebody still holds.
struct LoadedKernels {
  struct Entry {
    CUfunc_st* handle = nullptr;
    std::weak_ptr<const void> code;
  };
  std::mutex mutex;    // guards `entries`
  std::mutex loading;  // held while code is loaded
  std::unordered_map<std::string, Entry> entries;

  CudaFunction find(const std::string& key) {
    std::lock_guard lock(mutex);
    auto found = entries.find(key);
    if (found == entries.end()) return {};
    if (auto code = found->second.code.lock()) return {found->second.handle, std::move(code)};
    entries.erase(found);
    return {};
  }
};

LoadedKernels& loaded_on(int device) {
  static auto* all = new std::array<LoadedKernels, 64>;
  return (*all)[cuda_device(device).index];
}

// `source`: of a kernel that is being loaded.
void allow_shared(CUfunc_st* function, int bytes, int device, const CudaSource* source = nullptr) {
  if (bytes <= kUnaskedShared) return;
  std::lock_guard lock(kernels().mutex);
  KernelFacts& facts = kernels().facts[function];
  if (bytes <= facts.shared_bytes) return;
  CudaDeviceGuard guard(device);
  int most = cuda_device(device).info.shared_bytes;
  if (bytes > most) {
    std::string reason = format("the kernel '{}' wants {} bytes of shared memory; a block has {} on cuda:{}",
                                facts.name, bytes, most, device);
    if (source) throw Refused(reason, source->name, reason, source->text);
    throw_error(reason);
  }
  CUresult result = driver().cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
  if (result != CUDA_SUCCESS) {
    std::string what = format("{} bytes of shared memory for '{}'", bytes, facts.name);
    source ? throw_load_error(result, what, *source) : throw_driver_error(result, what);
  }
  facts.shared_bytes = bytes;
}

// Machine code is for this very device, so it may use what only its architecture has.
std::string exact_architecture(const CudaDeviceInfo& info) {
  return info.architecture() + (info.major >= 9 ? "a" : "");
}

// Fills what `out` lacks. A program each, so that they compile at the same time and each is found on disk whatever it was
// compiled with.
void load_missing(LoadedKernels& loaded, std::span<const CudaSource> sources, const std::vector<std::string>& keys,
                  std::string_view prelude, int device, std::vector<CudaFunction>& out) {
  std::vector<size_t> missing;
  std::unordered_map<std::string, size_t> first;  // where a name was met
  for (size_t i = 0; i < sources.size(); ++i) {
    if (out[i]) continue;
    auto [met, fresh] = first.emplace(sources[i].name, i);
    SINTER_INTERNAL_ASSERT(fresh || sources[met->second].text == sources[i].text,
                           "two CUDA kernels of different text are named {}", sources[i].name);
    if (fresh) missing.push_back(i);
  }
  // What takes longest begins first.
  std::stable_sort(missing.begin(), missing.end(),
                   [&](size_t a, size_t b) { return sources[a].text.size() > sources[b].text.size(); });
  std::string architecture = exact_architecture(cuda_device_info(device));
  parallel_for(0, int64_t(missing.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t m = begin; m < end; ++m) {
      size_t i = missing[size_t(m)];
      auto& source = sources[i];
      std::string cubin = compile_cuda(std::string(prelude) + "\n" + source.text, source.name, architecture);
      StageTimer timer(CompileStage::kModules);
      std::lock_guard lock(loaded.loading);
      if ((out[i] = loaded.find(keys[i]))) continue;
      auto code = std::make_shared<LoadedModule>(cubin, source, device);
      CUfunc_st* handle = code->function(source);
      out[i] = CudaFunction(handle, code);
      std::lock_guard entries_lock(loaded.mutex);
      loaded.entries[keys[i]] = {handle, code};
    }
  });
  for (size_t i = 0; i < sources.size(); ++i)
    if (!out[i]) out[i] = out[first[sources[i].name]];
}

bool waits_after_each() {
  static const bool wanted = [] {
    const char* value = std::getenv("SINTER_CUDA_SYNC");
    return value && *value && std::strcmp(value, "0") != 0;
  }();
  return wanted;
}

}  // namespace

std::string recent_cuda_kernels() {
  std::string text;
  unsigned count = launches.load();
  for (unsigned i = 0; i < std::min(count, kRecent); ++i) {
    std::string name = kernels().of(recent[(count - 1 - i) % kRecent].load()).name;
    text += (i ? ", " : "") + name;
  }
  return text.empty() ? "nothing" : text;
}

int CudaFunction::registers() const {
  int value = 0;
  CudaDeviceGuard guard(kernels().of(handle_).device);
  check_driver(driver().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, handle_), "the registers of a kernel");
  return value;
}

int CudaFunction::blocks_per_multiprocessor(int threads, int shared_bytes) const {
  int device = kernels().of(handle_).device;
  allow_shared(handle_, shared_bytes, device);
  CudaDeviceGuard guard(device);
  int value = 0;
  check_driver(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, handle_, threads, size_t(shared_bytes)),
               "the occupancy of a kernel");
  return value;
}

std::vector<CudaFunction> load_cuda(std::span<const CudaSource> sources, std::string_view prelude, int device) {
  StageTimer waiting(CompileStage::kNone);  // each thread counts its own programs
  LoadedKernels& loaded = loaded_on(device);
  std::vector<CudaFunction> out(sources.size());
  std::vector<std::string> keys(sources.size());
  std::string prelude_hash = hash_hex(prelude);
  int64_t hits = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    keys[i] = format("{} {} {}", sources[i].name, hash_hex(sources[i].text), prelude_hash);
    out[i] = loaded.find(keys[i]);
    hits += bool(out[i]);
  }
  {
    auto& count = cuda_compile_count();
    std::lock_guard lock(count.mutex);
    count.stats.memory_hits += hits;
  }
  if (hits < int64_t(sources.size())) load_missing(loaded, sources, keys, prelude, device, out);
  for (size_t i = 0; i < sources.size(); ++i)
    allow_shared(out[i].handle(), sources[i].shared_bytes, device, &sources[i]);
  return out;
}

void cuda_launch(const CudaFunction& function, int device, const CudaGrid& grid, const void* params, size_t bytes) {
  SINTER_INTERNAL_ASSERT(bytes <= kMaxParams, "a kernel's parameters are {} bytes", bytes);
  auto& it = cuda_device(device);
  CudaDeviceGuard guard(device);
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = grid.blocks[0];
  config.gridDimY = grid.blocks[1];
  config.gridDimZ = grid.blocks[2];
  config.blockDimX = grid.threads[0];
  config.blockDimY = grid.threads[1];
  config.blockDimZ = grid.threads[2];
  config.sharedMemBytes = grid.shared_bytes;
  config.hStream = cuda_stream(device);
  config.attrs = &attribute;
  config.numAttrs = grid.overlaps_previous && it.info.major >= 9 ? 1 : 0;
  void* arguments[] = {const_cast<void*>(params)};
  recent[launches.fetch_add(1, std::memory_order_relaxed) % kRecent].store(function.handle(),
                                                                           std::memory_order_relaxed);
  CUresult result = driver().cuLaunchKernelEx(&config, function.handle(), arguments, nullptr);
  if (result != CUDA_SUCCESS) [[unlikely]] {
    std::string name = kernels().of(function.handle()).name;
    std::string what = format("launching the kernel '{}' (grid {}×{}×{}, {}×{}×{} threads, {} bytes of shared memory)",
                              name, grid.blocks[0], grid.blocks[1], grid.blocks[2], grid.threads[0], grid.threads[1],
                              grid.threads[2], grid.shared_bytes);
    if (result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
      throw Refused(what + ": it wants more registers or threads than a multiprocessor has", name,
                    "too many resources requested for launch", what);
    throw_driver_error(result, what);
  }
  if (waits_after_each() && !is_capturing_cuda_graph()) {
    result = driver().cuStreamSynchronize(config.hStream);
    if (result != CUDA_SUCCESS)
      throw_driver_error(result, format("running the kernel '{}'", kernels().of(function.handle()).name));
  }
}

}  // namespace sinter::runtime
#endif
