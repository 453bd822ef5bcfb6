#include "sinter/runtime/cuda/device.h"

#include "sinter/runtime/cuda/driver_api.h"

#if SINTER_HAS_CUDA
#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/stage_times.h"

namespace sinter::runtime {

namespace {

constexpr int kOldestDriver = 12000;
constexpr int kMaxDevices = 64;

struct Driver {
  DriverApi api;
  int devices = 0;
  std::string problem;
};

std::string version_text(int version) { return format("{}.{}", version / 1000, version % 1000 / 10); }

std::string fault_text(const DriverApi& api, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  api.cuGetErrorName(result, &name);
  api.cuGetErrorString(result, &text);
  return format("{} ({})", name ? name : std::to_string(int(result)).c_str(), text ? text : "no description");
}

// Why the driver cannot be used; empty when it can.
std::string start(Driver& it) {
  const char* named = std::getenv("SINTER_CUDA_DRIVER");
  std::string name = named && *named ? named : "libcuda.so.1", reason;
  auto library = DynamicLibrary::try_open(name, /*lazy=*/true, &reason);
  if (!library)
    return format(
        "the NVIDIA driver was not found: {}. Install one for CUDA {} or newer (`nvidia-smi` shows the one that is "
        "there); a container must be given the GPU (docker run --gpus all)",
        reason, version_text(kOldestDriver));
  // Never closed: the driver has threads and exit handlers of its own.
  static auto& keep = *new DynamicLibrary(std::move(*library));
  DriverApi& api = it.api;
  auto version_of = reinterpret_cast<decltype(api.cuDriverGetVersion)>(keep.find_symbol("cuDriverGetVersion"));
  if (!version_of) return format("the library {} is not an NVIDIA driver: it has no cuDriverGetVersion", name);
  if (version_of(&api.version) != CUDA_SUCCESS || api.version < kOldestDriver)
    return format("the NVIDIA driver is too old: it supports CUDA {}, and {} or newer is needed. Update the driver",
                  version_text(api.version), version_text(kOldestDriver));
  std::string missing;
#define SINTER_FETCH(function, symbol)                                               \
  api.function = reinterpret_cast<decltype(api.function)>(keep.find_symbol(symbol)); \
  if (!api.function && missing.empty()) missing = symbol;
  SINTER_DRIVER_FUNCTIONS(SINTER_FETCH)
#undef SINTER_FETCH
  if (!missing.empty()) return format("the NVIDIA driver {} has no {}. Update or reinstall the driver", name, missing);
  if (CUresult result = api.cuInit(0); result != CUDA_SUCCESS) {
    const char* remedy = "Look at `nvidia-smi` and the kernel's log";
    if (result == CUDA_ERROR_NO_DEVICE) remedy = "Is there a GPU, and does CUDA_VISIBLE_DEVICES name it?";
    if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
      remedy = "The driver's library and its kernel module have different versions: restart after an update";
    return format("the NVIDIA driver does not start: {}. {}", fault_text(api, result), remedy);
  }
  if (CUresult result = api.cuDeviceGetCount(&it.devices); result != CUDA_SUCCESS)
    return format("the NVIDIA driver does not tell its devices: {}", fault_text(api, result));
  if (it.devices == 0) return "the NVIDIA driver finds no GPU. Does CUDA_VISIBLE_DEVICES name one?";
  it.devices = std::min(it.devices, kMaxDevices);
  return {};
}

Driver& the_driver() {
  static Driver& instance = *[] {
    StageTimer timer(CompileStage::kDevice);
    auto* it = new Driver;
    it->problem = start(*it);
    if (!it->problem.empty()) it->devices = 0;
    return it;
  }();
  return instance;
}

int attribute(const DriverApi& api, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check_driver(api.cuDeviceGetAttribute(&value, which, device), "asking the device for its properties");
  return value;
}

std::string device_name(const DriverApi& api, CUdevice device) {
  char text[256] = "";
  check_driver(api.cuDeviceGetName(text, sizeof text, device), "asking the device for its name");
  return text;
}

void open_device(CudaDevice& it, int index) {
  StageTimer timer(CompileStage::kDevice);
  auto& api = driver();
  it.index = index;
  check_driver(api.cuDeviceGet(&it.handle, index), "opening the device");
  CudaDeviceInfo& info = it.info;
  info.name = device_name(api, it.handle);
  auto ask = [&](CUdevice_attribute which) { return attribute(api, it.handle, which); };
  info.major = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.minor = ask(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  check(info.major >= 8, "cuda:{} ({}) has compute capability {}.{}; 8.0 or newer is needed", index, info.name,
        info.major, info.minor);
  info.multiprocessors = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.threads_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  info.l2_bytes = ask(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.shared_bytes = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  info.shared_bytes_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.registers_per_multiprocessor = ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  size_t bytes = 0;
  check_driver(api.cuDeviceTotalMem(&bytes, it.handle), "asking the device for its memory");
  info.memory_bytes = int64_t(bytes);
  auto context = format("making a context on cuda:{}", index);
  check_driver(api.cuDevicePrimaryCtxRetain(&it.context, it.handle), context.c_str());
  CUcontext previous = nullptr;
  api.cuCtxGetCurrent(&previous);
  check_driver(api.cuCtxSetCurrent(it.context), context.c_str());
  CUresult result = api.cuStreamCreateWithPriority(&it.stream, CU_STREAM_NON_BLOCKING, 0);
  api.cuCtxSetCurrent(previous);
  check_driver(result, "making a stream");
}

[[noreturn]] void no_such_device(int device) {
  auto& api = driver();
  std::string list;
  for (int i = 0; i < the_driver().devices; ++i) {
    CUdevice handle = 0;
    check_driver(api.cuDeviceGet(&handle, i), "opening the device");
    list += format("{}cuda:{} ({})", i ? ", " : "", i, device_name(api, handle));
  }
  throw_error(format("there is no device cuda:{}; this machine has {}", device, list));
}

}  // namespace

std::string CudaDeviceInfo::architecture() const { return format("sm_{}{}", major, minor); }

bool cuda_is_available() { return the_driver().problem.empty(); }
const std::string& cuda_problem() { return the_driver().problem; }
int cuda_device_count() { return the_driver().devices; }
int cuda_driver_version() { return the_driver().api.version; }
const CudaDeviceInfo& cuda_device_info(int device) { return cuda_device(device).info; }

const DriverApi& driver() {
  Driver& it = the_driver();
  if (!it.problem.empty()) [[unlikely]]
    throw_error("CUDA is not available: " + it.problem);
  return it.api;
}

CudaDevice& cuda_device(int device) {
  struct Opened {
    std::once_flag once;
    CudaDevice device;
  };
  static auto& all = *new std::array<Opened, kMaxDevices>;
  if (device < 0 || device >= the_driver().devices) [[unlikely]]
    no_such_device(device);
  Opened& opened = all[device];
  std::call_once(opened.once, [&] { open_device(opened.device, device); });
  return opened.device;
}

void throw_driver_error(CUresult result, const std::string& what) {
  auto& api = driver();
  std::string message = format("{}: the CUDA driver says {}", what, fault_text(api, result));
  switch (result) {
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      throw_error(message + "; this cannot be recorded into a CUDA graph");
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      throw_error(
          format("{}. A kernel that was queued before has failed, and the device cannot be used in this process any "
                 "more; tensors on the CPU and on other devices can. Queued last: {}. SINTER_CUDA_SYNC=1 waits "
                 "after each kernel and so names the one that fails",
                 message, recent_cuda_kernels()));
    case CUDA_ERROR_OUT_OF_MEMORY:
      throw OutOfMemoryError(message);
    default:
      throw_error(message);
  }
}

CudaDeviceGuard::CudaDeviceGuard(int device) {
  auto& it = cuda_device(device);
  auto& api = driver();
  CUcontext current = nullptr;
  check_driver(api.cuCtxGetCurrent(&current), "asking for the current context");
  if (current == it.context) return;
  check_driver(api.cuCtxSetCurrent(it.context), "changing to the device");
  previous_ = current;
  changed_ = true;
}

QuietDeviceGuard::QuietDeviceGuard(int device) {
  driver().cuCtxGetCurrent(&previous_);
  driver().cuCtxSetCurrent(cuda_device(device).context);
}

QuietDeviceGuard::~QuietDeviceGuard() { driver().cuCtxSetCurrent(previous_); }

CudaDeviceGuard::~CudaDeviceGuard() {
  if (changed_) driver().cuCtxSetCurrent(static_cast<CUcontext>(previous_));
}

}  // namespace sinter::runtime
#endif
