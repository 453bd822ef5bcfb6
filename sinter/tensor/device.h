#pragma once
// Where a tensor lives.
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

enum class DeviceType : uint8_t { kCPU, kCUDA, kHIP };

inline constexpr DeviceType kCPU = DeviceType::kCPU, kCUDA = DeviceType::kCUDA, kHIP = DeviceType::kHIP;
inline constexpr DeviceType kDeviceTypes[] = {kCPU, kCUDA, kHIP};
// "cpu", "cuda", "hip".
std::string_view name_of(DeviceType type);

struct Device {
  DeviceType type = DeviceType::kCPU;
  int8_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType t, int i = 0) : type(t), index(int8_t(i)) {}
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::kCPU; }
  bool is_cuda() const { return type == DeviceType::kCUDA; }
};

inline Device cpu() { return {}; }
inline Device cuda(int index = 0) { return {DeviceType::kCUDA, index}; }
// An AMD GPU. Its kernels are compiled by the tests, but were never run.
inline Device hip(int index = 0) { return {DeviceType::kHIP, index}; }

// "cpu", "cuda:1".
std::string to_string(Device d);
std::ostream& operator<<(std::ostream& out, Device d);
// Reads "cpu", "cuda" or "cuda:N", "hip" or "hip:N"; anything else is an Error.
Device parse_device(const std::string& text);

}  // namespace sinter
