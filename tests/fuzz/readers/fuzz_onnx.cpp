// A model in the ONNX format: either it becomes a program, and its tensors can be read, every byte of them, or it throws an Error.
// Which operators there are plays no part: half of them are taken for known.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/translate.h"
#include "tests/fuzz/readers/plain_tensors.h"

namespace {

using namespace sinter::interop;

const Schema* find_any(std::string_view, std::string_view op, int64_t) {
  static const Schema kMany = parse_schema("onnx::Many.1(Tensor[] inputs, *, int axis=0) -> Tensor");
  static const Schema kNumbers =
      parse_schema("onnx::Numbers.1(Tensor x, int[]? axes=None, State s=None, ScalarType? to=None) -> Tensor");
  if (op.size() % 3 == 0) return &kMany;
  return op.size() % 3 == 1 ? &kNumbers : nullptr;
}

void read_model(const uint8_t* data, size_t size) {
  static const int file = memfd_create("fuzz.onnx", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) std::abort();
  auto mapping = std::make_shared<sinter::MappedFile>("fuzz", path);
  const onnx::Model model = onnx::read_model(mapping->bytes(), path);
  const onnx::Translation program =
      onnx::translate(model, onnx::TensorFiles(mapping, path, "/proc/self/fd"), find_any, path);
  for (auto& stored : program.tensors) {
    auto* bytes = static_cast<const volatile unsigned char*>(stored.tensor.data_ptr());
    for (int64_t i = 0; i < stored.tensor.nbytes(); ++i) (void)bytes[i];
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    read_model(data, size);
  } catch (const sinter::Error&) {
  }
  return 0;
}
