#pragma once
// Where a tensor lives.
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

// CPU, CUDA and HIP are LibTorch's spellings: torch::DeviceType::CUDA.
enum class DeviceType : uint8_t { kCPU, kCUDA, kHIP, CPU = kCPU, CUDA = kCUDA, HIP = kHIP };

inline constexpr DeviceType kCPU = DeviceType::kCPU, kCUDA = DeviceType::kCUDA, kHIP = DeviceType::kHIP;
inline constexpr DeviceType kDeviceTypes[] = {kCPU, kCUDA, kHIP};
// "cpu", "cuda", "hip".
std::string_view name_of(DeviceType type);

using DeviceIndex = int8_t;

class Device {
 public:
  constexpr Device() = default;
  constexpr Device(DeviceType type, int index = 0) : type_(type), index_(DeviceIndex(index)) {}
  // "cpu", "cuda" or "cuda:N", "hip" or "hip:N"; an Error for anything else.
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}

  constexpr DeviceType type() const { return type_; }
  // Of several devices of a type; 0 for the CPU.
  constexpr DeviceIndex index() const { return index_; }
  // Always: where LibTorch has none, this is 0.
  constexpr bool has_index() const { return true; }
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type_ == DeviceType::kCPU; }
  bool is_cuda() const { return type_ == DeviceType::kCUDA; }
  bool is_hip() const { return type_ == DeviceType::kHIP; }
  // "cpu", "cuda:1".
  std::string str() const;

 private:
  DeviceType type_ = DeviceType::kCPU;
  DeviceIndex index_ = 0;
};

inline Device cpu() { return {}; }
inline Device cuda(int index = 0) { return {DeviceType::kCUDA, index}; }
// An AMD GPU. Its kernels are compiled by the tests, but were never run.
inline Device hip(int index = 0) { return {DeviceType::kHIP, index}; }

// Its str().
std::string to_string(Device d);
std::ostream& operator<<(std::ostream& out, Device d);
// The Device of a text.
Device parse_device(const std::string& text);

}  // namespace sinter
