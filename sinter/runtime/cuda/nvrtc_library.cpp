// NVRTC's interface is small and stable, so it is declared here: CUDA text compiles in a build without CUDA's headers.
#include "sinter/runtime/cuda/nvrtc_library.h"

#include <dlfcn.h>

#include <type_traits>

#include "sinter/base/error.h"

namespace sinter::runtime {

namespace {

constexpr int kOldest = 12;
constexpr int kSuccess = 0, kInvalidOption = 5;
constexpr const char* kRemedy =
    "Install CUDA's run-time compiler (NVRTC 12 or newer: the toolkit, or the package cuda-nvrtc), and set CUDA_HOME where "
    "the loader does not find it";

using Program = struct OpaqueProgram*;

}  // namespace

struct NvrtcLibrary::Functions {
  const char* (*error_text)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*create)(Program*, const char* text, const char* name, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
};

NvrtcLibrary::NvrtcLibrary(std::span<const std::string> names) {
  std::string reason, first_reason;
  for (auto& name : names) {
    library_ = DynamicLibrary::try_open(name, /*lazy=*/true, &reason);
    if (library_) break;
    if (first_reason.empty()) first_reason = reason;
  }
  problem_ = library_ ? bind() : format("NVRTC was not found: {}. {}", first_reason, kRemedy);
}

std::string NvrtcLibrary::bind() {
  auto& it = *new Functions;  // for as long as the process
  functions_ = &it;
  std::string missing;
  auto fetch = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library_->find_symbol(symbol));
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
  if (!missing.empty()) return format("the library {} has no {}. {}", library_->path(), missing, kRemedy);
  if (it.version(&major_, &minor_) != kSuccess || major_ < kOldest)
    return format("NVRTC {}.{} ({}) is too old. {}", major_, minor_, library_->path(), kRemedy);
  version_ = format("{}.{}", major_, minor_);
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(it.version), &found) && found.dli_fname) file_ = found.dli_fname;
  return {};
}

NvrtcOutcome NvrtcLibrary::compile(const std::string& text, const std::string& architecture) const {
  const Functions& api = *functions_;
  struct OwnProgram {
    const Functions& api;
    Program handle = nullptr;
    ~OwnProgram() {
      if (handle) api.destroy(&handle);
    }
  } program{api};
  if (int result = api.create(&program.handle, text.c_str(), "kernel.cu", 0, nullptr, nullptr); result != kSuccess)
    return {NvrtcOutcome::Kind::kRefused, {}, format("NVRTC does not take the program: {}", api.error_text(result))};

  std::string target = "--gpu-architecture=" + architecture;
  // Since 12.9: no declarations of textures and the like, and no cache besides our store.
  const bool newer = major_ > 12 || minor_ >= 9;
  const char* options[] = {target.c_str(), "-std=c++17", "-default-device", "-minimal", "--no-cache"};
  int result = api.compile(program.handle, newer ? 5 : 3, options);

  NvrtcOutcome out;
  size_t size = 0;
  if (api.log_size(program.handle, &size) == kSuccess && size > 1) {
    out.log.resize(size);
    if (api.log(program.handle, out.log.data()) == kSuccess)
      out.log.pop_back();  // its zero
    else
      out.log.clear();
  }
  if (result == kSuccess) {
    size = 0;
    result = api.cubin_size(program.handle, &size);
    out.code.resize(size);
    if (result == kSuccess) result = api.cubin(program.handle, out.code.data());
    if (result == kSuccess && size > 0) {
      out.kind = NvrtcOutcome::Kind::kCompiled;
      return out;
    }
    out.code.clear();
  }
  if (out.log.empty()) out.log = api.error_text(result);
  out.kind = result == kInvalidOption ? NvrtcOutcome::Kind::kFailed : NvrtcOutcome::Kind::kRefused;
  return out;
}

}  // namespace sinter::runtime
