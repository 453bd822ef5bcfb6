#include "sinter/runtime/cpu/cpu_features.h"

#include <algorithm>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "sinter/base/error.h"

namespace sinter::runtime {

namespace {

#if defined(__x86_64__)

void detect(CpuTarget& target, CpuIsa limit) {
  __builtin_cpu_init();
  target.triple = "x86_64-linux-gnu";
  target.arch = "x86-64";
  if (limit >= CpuIsa::kAvx2 && __builtin_cpu_supports("x86-64-v3")) {
    target.isa = CpuIsa::kAvx2;
    target.arch = "x86-64-v3";
    target.vector_bytes = 32;
    target.fma = true;
  }
  if (limit >= CpuIsa::kAvx512 && __builtin_cpu_supports("x86-64-v4")) {
    target.isa = CpuIsa::kAvx512;
    target.arch = "x86-64-v4";
    target.vector_bytes = 64;
    auto add = [&](const char* feature, bool found) {
      if (found) target.features.push_back(feature);
      return found;
    };
    target.avx512_bf16 = add("avx512bf16", __builtin_cpu_supports("avx512bf16"));
    target.avx512_vnni = add("avx512vnni", __builtin_cpu_supports("avx512vnni"));
    add("avx512vbmi", __builtin_cpu_supports("avx512vbmi"));
  }
}

#elif defined(__aarch64__)

// Vectors of 128 bits, fma and f16 conversions belong to the base of the architecture: a limit changes the choice of
// ahead-of-time kernels, never what the compiler may use.
void detect(CpuTarget& target, CpuIsa limit) {
  target.triple = "aarch64-linux-gnu";
  target.arch = "armv8-a";
  target.fma = true;
  if (limit >= CpuIsa::kNeon) target.isa = CpuIsa::kNeon;
}

#else
#error "Sinter runs on x86-64 and AArch64"
#endif

CpuIsa isa_limit() {
  const char* value = std::getenv("SINTER_CPU_ISA");
  if (!value || !*value) return CpuIsa::kAvx512;
  std::string text = value;
  for (CpuIsa isa : {CpuIsa::kScalar, CpuIsa::kNeon, CpuIsa::kAvx2, CpuIsa::kAvx512})
    if (text == cpu_isa_name(isa)) return isa;
  throw_error(format("SINTER_CPU_ISA is '{}'; it may be scalar, neon, avx2 or avx512", text));
}

}  // namespace

const char* cpu_isa_name(CpuIsa isa) {
  constexpr const char* kNames[] = {"scalar", "neon", "avx2", "avx512"};
  return kNames[int(isa)];
}

bool CpuTarget::has(const std::string& feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

CpuTarget detect_cpu(CpuIsa limit) {
  CpuTarget target;
  detect(target, limit);
  target.name = target.arch;
  for (auto& feature : target.features) target.name += "+" + feature;
  return target;
}

bool enable_amx_bf16() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool enabled = [] {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
    constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
    if (!(edx & kBf16) || !(edx & kTile)) return false;
    // Their state is too large for Linux to keep for every process.
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return enabled;
#else
  return false;
#endif
}

const CpuTarget& host_target() {
  static const CpuTarget target = detect_cpu(isa_limit());
  return target;
}

}  // namespace sinter::runtime
