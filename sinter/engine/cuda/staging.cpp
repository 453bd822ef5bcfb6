#include "sinter/engine/cuda/staging.h"

#include <algorithm>

#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/own_kernel.h"
#include "sinter/runtime/cuda/device.h"

namespace sinter {

namespace {

constexpr const char* kCopyBytes = R"(
namespace k {
extern "C" __global__ void sinter_copy_bytes(const __grid_constant__ Args<3> a) {
  let_next_start();
  wait_for_previous();
  char* to = (char*)a[0];
  const char* from = (const char*)a[1];
  const i64 bytes = a[2], step = (i64)gridDim.x * blockDim.x, first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  const bool wide = (((u64)to | (u64)from) & 15) == 0;
  const i64 pieces = wide ? bytes / 16 : 0;
  for (i64 i = first; i < pieces; i += step) ((ulonglong2*)to)[i] = ((const ulonglong2*)from)[i];
  for (i64 i = pieces * 16 + first; i < bytes; i += step) to[i] = from[i];
}
}  // namespace k
)";

OwnKernel& copy_bytes_kernel() {
  static auto& kernel = *new OwnKernel("sinter_copy_bytes", kCopyBytes, codegen::cuda_prelude());
  return kernel;
}

void* fresh(Device device, int64_t bytes) {
  // Only a recording has places, and its memory stays.
  BufferPtr buffer = allocate_buffer(size_t(bytes), device);
  if (auto* recording = CudaRecording::current()) recording->keep(buffer);
  return buffer->data();
}

}  // namespace

void CudaStaging::copy(int64_t to, int64_t from, int64_t bytes) {
  StepArguments slots;
  slots.add_address(to);
  slots.add_address(from);
  slots.add_number(bytes);
  runtime::CudaGrid grid;
  int processors = runtime::cuda_device_info(device_.index()).multiprocessors;
  grid.blocks[0] = unsigned(std::clamp<int64_t>((bytes + 4095) / 4096, 1, processors * 8));
  grid.threads[0] = 256;
  grid.overlaps_previous = true;
  cuda_launch(copy_bytes_kernel().on(device_.index()), device_, grid, 0, slots);
}

void* CudaStaging::read(const StepArguments& slots, size_t i, int64_t bytes) {
  if (!slots.is_indirect(i)) return reinterpret_cast<void*>(uintptr_t(slots[i]));
  void* at = fresh(device_, bytes);
  copy(int64_t(reinterpret_cast<uintptr_t>(at)), slots[i], bytes);
  return at;
}

void* CudaStaging::write(const StepArguments& slots, size_t i, int64_t bytes) {
  if (!slots.is_indirect(i)) return reinterpret_cast<void*>(uintptr_t(slots[i]));
  void* at = fresh(device_, bytes);
  late_.push_back({slots[i], int64_t(reinterpret_cast<uintptr_t>(at)), bytes});
  return at;
}

void CudaStaging::finish() {
  for (auto& late : late_) copy(late.to, late.from, late.bytes);
  late_.clear();
}

}  // namespace sinter
