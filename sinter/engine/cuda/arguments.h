#pragma once
// What a generated CUDA kernel is launched with, and the addresses that a CUDA graph finds only when it runs.
//
// A graph's launches hold the addresses they were recorded with. The caller's tensors lie elsewhere in every call, so while
// a graph is recorded they are given *places*: numbers that look like addresses, may have bytes added to them, and name a
// cell of the graph's parameter block. Kernels read the cell when they run; the block is refreshed before each launch.
#include <cstdint>
#include <span>
#include <vector>

#include "sinter/base/small_vector.h"
#include "sinter/runtime/cuda/module.h"
#include "sinter/tensor/buffer.h"

namespace sinter {

// The address that stands for cell `cell` of the parameter block. Real addresses have their upper 16 bits clear.
inline constexpr int kPlaceShift = 44;
inline int64_t place_of_cell(int cell) { return int64_t(uint64_t(1) << 63 | uint64_t(cell) << kPlaceShift); }
inline bool is_place(int64_t address) { return address < 0; }
inline bool is_place(const void* address) { return is_place(int64_t(reinterpret_cast<uintptr_t>(address))); }

// The recording under way on this thread. Records what its launches must keep.
class CudaRecording {
 public:
  // `block`: the device address of the parameter block.
  explicit CudaRecording(int64_t block);
  ~CudaRecording();
  CudaRecording(const CudaRecording&) = delete;

  static CudaRecording* current() { return current_; }
  int64_t block() const { return block_; }
  // Memory that the graph uses again in every run.
  void keep(BufferPtr buffer) { kept_.push_back(std::move(buffer)); }
  std::vector<BufferPtr> take_kept() { return std::move(kept_); }
  // For CudaScratch: steps of one graph run one after the other and share it.
  BufferPtr scratch(Device device, size_t bytes);

 private:
  static inline thread_local CudaRecording* current_ = nullptr;
  int64_t block_;
  CudaRecording* previous_;
  std::vector<BufferPtr> kept_;
  BufferPtr scratch_;
};

// Memory for the time of one step: to be held until its last kernel is queued. Afterwards it serves other work, which comes
// behind that of the step. A step holds one at a time.
class CudaScratch {
 public:
  CudaScratch(Device device, size_t bytes);
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }

 private:
  BufferPtr buffer_;
};

// For what cannot read places (library calls): an Error that says so, which keeps the program from being recorded.
void refuse_place(const char* who, const void* address);

// What the slots of a kernel hold: addresses, places, numbers, and numbers that lie in cells of the parameter block.
class CudaSlots {
 public:
  // `stays`: no kernel of the program writes there.
  void add_address(int64_t address, bool stays = false) { add(address, is_place(address), stays); }
  void add_number(int64_t bits) { add(bits, false, true); }
  void add_cell(int cell) { add(place_of_cell(cell), true, true); }
  void add_numbers(std::span<const int64_t> all) {
    for (int64_t bits : all) add_number(bits);
  }
  // Slot `i` of another.
  void add_from(const CudaSlots& other, size_t i) { add(other.values_[i], other.is_indirect(i), other.stays(i)); }

  size_t size() const { return values_.size(); }
  int64_t operator[](size_t i) const { return values_[i]; }
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

// The next kernel of this thread starts when all before it have ended, even if it may overlap with its predecessor: that one
// is not of the same program, and may write what kernels of a program take to stay.
void begin_cuda_program();

// Keeps the device's stream busy for about so many seconds, doing nothing.
void hold_up_cuda(Device device, double seconds);

// Queues the kernel with these slots as its parameter, `Args` in codegen/cuda.
void cuda_launch(const runtime::CudaFunction& function, Device device, const runtime::CudaGrid& grid, int64_t range,
                 const CudaSlots& slots);

}  // namespace sinter
