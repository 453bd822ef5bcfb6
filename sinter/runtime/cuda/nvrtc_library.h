#pragma once
// NVRTC, NVIDIA's run-time compiler, as one opened library: what this process and its compile workers share. Knows no store,
// no GPU and no driver.
#include <optional>
#include <span>
#include <string>

#include "sinter/base/dynamic_library.h"

namespace sinter::runtime {

struct NvrtcOutcome {
  enum class Kind : char {
    kCompiled = 'c',  // `code` is a cubin
    kRefused = 'r',   // the text is at fault
    kFailed = 'f',    // NVRTC is: it knows no such architecture
  };
  Kind kind = Kind::kFailed;
  std::string code, log;
};

class NvrtcLibrary {
 public:
  // The first of the names that opens; `problem` says why none is of use.
  explicit NvrtcLibrary(std::span<const std::string> names);

  const std::string& problem() const { return problem_; }
  const std::string& version() const { return version_; }  // "13.0"
  const std::string& file() const { return file_; }        // where it was found

  // Machine code of a text for an architecture. Any number of threads may ask at once, but its front end reads one text
  // at a time.
  NvrtcOutcome compile(const std::string& text, const std::string& architecture) const;

 private:
  struct Functions;

  std::string bind();

  std::optional<DynamicLibrary> library_;
  const Functions* functions_ = nullptr;  // of a library that is kept
  int major_ = 0, minor_ = 0;
  std::string problem_, version_, file_;
};

}  // namespace sinter::runtime
