#pragma once
// A weight that a product reads encoded: what `dequantize` takes, packed once for the kernels of runtime/cpu/gemm/encoded.h.
#include "sinter/engine/step/arguments.h"
#include "sinter/engine/step/contraction_parts.h"
#include "sinter/runtime/cpu/gemm/encoded.h"

namespace sinter {

class EncodedWeight {
 public:
  EncodedWeight(const ContractionParts::Part& part, std::span<const TensorImpl* const> inputs);

  const runtime::EncodedFormat& format() const { return format_; }
  int64_t bytes() const { return runtime::packed_encoded_bytes(format_); }
  // The slots of what it is packed from.
  void add_operands(std::vector<int>& slots) const;
  void pack(const StepArguments& arguments, void* to) const;
  // Differs where another one is packed otherwise.
  std::string text() const;

 private:
  runtime::EncodedFormat format_;
  runtime::EncodedOperand operand_ = {};  // without addresses
  int codes_, scale_, zero_, table_;      // slots; -1: there is none
};

}  // namespace sinter
