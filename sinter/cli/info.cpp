// `sinter info`: what decides how fast kernels are and where they come from.
#include <cstdlib>
#include <iostream>
#include <thread>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/cli/commands.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/runtime/cuda/cublaslt.h"
#include "sinter/runtime/cuda/cudnn.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/runtime/hip/hip.h"

namespace sinter::cli {

namespace {

// Compiles a kernel that does nothing; empty when that works, else why not, in a line.
std::string problem_with(runtime::CpuCompiler compiler) {
  try {
    runtime::ToolchainOptions options;
    options.compiler = compiler;
    runtime::Toolchain(options).compile("extern \"C\" void nothing() {}", "nothing");
    return "";
  } catch (const Error& error) {
    // The reason stands between the kernel's name and what to install.
    std::string text = error.message();
    size_t begin = text.find('\n') + 1;
    return "no: " + text.substr(begin, text.find('\n', begin) - begin);
  }
}

// "NVIDIA H200, sm_90, 132 multiprocessors, 139.8 GiB".
std::vector<std::string> gpus() {
  std::vector<std::string> out;
  for (int i = 0; i < runtime::cuda_device_count(); ++i) {
    auto& gpu = runtime::cuda_device_info(i);
    out.push_back(format("{}, {}, {} multiprocessors, {} GiB", gpu.name, gpu.architecture(), gpu.multiprocessors,
                         fixed(double(gpu.memory_bytes) / double(1 << 30), 1)));
  }
  return out;
}

}  // namespace

void print_info(bool json) {
  auto& target = runtime::host_target();
  std::string clang = problem_with(runtime::CpuCompiler::kClang), gxx = problem_with(runtime::CpuCompiler::kGxx);
  runtime::CodeStore store(runtime::CodeStore::default_directory());
  if (json) {
    nlohmann::json report = {{"version", SINTER_VERSION},
                             {"target", target.name},
                             {"instruction_set", runtime::cpu_isa_name(target.isa)},
                             {"vector_bytes", target.vector_bytes},
                             {"features", target.features},
                             {"clang", clang.empty()},
                             {"gxx", gxx.empty()},
                             {"cache_directory", store.directory()},
                             {"threads", num_threads()},
                             {"cores", std::thread::hardware_concurrency()},
                             {"cuda_devices", gpus()},
                             {"cuda_problem", runtime::cuda_problem()},
                             {"nvrtc", runtime::nvrtc_problem().empty()},
                             {"cublaslt", runtime::cublaslt_problem().empty()},
                             {"cudnn", runtime::cudnn_problem().empty()},
                             {"hip_problem", runtime::hip_runtime().problem()}};
    std::cout << report.dump(2) << "\n";
    return;
  }
  auto line = [](std::string_view label, const std::string& text) {
    std::cout << label << std::string(18 - label.size(), ' ') << text << "\n";
  };
  auto compiler = [](const std::string& problem) { return problem.empty() ? std::string("works") : problem; };
  line("sinter", SINTER_VERSION);
  line("target", target.name);
  line("instruction set", format("{}, vectors of {} bytes", runtime::cpu_isa_name(target.isa), target.vector_bytes));
  line("clang in process", compiler(clang));
  line("g++ (fallback)", compiler(gxx));
  line("kernel cache", store.directory().empty() ? "none" : store.directory());
  line("threads", format("{} of {} cores", num_threads(), std::thread::hardware_concurrency()));
  auto& amd_problem = runtime::hip_runtime().problem();
  line("AMD GPU", amd_problem.empty() ? runtime::hip_device_info(0).architecture : "no: " + amd_problem);
  if (!runtime::cuda_is_available()) return line("GPU", "no: " + runtime::cuda_problem());
  for (auto& gpu : gpus()) line("GPU", gpu);
  line("NVRTC", compiler(runtime::nvrtc_problem()));
  line("cuBLASLt", compiler(runtime::cublaslt_problem()));
  line("cuDNN", compiler(runtime::cudnn_problem()));
}

}  // namespace sinter::cli
