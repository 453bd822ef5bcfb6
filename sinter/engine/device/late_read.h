#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "sinter/runtime/device_runtime.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// Integers on their way from a device to the host: read behind what the device has been given so far, while the host gives it
// more.
class LateRead {
 public:
  // i64, contiguous.
  explicit LateRead(Tensor values);
  // Whether a device works while the host goes on, so that reading late pays.
  static bool pays(Device device);

  // Waits for the device to come so far. Once.
  std::vector<int64_t> wait();

 private:
  Tensor values_;
  Tensor copy_;                               // in page-locked memory, where the device queues
  std::unique_ptr<runtime::QueuePoint> copied_;
};

}  // namespace sinter
