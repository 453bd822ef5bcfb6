// Matrix products.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

Tensor product(In a, In b) { return matmul(a, b); }

// A weight [out, in] that is transposed on the fly is what linear() takes.
Tensor gemm(In a, In b, Maybe c, double alpha, double beta, bool trans_a, bool trans_b) {
  const Tensor left = trans_a ? t(a) : a.tensor();
  if (trans_b && alpha == 1 && beta == 1 && c.defined() && c.dim() == 1 && c.size(0) == b.size(0)) return linear(left, b, c);
  Tensor out = matmul(left, trans_b ? t(b) : b.tensor());
  if (alpha != 1) out = mul(out, alpha);
  if (!c.defined()) return out;
  return add(out, beta == 1 ? c : mul(c, beta));
}

}  // namespace

std::span<const Function> matrix_operators() {
  static const Function kList[] = {
      {"onnx::MatMul.1(Tensor A, Tensor B) -> Tensor", product},
      {"onnx::Gemm.7(Tensor A, Tensor B, Tensor? C=None, *, float alpha=1.0, float beta=1.0, int transA=0, int transB=0) -> Tensor",
       gemm},
      {"onnx::Einsum.12(Tensor[] Inputs, *, str equation) -> Tensor",
       [](const TensorList& operands, Text equation) { return einsum(equation, operands); }},
      {"onnx::Det.11(Tensor X) -> Tensor", [](In x) { return linalg::det(x); }},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
