#pragma once
// What the functions of ops/fft.h share.
#include <optional>
#include <string_view>

#include "sinter/ops/fourier.h"
#include "sinter/tensor/tensor.h"

namespace sinter::spectrum {

// The operand as numbers that can be transformed: integers become the default dtype. An Error for the half types, but under autocast, which
// widens them.
Tensor numbers(const char* op, const TensorArg& arg);
// The same; complex ones are an Error.
Tensor reals(const char* op, const TensorArg& arg);
// Complex numbers, or real ones as such, with their parts in a new last dimension.
Tensor pairs(const Tensor& x);
Tensor conjugate_pairs(const Tensor& pairs);

// Cut, or gone on with zeros, along a dimension counted from the front.
Tensor resized(const Tensor& x, int64_t dim, const Dim& size);

FourierNorm norm_of(const char* op, std::optional<std::string_view> norm, bool forward);

}  // namespace sinter::spectrum
