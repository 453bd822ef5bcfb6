#include "sinter/tensor/device.h"

#include <charconv>
#include <ostream>

#include "sinter/base/error.h"

namespace sinter {

std::string_view name_of(DeviceType type) {
  switch (type) {
    case DeviceType::kCPU: return "cpu";
    case DeviceType::kCUDA: return "cuda";
    case DeviceType::kHIP: break;
  }
  return "hip";
}

std::string Device::str() const { return is_cpu() ? "cpu" : format("{}:{}", name_of(type_), int(index_)); }
std::string to_string(Device d) { return d.str(); }
Device::Device(const std::string& text) : Device(parse_device(text)) {}

Device parse_device(const std::string& text) {
  if (text == "cpu") return cpu();
  for (DeviceType type : kDeviceTypes) {
    if (type == kCPU || !text.starts_with(name_of(type))) continue;
    std::string_view rest = std::string_view(text).substr(name_of(type).size());
    if (rest.empty()) return type;
    int index = -1;
    auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), index);
    if (rest[0] == ':' && error == std::errc() && end == rest.data() + rest.size() && index >= 0 && index < 128)
      return {type, index};
  }
  throw_error(format("device '{}' is not known; write 'cpu', 'cuda' or 'cuda:N', 'hip' or 'hip:N'", text));
}

std::ostream& operator<<(std::ostream& out, Device d) { return out << to_string(d); }

}  // namespace sinter
