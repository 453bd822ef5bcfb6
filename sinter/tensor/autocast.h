#pragma once
// Mixed precision as a state of the thread: for which kinds of devices products and the like run in a lower type. What an op
// does about it is a fact of the op (graph/op.h), applied where ops are called (ops/autocast.h).
#include <cstdint>
#include <optional>

#include "sinter/tensor/device.h"
#include "sinter/tensor/dtype.h"

namespace sinter::autocast {

// The lower type; nothing where it is off.
std::optional<DType> dtype_on(DeviceType device);
void set(DeviceType device, std::optional<DType> dtype);
// On for some kind of device.
bool is_on();
// The state as one number; 0: off everywhere.
int64_t fingerprint();

// Off while alive: inside ops, whose operands have been converted, and while gradients flow, which have the types of the
// values they belong to. With a fingerprint: as it was then.
class Pause {
 public:
  explicit Pause(int64_t fingerprint = 0);
  ~Pause();
  Pause(const Pause&) = delete;

 private:
  const int64_t before_;
};

}  // namespace sinter::autocast
