#pragma once
// The archive of torch.export.save: a ZIP whose entries lie uncompressed at multiples of 64 bytes, so that tensors are views of
// the mapped file. Its pickles are never read.
#include <map>
#include <memory>
#include <string>

#include "sinter/interop/program.h"
#include "sinter/tensor/tensor.h"

namespace sinter::interop {

class Archive {
 public:
  explicit Archive(const std::string& path);
  ~Archive();

  // The program. Its text is checked against the archive's checksum; the bytes of tensors are not, which would read them all.
  ExportedProgram program() const;
  struct Stored {
    Tensor tensor;
    bool requires_grad = false;
  };
  // The tensor of a parameter, buffer or constant; an Error when there is none.
  Stored tensor(const std::string& name) const;

 private:
  struct Contents;
  const std::unique_ptr<const Contents> contents_;
};

}  // namespace sinter::interop
