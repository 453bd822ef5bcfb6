// A program of torch.export.save: either its graph and its tensors can be read, every byte of them, or it throws an Error. The text
// of a program that is no archive is read, too, since the checksum of an archive stops most changes of it.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "sinter/base/error.h"
#include "sinter/interop/archive.h"
#include "tests/fuzz/readers/plain_tensors.h"

namespace {

void read_archive(const uint8_t* data, size_t size) {
  static const int file = memfd_create("fuzz.pt2", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) std::abort();
  sinter::interop::Archive archive(path);
  for (auto& input : archive.program().inputs) {
    if (input.kind == sinter::interop::ProgramInput::Kind::kUser ||
        input.kind == sinter::interop::ProgramInput::Kind::kPlain)
      continue;
    sinter::Tensor tensor = archive.tensor(input.name).tensor;
    // The first and the last element, wherever its strides put them.
    const sinter::TensorImpl& body = tensor.impl();
    int64_t last = 0;
    for (size_t d = 0; d < body.sizes.size(); ++d) last += (body.sizes[d] - 1) * body.strides[d];
    if (body.numel == 0) continue;
    auto* bytes = static_cast<const volatile unsigned char*>(tensor.data_ptr());
    (void)bytes[0];
    (void)bytes[(last + 1) * tensor.element_size() - 1];
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    if (size > 0 && data[0] == '{')
      sinter::interop::read_program({reinterpret_cast<const char*>(data), size}, "the program");
    else
      read_archive(data, size);
  } catch (const sinter::Error&) {
  }
  return 0;
}
