// What the C++ runtime, linked into the module, wants of a C library newer than those that wheels are installed beside.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

// glibc has it from 2.36 on.
extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t out = 0;
  if (getentropy(&out, sizeof(out)) != 0) std::abort();
  return out;
}
