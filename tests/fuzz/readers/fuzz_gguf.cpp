// A GGUF file: either its tensors can be read, every byte of them, and what it says of a model becomes the files of a checkpoint
// and a tokenizer, or it throws an Error.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "sinter/base/error.h"
#include "sinter/io/config.h"
#include "sinter/io/gguf/gguf.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "tests/fuzz/readers/plain_tensors.h"

namespace {

template <class F>
void or_error(F&& f) {
  try {
    f();
  } catch (const sinter::Error&) {
  }
}

void read(const uint8_t* data, size_t size) {
  static const int descriptor = memfd_create("fuzz.gguf", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != ssize_t(size)) std::abort();
  const sinter::GgufFile file(path);
  for (auto& tensor : file.tensors()) {
    const volatile uint8_t* bytes = file.data(tensor);
    for (uint64_t i = 0; i < tensor.size; ++i) (void)bytes[i];
  }
  or_error([&] { sinter::ConfigFile::parse(sinter::gguf::config(file), path); });
  or_error([&] { sinter::ConfigFile::parse(sinter::gguf::generation_config(file), path); });
  or_error([&] { sinter::ConfigFile::parse(sinter::gguf::tokenizer_config(file), path); });
  or_error([&] {
    const auto tokenizer = sinter::Tokenizer::from_json(sinter::gguf::tokenizer(file), path);
    tokenizer.decode(tokenizer.encode("Call me Ishmael. <s>12 é"));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  or_error([&] { read(data, size); });
  return 0;
}
