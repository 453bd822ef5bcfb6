#pragma once
// Memory for packed operands and tiles. Internal to gemm/ and attention/.
#include <cstdint>

namespace sinter::runtime::gemm_detail {

// Memory of a thread, kept from call to call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  ~Scratch();
  void* reserve(int64_t bytes);  // aligned to 64; what was there before is lost

 private:
  void* data_ = nullptr;
  int64_t size_ = 0;
};

void* allocate_aligned(int64_t bytes);  // throws OutOfMemoryError; release with std::free

struct GemmScratch {
  Scratch a, b, tile, turned, rows;
};
GemmScratch& thread_scratch();

}  // namespace sinter::runtime::gemm_detail
