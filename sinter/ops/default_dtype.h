#pragma once
// What set_default_dtype() means for operands: graphs are written for f32 as the type of number literals and of real functions
// of integers. Where another type is the default one, integers become it before the op is called, so that a graph says the same
// whatever the default is when it is read again.
#include "sinter/graph/op.h"

namespace sinter {

// The operands as the op wants them; the given ones where f32 is the default, or no number or integer decides the type.
class DefaultDTypeOperands {
 public:
  DefaultDTypeOperands(const Op& op, std::span<const TensorArg> inputs) : inputs_(inputs) {
    if (op.kind == OpKind::kPointwise && get_default_dtype() != kFloat32) [[unlikely]]
      convert(op);
  }
  operator std::span<const TensorArg>() const { return inputs_; }

 private:
  void convert(const Op& op);
  std::span<const TensorArg> inputs_;
  std::vector<TensorArg> converted_;
};

}  // namespace sinter
