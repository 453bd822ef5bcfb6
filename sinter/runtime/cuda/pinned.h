#pragma once
// What copies tell the allocator of page-locked memory.
#include <cstddef>

#include "sinter/runtime/cuda/stream.h"

namespace sinter::runtime {

// Whether the address lies in page-locked memory, ours or somebody else's.
bool is_pinned(const void* data);
// Work queued on the stream uses this host memory: where it is ours, it is not given to others before that is done.
void note_pinned_use(const void* data, int device, CudaStream stream);

}  // namespace sinter::runtime
