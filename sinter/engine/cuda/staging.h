#pragma once
// Library calls take addresses, not places (arguments.h): where an operand has a place only, they work on a copy.
#include <vector>

#include "sinter/engine/cuda/arguments.h"

namespace sinter {

class CudaStaging {
 public:
  explicit CudaStaging(Device device) : device_(device) {}
  // The address of what slot `i` holds, or of a copy of its bytes.
  void* read(const StepArguments& slots, size_t i, int64_t bytes);
  // The address to write slot `i` at; `finish` copies it to its place.
  void* write(const StepArguments& slots, size_t i, int64_t bytes);
  void finish();

 private:
  void copy(int64_t to, int64_t from, int64_t bytes);

  struct Late {
    int64_t to, from, bytes;
  };
  Device device_;
  std::vector<Late> late_;
};

}  // namespace sinter
