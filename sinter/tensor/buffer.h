#pragma once
// Reference-counted memory on a device, and what a device must implement to provide it.
#include <atomic>
#include <cstddef>
#include <functional>

#include "sinter/base/api.h"
#include "sinter/base/intrusive_ptr.h"
#include "sinter/tensor/device.h"

namespace sinter SINTER_API {

class Allocator;

// Shared by every view of it. `version` counts in-place writes: autograd refuses a saved value that has since changed.
class Buffer : public RefCounted {
 public:
  Buffer(void* data, size_t bytes, Device device, Allocator* allocator)
      : data_(data), bytes_(bytes), device_(device), allocator_(allocator) {}
  // Memory owned by somebody else, who is told when the last view is gone.
  Buffer(void* data, size_t bytes, Device device, std::function<void()> release)
      : data_(data), bytes_(bytes), device_(device), release_(std::move(release)) {}
  ~Buffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  std::atomic<uint32_t> version{0};

 private:
  void* data_;
  size_t bytes_;
  Device device_;
  Allocator* allocator_ = nullptr;
  std::function<void()> release_;
};

using BufferPtr = IntrusivePtr<Buffer>;

// Memory of one device. Allocation throws OutOfMemoryError; memory is 64-byte aligned and uninitialised.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data, size_t bytes) noexcept = 0;
};

// The allocator of a device; an Error says when the device has none here. Defined in runtime/.
Allocator& allocator_for(Device device);

BufferPtr allocate_buffer(size_t bytes, Device device);

// Page-locked host memory for copies to a device; null where the device has none, an Error where it is not here. Defined in
// runtime/.
Allocator* pinned_allocator_for(Device device);

// Copies between any two devices; host memory may be read or changed on return, except page-locked memory with
// `non_blocking`. Defined in runtime/.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, size_t bytes, bool non_blocking = false);

}  // namespace sinter
