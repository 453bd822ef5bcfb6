#pragma once
// clang's AMDGPU target as a child process: HIP text without headers becomes a relocatable object. ROCm is not needed; what its
// device library would define stays undefined.
#include <string>

namespace sinter::testing {

// Why there is none here; empty where there is.
const std::string& amd_compiler_problem();

// The object's bytes; an Error has the diagnostics.
std::string compile_for_amd(const std::string& text, const std::string& architecture);

// Whether the object is of an AMD GPU and has a kernel of this name.
bool has_amd_kernel(const std::string& object, const std::string& name);

}  // namespace sinter::testing
