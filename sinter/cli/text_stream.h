#pragma once
// Text on stdout as it is generated.
#include <unistd.h>

#include <iostream>
#include <string>
#include <string_view>
#include <utility>

namespace sinter::cli {

// On a terminal the first piece waits for the second: between them the step is compiled, and its progress bar would be
// drawn over what stands on the line. `before` waits with it.
class TextStream {
 public:
  explicit TextStream(std::string before = "") : waiting_(std::move(before)) {}

  void write(std::string_view piece) {
    waiting_ += piece;
    if (std::exchange(first_, false) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO)) return;
    flush();
  }
  // What still waits, and the end of the line.
  void finish() {
    waiting_ += '\n';
    flush();
  }

 private:
  void flush() { std::cout << std::exchange(waiting_, {}) << std::flush; }

  std::string waiting_;
  bool first_ = true;
};

}  // namespace sinter::cli
