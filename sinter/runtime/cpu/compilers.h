#pragma once
// The two compilers behind the CPU toolchain. Private to sinter/runtime/cpu.
#include <string>

#include "sinter/base/error.h"
#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::runtime {

// The compiler is missing or failed by itself, so another one may succeed. (A plain Error means the text is wrong.)
class CompilerFailure : public Error {
 public:
  using Error::Error;
};

// It failed over this very text: what it crashed on, or what came of it does not load.
class CompilerCrash : public CompilerFailure {
 public:
  using CompilerFailure::CompilerFailure;
};

// What kernels compiled by it are keyed with: name and version. Empty when it is known to be absent.
std::string clang_identity();
std::string gxx_identity();

// Its release in full, which decides whether it is right; that of clang is known to the plugin, which this loads. Throws
// CompilerFailure.
std::string clang_release();
inline std::string gxx_release() { return gxx_identity(); }

// Clang in process, from the plugin: returns the bytes of a relocatable object.
std::string compile_with_clang(const std::string& source, const std::string& label, const CpuTarget& target);

// g++ as a child process: returns the bytes of a shared library.
std::string compile_with_gxx(const std::string& source, const std::string& label, const CpuTarget& target);

// A directory of its own under $TMPDIR (or /tmp), removed with everything directly inside it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Both throw CompilerFailure.
void write_file(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path);

}  // namespace sinter::runtime
