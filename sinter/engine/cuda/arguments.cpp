#include "sinter/engine/cuda/arguments.h"

#include <cstring>

#include "sinter/base/error.h"
#include "sinter/engine/cuda/own_kernel.h"

namespace sinter {

namespace {

// What comes before the slots in the parameter of a kernel: see `Args` in codegen/gpu/gpu_kernel.embed.
struct Head {
  uint64_t indirect[7] = {};
  int64_t block = 0;
  int64_t range = 0;
};
static_assert(kMostSlots == 64 * std::size(Head{}.indirect));

thread_local bool starts_program = false;

}  // namespace

BufferPtr CudaRecording::scratch(Device device, size_t bytes) {
  if (!scratch_ || scratch_->bytes() < bytes) keep(scratch_ = allocate_buffer(bytes, device));
  return scratch_;
}

CudaScratch::CudaScratch(Device device, size_t bytes) {
  if (bytes == 0) return;
  auto* recording = CudaRecording::current();
  buffer_ = recording ? recording->scratch(device, bytes) : allocate_buffer(bytes, device);
}

void refuse_place(const char* who, const void* address) {
  check(!is_place(address), "{} needs the addresses of its operands when it is recorded, and this one belongs to the caller",
        who);
}

void hold_up_cuda(Device device, double seconds) {
  static constexpr const char* kText = R"(
extern "C" __global__ void sinter_hold_up(const __grid_constant__ long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}
)";
  static auto& kernel = *new OwnKernel("sinter_hold_up", kText);
  auto nanoseconds = int64_t(seconds * 1e9);
  runtime::cuda_launch(kernel.on(device.index()), device.index(), {}, &nanoseconds, sizeof nanoseconds);
}

void begin_cuda_program() { starts_program = true; }

void cuda_launch(const runtime::CudaFunction& function, Device device, const runtime::CudaGrid& grid, int64_t range,
                 const StepArguments& slots) {
  SINTER_INTERNAL_ASSERT(slots.size() <= kMostSlots, "a kernel has {} slots", slots.size());
  alignas(8) char bytes[sizeof(Head) + kMostSlots * sizeof(int64_t)];
  Head head;
  head.range = range;
  if (auto* recording = CudaRecording::current()) head.block = recording->block();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots.is_indirect(i)) head.indirect[i / 64] |= uint64_t(1) << (i % 64);
    int64_t value = slots[i];
    std::memcpy(bytes + sizeof head + i * sizeof value, &value, sizeof value);
  }
  std::memcpy(bytes, &head, sizeof head);
  runtime::CudaGrid started = grid;
  started.overlaps_previous = grid.overlaps_previous && !starts_program;
  starts_program = false;
  runtime::cuda_launch(function, device.index(), started, bytes, sizeof head + slots.size() * sizeof(int64_t));
}

}  // namespace sinter
