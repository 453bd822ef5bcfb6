#pragma once
// What a step is launched with.
//
// A recording (a CUDA graph) holds the addresses it was made with. The caller's tensors lie elsewhere in every call, so while
// one is made they are given *places*: numbers that look like addresses, may have bytes added to them, and name a cell of the
// recording's parameter block. Kernels read the cell when they run; the block is refreshed before each launch.
#include <cstdint>
#include <span>

#include "sinter/base/small_vector.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// The address that stands for cell `cell` of the parameter block. Real addresses have their upper 16 bits clear.
inline constexpr int kPlaceShift = 44;
inline int64_t place_of_cell(int cell) { return int64_t(uint64_t(1) << 63 | uint64_t(cell) << kPlaceShift); }
inline bool is_place(int64_t address) { return address < 0; }
inline bool is_place(const void* address) { return is_place(int64_t(reinterpret_cast<uintptr_t>(address))); }

// One slot an operand, inputs before outputs: addresses, places, the bits of numbers, and numbers that lie in cells of the
// parameter block.
class StepArguments {
 public:
  // `stays`: no step of the program writes there.
  void add_address(int64_t address, bool stays = false) { add(address, is_place(address), stays); }
  void add_number(int64_t bits) { add(bits, false, true); }
  void add_cell(int cell) { add(place_of_cell(cell), true, true); }
  void add_numbers(std::span<const int64_t> all) {
    for (int64_t bits : all) add_number(bits);
  }
  // Slot `i` of another.
  void add_from(const StepArguments& other, size_t i) { add(other.values_[i], other.is_indirect(i), other.stays(i)); }

  size_t size() const { return values_.size(); }
  int64_t operator[](size_t i) const { return values_[i]; }
  std::span<const int64_t> values() const { return {values_.data(), values_.size()}; }
  void* address(int i) const { return i < 0 ? nullptr : reinterpret_cast<void*>(uintptr_t(values_[size_t(i)])); }
  bool is_indirect(size_t i) const { return flags_[i] & kIndirect; }
  bool stays(size_t i) const { return flags_[i] & kStays; }

 private:
  static constexpr uint8_t kIndirect = 1, kStays = 2;
  void add(int64_t value, bool indirect, bool stays) {
    values_.push_back(value);
    flags_.push_back(uint8_t(indirect * kIndirect + stays * kStays));
  }
  SmallVector<int64_t, 64> values_;
  SmallVector<uint8_t, 64> flags_;
};

}  // namespace sinter
