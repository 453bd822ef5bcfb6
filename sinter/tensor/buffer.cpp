#include "sinter/tensor/buffer.h"

namespace sinter {

Buffer::~Buffer() {
  if (release_)
    release_();
  else if (allocator_)
    allocator_->release(data_, bytes_);
}

BufferPtr allocate_buffer(size_t bytes, Device device) {
  auto& allocator = allocator_for(device);
  return make_intrusive<Buffer>(allocator.allocate(bytes), bytes, device, &allocator);
}

}  // namespace sinter
