#pragma once
// The families of ops. Each file of ops/ lists its own; registry.cpp joins them into the one list that op codes, the
// parser, the tests and the docs are made from.
#include <span>

#include "sinter/graph/op.h"

namespace sinter {

using OpFamily = std::span<const Op* const>;

OpFamily unary_ops();
OpFamily activation_ops();
OpFamily binary_ops();
OpFamily compare_ops();
OpFamily reduce_ops();
OpFamily running_ops();
OpFamily complex_ops();
OpFamily creation_ops();
OpFamily random_ops();
OpFamily special_ops();
OpFamily bessel_ops();
OpFamily polynomial_ops();
OpFamily variate_ops();
OpFamily view_ops();
OpFamily layout_ops();
OpFamily indexing_ops();
OpFamily sort_ops();
OpFamily contract_ops();
OpFamily grouped_ops();
OpFamily quantized_ops();
OpFamily pool_ops();
OpFamily fold_ops();
OpFamily attention_ops();
OpFamily norm_ops();
OpFamily row_norm_ops();
OpFamily control_ops();
OpFamily device_ops();
OpFamily fused_ops();
OpFamily factorization_ops();
OpFamily linear_system_ops();
OpFamily pseudo_inverse_ops();
OpFamily fourier_ops();

}  // namespace sinter
