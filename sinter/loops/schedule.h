#pragma once
// Schedule: which axis of a nest becomes vectors, and how. The choice reads only the nest, so it can be printed and
// tested alone.
#include "sinter/loops/loop_nest.h"

namespace sinter {

enum class VectorMode : uint8_t {
  kScalar,   // one element at a time
  kMap,      // lanes along the last parallel axis
  kColumns,  // a reduction: lanes along the last parallel axis, accumulators side by side
  kRows      // a reduction: lanes along the last sequential axis, joined at the end
};

struct Schedule {
  VectorMode mode = VectorMode::kScalar;
  Dim vector_axis;  // its symbol
  bool stream = false;  // a map's stores go past the caches: for results too large to stay in them. Needs aligned results
};

// How an offset moves along an axis: not at all, by one element, by a stride, or in a way no stride describes.
enum class Movement : uint8_t { kFixed, kUnit, kStrided, kIrregular };
Movement movement(const Dim& offset, const Dim& axis);

Schedule schedule(const LoopNest& nest, bool stream = false);

std::string to_string(const Schedule& schedule);

// While alive, kernels of the process are written one element at a time: to find out whether lanes are at fault.
class NoLanes {
 public:
  NoLanes();
  ~NoLanes();
  NoLanes(const NoLanes&) = delete;
};
bool lanes_allowed();

}  // namespace sinter
