// HIP's interfaces are small and stable, so they are declared here: no header of ROCm is needed to build.
#include "sinter/runtime/hip/hip.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/error.h"
#include "sinter/base/fault.h"
#include "sinter/base/hash.h"
#include "sinter/runtime/code_store.h"
#include "sinter/runtime/refusal.h"

namespace sinter::runtime {

namespace {

constexpr int kSuccess = 0;
constexpr int kL2CacheSize = 19, kMultiprocessorCount = 63;  // of hipDeviceAttribute_t
constexpr int kCopyDefault = 4;                              // of hipMemcpyKind: the addresses tell
constexpr unsigned kHostPortableMapped = 1 | 2;              // of hipHostMalloc
using Module = struct ihipModule_t*;
using Program = struct OpaqueHiprtcProgram*;

// Opens a library, the one that the environment names or the first that is found, and fetches its functions; gives why that
// does not work.
class Library {
 public:
  Library(const char* what, const char* variable, std::vector<const char*> names) : what_(what) {
    std::string reason, first_reason;
    if (const char* named = std::getenv(variable); named && *named) names = {named};
    for (auto* name : names) {
      if (auto library = DynamicLibrary::try_open(name, /*lazy=*/true, &reason)) {
        // Never closed: it has threads of its own.
        static auto& open = *new std::deque<DynamicLibrary>;
        static std::mutex mutex;
        std::lock_guard lock(mutex);
        library_ = &open.emplace_back(std::move(*library));
        return;
      }
      if (first_reason.empty()) first_reason = reason;
    }
    problem_ = format("{} was not found: {}. Install ROCm (packages hip-runtime-amd and hiprtc)", what, first_reason);
  }
  template <class Function>
  void fetch(Function& function, std::initializer_list<const char*> symbols) {
    for (auto* symbol : symbols)
      if (library_ && !function) function = reinterpret_cast<Function>(library_->find_symbol(symbol));
    if (library_ && !function && problem_.empty())
      problem_ = format("{} ({}) has no {}", what_, library_->path(), *symbols.begin());
  }
  const std::string& problem() const { return problem_; }

