#pragma once
// What instructions the CPU has, and the name under which code is compiled for it.
#include <string>
#include <vector>

namespace sinter::runtime {

// The instruction sets that change how kernels are written. Those of one machine are ordered, each holding those before
// it: kScalar and kNeon on AArch64, the others on x86-64.
enum class CpuIsa { kScalar, kNeon, kAvx2, kAvx512 };

// As SINTER_CPU_ISA names it: "scalar", "neon", "avx2", "avx512".
const char* cpu_isa_name(CpuIsa isa);

// A set of CPU features that code may use. Two equal names mean interchangeable code.
struct CpuTarget {
  std::string name;                   // "x86-64-v4+avx512bf16+avx512vnni": goes into cache keys
  std::string triple;                 // "x86_64-linux-gnu"
  std::string arch;                   // as -march of gcc and -target-cpu of clang: "x86-64-v4"
  std::vector<std::string> features;  // beyond `arch`, as -m<feature> of both compilers: "avx512bf16"
  CpuIsa isa = CpuIsa::kScalar;
  int vector_bytes = 16;  // the widest vector register
  bool fma = false;       // fused multiply-add and f16 conversions (neon, avx2 and up)
  bool avx512_bf16 = false;
  bool avx512_vnni = false;

  bool has(const std::string& feature) const;
};

// The features of this CPU that the operating system has enabled, at most up to `limit`.
CpuTarget detect_cpu(CpuIsa limit = CpuIsa::kAvx512);

// The target of this process: detect_cpu() limited by the environment variable SINTER_CPU_ISA (scalar, neon,
// avx2, avx512).
// Throws Error when the variable has another value.
const CpuTarget& host_target();

// Whether this process may use the tile registers of AMX on bf16. The first call asks the operating system for them.
bool enable_amx_bf16();

}  // namespace sinter::runtime
