#pragma once
// The mode of floating-point arithmetic in which ahead-of-time kernels run.
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace sinter::runtime {

// Denormals are zero while it lives, on whichever thread the task runs, so that results do not depend on the thread.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() : saved_(_mm_getcsr()) {
    if (saved_ != (saved_ | kFlush)) _mm_setcsr(saved_ | kFlush);
  }
  ~FlushDenormals() {
    if (saved_ != (saved_ | kFlush)) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kFlush = 0x8040;
  unsigned saved_;
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    if (!(saved_ & kFlush)) set(saved_ | kFlush);
  }
  ~FlushDenormals() {
    if (!(saved_ & kFlush)) set(saved_);
  }

 private:
  static constexpr unsigned long kFlush = 1ul << 24;
  static void set(unsigned long mode) { asm volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
  unsigned long saved_;
#else
  FlushDenormals() {}
  ~FlushDenormals() {}
#endif
};

}  // namespace sinter::runtime
