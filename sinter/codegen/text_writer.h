#pragma once
// What the writers of kernels share: indented lines.
#include "sinter/codegen/value_text.h"

namespace sinter::codegen {

class TextWriter {
 protected:
  void line(const std::string& s) { text_ += std::string(size_t(depth_) * 2, ' ') + s + "\n"; }
  void lines(const std::vector<std::string>& all) {
    for (auto& s : all) line(s);
  }
  void open(const std::string& s) {
    line(s);
    ++depth_;
  }
  void close(const std::string& s = "}") {
    --depth_;
    line(s);
  }

  std::string text_;

 private:
  int depth_ = 0;
};

}  // namespace sinter::codegen
