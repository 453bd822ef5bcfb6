// A safetensors file: either its tensors can be read, every byte of them, or it throws an Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "tests/fuzz/readers/plain_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int file = memfd_create("fuzz.safetensors", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) std::abort();
  try {
    sinter::SafeTensorsFile contents(path);
    unsigned sum = 0;
    for (auto& name : contents.names()) {
      if (!contents.info(name).dtype) continue;
      auto tensor = contents.tensor(name);
      auto* bytes = static_cast<const unsigned char*>(tensor.data_ptr());
      for (int64_t i = 0; i < tensor.numel().to_int() * tensor.element_size(); ++i) sum += bytes[i];
    }
    volatile unsigned used = sum;
    (void)used;
  } catch (const sinter::Error&) {
  }
  return 0;
}