 private:
  const char* what_;
  DynamicLibrary* library_ = nullptr;
  std::string problem_;
};

struct Hip {
  const char* (*error_text)(int) = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*properties)(void*, int) = nullptr;
  int (*allocate)(void**, size_t) = nullptr;
  int (*release)(void*) = nullptr;
  int (*allocate_host)(void**, size_t, unsigned) = nullptr;
  int (*device_address)(void**, void*, unsigned) = nullptr;
  int (*copy)(void*, const void*, size_t, int) = nullptr;
  int (*fill)(void*, int, size_t) = nullptr;
  int (*synchronize)() = nullptr;
  int (*load)(Module*, const void*) = nullptr;
  int (*find)(HipFunction*, Module, const char*) = nullptr;
  int (*launch)(HipFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
  int devices = 0;
  std::string problem;

  Hip() {
    Library library("HIP's runtime", "SINTER_HIP_RUNTIME",
                    {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"});
    library.fetch(error_text, {"hipGetErrorString"});
    library.fetch(init, {"hipInit"});
    library.fetch(count, {"hipGetDeviceCount"});
    library.fetch(set_device, {"hipSetDevice"});
    library.fetch(attribute, {"hipDeviceGetAttribute"});
    library.fetch(properties, {"hipGetDevicePropertiesR0600", "hipGetDeviceProperties"});
    library.fetch(allocate, {"hipMalloc"});
    library.fetch(release, {"hipFree"});
    library.fetch(allocate_host, {"hipHostMalloc"});
    library.fetch(device_address, {"hipHostGetDevicePointer"});
    library.fetch(copy, {"hipMemcpy"});
    library.fetch(fill, {"hipMemset"});
    library.fetch(synchronize, {"hipDeviceSynchronize"});
    library.fetch(load, {"hipModuleLoadData"});
    library.fetch(find, {"hipModuleGetFunction"});
    library.fetch(launch, {"hipModuleLaunchKernel"});
    problem = library.problem();
    if (!problem.empty()) return;
    if (int result = init(0); result != kSuccess)
      problem = format("HIP does not start: {}", error_text(result));
    else if (result = count(&devices); result != kSuccess || devices == 0)
      problem = format("HIP finds no GPU: {}", error_text(result));
  }
};

const Hip& hip() {
  static const Hip& instance = *new Hip;
  return instance;
}

void check_hip(int result, const char* what) { check(result == kSuccess, "{}: {}", what, hip().error_text(result)); }

// Makes the device the calling thread's.
void use(int index) {
  check(hip().problem.empty(), "device hip:{} is not available: {}", index, hip().problem);
  check(index >= 0 && index < hip().devices, "device hip:{} is not available: there are {}", index, hip().devices);
  check_hip(hip().set_device(index), "hipSetDevice");
}

// ---- compiler ----
struct Hiprtc {
  const char* (*error_text)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char* text, const char* name, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*code_size)(Program, size_t*) = nullptr;
  int (*code)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  std::string version_text, problem;

  Hiprtc() {
    Library library("HIP's run-time compiler", "SINTER_HIPRTC",
                    {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "/opt/rocm/lib/libhiprtc.so"});
    library.fetch(error_text, {"hiprtcGetErrorString"});
    library.fetch(version, {"hiprtcVersion"});
    library.fetch(create, {"hiprtcCreateProgram"});
    library.fetch(destroy, {"hiprtcDestroyProgram"});
    library.fetch(compile, {"hiprtcCompileProgram"});
    library.fetch(code_size, {"hiprtcGetCodeSize"});
    library.fetch(code, {"hiprtcGetCode"});
    library.fetch(log_size, {"hiprtcGetProgramLogSize"});
    library.fetch(log, {"hiprtcGetProgramLog"});
    problem = library.problem();
    int major = 0, minor = 0;
    if (problem.empty() && version(&major, &minor) == kSuccess) version_text = format("{}.{}", major, minor);
  }
};

const Hiprtc& hiprtc() {
  static const Hiprtc& instance = *new Hiprtc;
  return instance;
}

std::string compile(const std::string& text, const std::string& name, const std::string& architecture) {
  auto& api = hiprtc();
  check(api.problem.empty(), "{}", api.problem);
  const std::string key = make_key({{"kind", "hip-code"},
                                    {"source", text_part(text)},
                                    {"compiler", "hiprtc " + api.version_text},
                                    {"target", architecture}});
  if (auto kept = process_store().load(key)) return *kept;
  Program program = nullptr;
  int result = api.create(&program, text.c_str(), "kernel.hip", 0, nullptr, nullptr);
  check(result == kSuccess, "hiprtc does not take a program: {}", api.error_text(result));
  const std::string target = "--offload-arch=" + architecture;
  const char* options[] = {target.c_str(), "-std=c++17"};
  result = api.compile(program, int(std::size(options)), options);
  size_t size = 0;
  auto read = [&](auto size_of, auto bytes_of) {
    std::string out;
    if (size_of(program, &size) == kSuccess) out.resize(size);
    if (!out.empty()) bytes_of(program, out.data());
    return out;
  };
  std::string code = result == kSuccess ? read(api.code_size, api.code) : read(api.log_size, api.log);
  api.destroy(&program);
  if (result != kSuccess) throw Refused(format("hiprtc does not compile {}: {}", name, code), name, code, text);
  process_store().save(key, code, name);
  return code;
}

// ---- memory ----
// HIP's own allocation, which waits for the device when memory goes back.
class HipAllocator final : public Allocator {
 public:
  explicit HipAllocator(int index) : index_(index) {}
  void* allocate(size_t bytes) override {
    if (bytes == 0) return nullptr;
    use(index_);
    void* memory = nullptr;
    if (hip().allocate(&memory, bytes) != kSuccess)
      throw OutOfMemoryError(format("hip:{} has no {} bytes left", index_, bytes));
    return memory;
  }
  void release(void* data, size_t) noexcept override {
    if (data) hip().release(data);
  }

 private:
  int index_;
};

// ---- what kernels report ----
// Cells of host memory that devices see; ops beyond their number share the last.
class Cells {
 public:
  int64_t address(int index, const std::string& ops) {
    std::lock_guard lock(mutex_);
    use(index);
    if (!host_) {
      void* memory = nullptr;
      check_hip(hip().allocate_host(&memory, sizeof(int64_t) * kWords * kCells, kHostPortableMapped), "hipHostMalloc");
      host_ = static_cast<int64_t*>(memory);
      std::fill_n(host_, kWords * kCells, 0);
    }
    auto at = std::find(ops_.begin(), ops_.end(), ops);
    if (at == ops_.end() && ops_.size() < kCells) at = ops_.insert(at, ops);
    const size_t cell = std::min<size_t>(size_t(at - ops_.begin()), kCells - 1);
    void* there = nullptr;
    check_hip(hip().device_address(&there, host_ + cell * kWords, 0), "hipHostGetDevicePointer");
    return int64_t(reinterpret_cast<uintptr_t>(there));
  }
  // Throws the first report, and forgets all.
  void check_all() {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < ops_.size(); ++i) {
      volatile int64_t* cell = host_ + i * kWords;
      if (!cell[0]) continue;
      std::string message = fault_text(ops_[i], cell[1], cell[2]);
      std::fill_n(host_, kWords * kCells, 0);
      throw_error(message);
    }
  }

 private:
  static constexpr size_t kCells = 1024, kWords = 4;
  std::mutex mutex_;
  int64_t* host_ = nullptr;
  std::vector<std::string> ops_;
};

Cells& cells() {
  static auto& instance = *new Cells;
  return instance;
}

class HipRuntime final : public DeviceRuntime {
 public:
  const std::string& problem() const override { return hip().problem; }
  const std::string& compiler_problem() const override { return hiprtc().problem; }
  std::string architecture(int index) const override { return hip_device_info(index).architecture; }
  const Ceilings& ceilings(int) const override {
    static const Ceilings unknown;
    return unknown;
  }
  Allocator& allocator(int index) const override {
    use(index);
    static std::mutex mutex;
    static auto& all = *new std::map<int, HipAllocator>;
    std::lock_guard lock(mutex);
    return all.try_emplace(index, index).first->second;
  }
  int64_t error_cell(int index, const std::string& ops) const override { return cells().address(index, ops); }
  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes, bool) const override {
    use(to_device.is_cpu() ? from_device.index() : to_device.index());
    check_hip(hip().copy(to, from, bytes, kCopyDefault), "hipMemcpy");
    if (to_device.is_cpu()) cells().check_all();  // the copy has waited for the kernels before it
  }
};

}  // namespace

