#pragma once
// What the runtime of a kind of device other than the host does: memory, copies, what its kernels report. A kind is a folder
// (cuda/, hip/) whose libraries are opened when they are first wanted.
#include <memory>
#include <string>

#include "sinter/runtime/cpu/ceilings.h"
#include "sinter/tensor/buffer.h"

namespace sinter::runtime {

// A point in a device's queue, behind what was queued before it was made.
class QueuePoint {
 public:
  virtual ~QueuePoint() = default;
  // Until the device has come so far; throws what its kernels have reported.
  virtual void wait() const = 0;
};

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  // Why tensors cannot be on such a device here, or nothing be compiled for one, and what to do about it; empty when they can.
  virtual const std::string& problem() const = 0;
  virtual const std::string& compiler_problem() const = 0;

  // --- of the device with this number
  // What its code is compiled for: "sm_90", "gfx90a".
  virtual std::string architecture(int index) const = 0;
  // What it can do at best; nothing where that is not measured.
  virtual const Ceilings& ceilings(int index) const = 0;
  virtual Allocator& allocator(int index) const = 0;
  // The most bytes that tensors have had since the start or the last reset; 0 where nobody counts.
  virtual int64_t memory_peak(int /*index*/) const { return 0; }
  virtual void reset_memory_peak(int /*index*/) const {}
  // The address of the cell in which a kernel of these ops notes an index that is out of range.
  virtual int64_t error_cell(int index, const std::string& ops) const = 0;

  // Of page-locked host memory; null where this kind of device has none.
  virtual Allocator* pinned_allocator() const { return nullptr; }
  // As copy_bytes, where one side at least is of this kind.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                    bool non_blocking) const = 0;
  // Null where this kind of device does its work before it returns.
  virtual std::unique_ptr<QueuePoint> queue_point(int /*index*/) const { return nullptr; }
};

// Of a device other than the host.
const DeviceRuntime& runtime_of(Device device);

// Of any device.
const Ceilings& ceilings_of(Device device);

}  // namespace sinter::runtime
