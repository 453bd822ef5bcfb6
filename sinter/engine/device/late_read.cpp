#include "sinter/engine/device/late_read.h"

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/tensor/buffer.h"

namespace sinter {

bool LateRead::pays(Device device) { return !device.is_cpu() && pinned_allocator_for(device) != nullptr; }

LateRead::LateRead(Tensor values) : values_(std::move(values)) {
  const Device device = values_.device();
  SINTER_INTERNAL_ASSERT(values_.dtype() == kInt64, "late reads are of integers");
  if (!pays(device)) return;
  values_ = values_.contiguous();
  Allocator* allocator = pinned_allocator_for(device);
  const size_t bytes = size_t(values_.numel() * item_size(kInt64));
  void* memory = allocator->allocate(bytes);
  copy_ = from_blob(memory, values_.sizes(), kInt64, [=] { allocator->release(memory, bytes); });
  copy_bytes(memory, cpu(), values_.data_ptr(), device, bytes, /*non_blocking=*/true);
  copied_ = runtime::runtime_of(device).queue_point(device.index());
}

std::vector<int64_t> LateRead::wait() {
  if (copied_) copied_->wait();
  Tensor host = copied_ ? copy_ : values_.to(cpu()).contiguous();
  const int64_t* data = host.data_ptr<int64_t>();
  return {data, data + host.numel()};
}

}  // namespace sinter
