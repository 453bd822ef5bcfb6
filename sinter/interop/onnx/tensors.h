#pragma once
// Tensors of ONNX files: views of the mapped file, or of a file beside it, where they lie as memory wants them.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sinter/interop/onnx/model.h"
#include "sinter/io/file.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop::onnx {

// ONNX's name of an element type, and Sinter's type where it has one.
struct ElementType {
  std::string_view name;
  std::optional<DType> dtype;
};
// "type 77" of what ONNX does not have either.
ElementType element_type(int64_t code);

class TensorFiles {
 public:
  // `file` is kept while a tensor looks at it; what is stored beside it is looked for in `folder`.
  TensorFiles(std::shared_ptr<MappedFile> file, std::string name, std::string folder);

  // An Error when it is damaged, or of a type that Sinter has not.
  Tensor read(const TensorBytes& tensor) const;

 private:
  struct Fields;
  std::string_view outside(const Fields& fields) const;
  Tensor from_memory(std::string_view bytes, const IntList& sizes, DType dtype,
                     const std::shared_ptr<MappedFile>& file) const;

  std::shared_ptr<MappedFile> file_;
  std::string name_, folder_;
  mutable std::map<std::string, std::shared_ptr<MappedFile>> others_;
};

}  // namespace sinter::interop::onnx
