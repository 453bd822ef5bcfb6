#pragma once
// A matrix product by itself as the fusion pass makes a kernel of it.
#include "sinter/ops/fused.h"
#include "sinter/tensor/tensor.h"

namespace sinter::testing {

inline FusedAttrs lone_product(const Tensor& a, const Tensor& b) {
  Graph body;
  Value left = body.add_input({a.dtype(), a.sizes(), a.device()}), right = body.add_input({b.dtype(), b.sizes(), b.device()});
  Value result = body.add(*find_op("mm"), {left, right}).result();
  body.set_outputs({result});
  Shape domain = result.type().shape;
  return {.kind = FusedKind::kProduct, .body = SubGraph(std::move(body)), .domain = std::move(domain)};
}

}  // namespace sinter::testing