const DeviceRuntime& hip_runtime() {
  static const HipRuntime runtime;
  return runtime;
}

const HipDeviceInfo& hip_device_info(int index) {
  use(index);
  static std::mutex mutex;
  static auto& all = *new std::map<int, HipDeviceInfo>;
  std::lock_guard lock(mutex);
  auto [found, fresh] = all.try_emplace(index);
  if (!fresh) return found->second;
  HipDeviceInfo& info = found->second;
  int l2 = 0;
  check_hip(hip().attribute(&info.multiprocessors, kMultiprocessorCount, index), "hipDeviceGetAttribute");
  check_hip(hip().attribute(&l2, kL2CacheSize, index), "hipDeviceGetAttribute");
  info.l2_bytes = l2;
  // Where the name of the architecture lies among the properties differs between releases; it is the text that begins so. The
  // name of the device is the first of them.
  std::string properties(16384, '\0');
  check_hip(hip().properties(properties.data(), index), "hipGetDeviceProperties");
  size_t at = properties.find("gfx", 256);
  check(at != std::string::npos, "hip:{} does not say what its architecture is", index);
  info.architecture = properties.substr(at, properties.find_first_of(std::string_view(":\0", 2), at) - at);
  return info;
}

HipFunction load_hip(const std::string& text, const std::string& name, int index) {
  refuse_if_planted(text, name);
  static std::mutex mutex;
  static auto& loaded = *new std::map<std::string, HipFunction>;
  const std::string key = format("{} {} {}", index, name, hash_hex(text));
  {
    std::lock_guard lock(mutex);
    if (auto found = loaded.find(key); found != loaded.end()) return found->second;
  }
  const std::string code = compile(text, name, hip_device_info(index).architecture);
  use(index);
  Module module = nullptr;
  HipFunction function = nullptr;
  int result = hip().load(&module, code.data());
  if (result == kSuccess) result = hip().find(&function, module, name.c_str());
  if (result != kSuccess)
    throw Refused(format("HIP does not load {}: {}", name, hip().error_text(result)), name, hip().error_text(result),
                  text);
  std::lock_guard lock(mutex);
  return loaded.emplace(key, function).first->second;
}

void hip_launch(HipFunction function, int index, unsigned blocks, const unsigned (&threads)[2], const void* params) {
  use(index);
  void* parameters[] = {const_cast<void*>(params)};
  check_hip(hip().launch(function, blocks, 1, 1, threads[0], threads[1], 1, 0, nullptr, parameters, nullptr),
            "hipModuleLaunchKernel");
}

void hip_synchronize(int index) {
  use(index);
  check_hip(hip().synchronize(), "hipDeviceSynchronize");
  cells().check_all();
}

void hip_fill(void* to, int index, unsigned char byte, size_t bytes) {
  use(index);
  check_hip(hip().fill(to, byte, bytes), "hipMemset");
}

}  // namespace sinter::runtime
