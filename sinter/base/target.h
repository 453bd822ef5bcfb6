#pragma once
// What passes, schedules and writers of kernels may know of a kind of device: facts, and nothing that runs. What a device does
// (memory, steps, launches) is asked of its engine, engine/device/device_engine.h.

namespace sinter {

struct Target {
  bool gpu = false;       // kernels are spread over blocks of threads
  int lane_width = 1;     // of a GPU: threads that run in step and exchange registers, a warp (32) or a wavefront (64)
  int block_threads = 1;  // the most threads that a block may have; at most the square of lane_width
  bool operator==(const Target&) const = default;
};

inline constexpr Target kCpuTarget{};
// A GPU with so many lanes.
constexpr Target gpu_target(int lane_width) { return {.gpu = true, .lane_width = lane_width, .block_threads = 1024}; }

}  // namespace sinter
