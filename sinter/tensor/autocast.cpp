#include "sinter/tensor/autocast.h"

#include "sinter/base/error.h"

namespace sinter::autocast {

namespace {

// A byte for each kind of device: 0, or one more than the dtype.
thread_local int64_t state = 0;

int shift_of(DeviceType device) { return 8 * int(device); }

}  // namespace

bool is_on() { return state != 0; }
int64_t fingerprint() { return state; }

std::optional<DType> dtype_on(DeviceType device) {
  auto byte = int(state >> shift_of(device) & 0xff);
  return byte ? std::optional(DType(byte - 1)) : std::nullopt;
}

void set(DeviceType device, std::optional<DType> dtype) {
  check(!dtype || *dtype == kBFloat16 || *dtype == kFloat16, "autocast: the lower type is bf16 or f16, not {}", *dtype);
  state &= ~(int64_t(0xff) << shift_of(device));
  if (dtype) state |= int64_t(int(*dtype) + 1) << shift_of(device);
}

Pause::Pause(int64_t fingerprint) : before_(state) { state = fingerprint; }
Pause::~Pause() { state = before_; }

}  // namespace sinter::autocast
