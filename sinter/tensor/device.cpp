#include "sinter/tensor/device.h"

#include <charconv>
#include <ostream>

#include "sinter/base/error.h"

namespace sinter {

std::string to_string(Device d) { return d.is_cpu() ? "cpu" : "cuda:" + std::to_string(d.index); }

Device parse_device(const std::string& text) {
  if (text == "cpu") return cpu();
  if (text == "cuda") return cuda();
  if (text.starts_with("cuda:")) {
    int index = -1;
    auto [end, error] = std::from_chars(text.data() + 5, text.data() + text.size(), index);
    if (error == std::errc() && end == text.data() + text.size() && index >= 0 && index < 128) return cuda(index);
  }
  throw_error(format("device '{}' is not known; write 'cpu', 'cuda' or 'cuda:N'", text));
}

std::ostream& operator<<(std::ostream& out, Device d) { return out << to_string(d); }

}  // namespace sinter
