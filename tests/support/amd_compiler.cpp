#include "tests/support/amd_compiler.h"

#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "sinter/base/error.h"
#include "tests/support/own_directory.h"

namespace sinter::testing {

namespace {

std::string read(const std::string& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(bytes).str();
}

}  // namespace

const std::string& amd_compiler_problem() {
  static const std::string problem = [] {
    const char* tried = "clang-19 --print-targets 2>/dev/null | grep -q amdgcn";
    return std::system(tried) == 0 ? "" : "there is no clang-19 with the AMDGPU target in PATH";
  }();
  return problem;
}

std::string compile_for_amd(const std::string& text, const std::string& architecture) {
  OwnDirectory directory;
  std::ofstream(directory.file("kernels.hip")) << text;
  const std::string command = format(
                                  "clang-19 -cc1 -triple amdgcn-amd-amdhsa -aux-triple x86_64-linux-gnu -x hip "
                                  "-fcuda-is-device -target-cpu {} ",
                                  architecture) +
                              format("-std=c++17 -O2 -emit-obj -o {} {} >{} 2>&1", directory.file("object"),
                                     directory.file("kernels.hip"), directory.file("log"));
  if (std::system(command.c_str()) != 0) throw_error(read(directory.file("log")));
  return read(directory.file("object"));
}

bool has_amd_kernel(const std::string& object, const std::string& name) {
  Elf64_Ehdr header;
  if (object.size() < sizeof header) return false;
  std::memcpy(&header, object.data(), sizeof header);
  // Its descriptor, by its name among the symbols'.
  return header.e_machine == EM_AMDGPU && object.find(std::string("\0", 1) + name + ".kd" + '\0') != std::string::npos;
}

}  // namespace sinter::testing
