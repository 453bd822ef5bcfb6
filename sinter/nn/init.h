#pragma once
// What is done to parameters before and between steps. Names and defaults follow PyTorch.
#include <string>
#include <tuple>
#include <utility>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/tensor/tensor.h"

// Fillings, in place and unrecorded; each gives its tensor back.
namespace sinter SINTER_API {
namespace nn::init {

enum class FanMode : uint8_t { kFanIn, kFanOut };
enum class Nonlinearity : uint8_t { kLinear, kSigmoid, kTanh, kReLU, kLeakyReLU, kSELU };

}  // namespace nn::init

// --- LibTorch's words: kaiming_normal_(weight, 0, kFanOut, kReLU); those with a text also name what options name by one,
// as in TransformerOptions().activation(kGELU)
inline constexpr nn::Word<nn::init::FanMode::kFanIn> kFanIn;
inline constexpr nn::Word<nn::init::FanMode::kFanOut> kFanOut;
inline constexpr nn::Word<nn::init::Nonlinearity::kLinear> kConv1D, kConv2D, kConv3D, kConvTranspose1D, kConvTranspose2D,
    kConvTranspose3D;
inline constexpr nn::Word<nn::init::Nonlinearity::kSigmoid> kSigmoid;
inline constexpr nn::Word<nn::init::Nonlinearity::kLeakyReLU> kLeakyReLU;
inline constexpr nn::TextWord<nn::Word<nn::init::Nonlinearity::kTanh>> kTanh{{}, "tanh"};
inline constexpr nn::TextWord<nn::Word<nn::init::Nonlinearity::kReLU>> kReLU{{}, "relu"};
inline constexpr nn::TextWord<nn::Word<>> kGELU{{}, "gelu"};

namespace nn::init {

// The factor by which a layer in front of this nonlinearity should grow; `param` is the slope of kLeakyReLU.
double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);
// Inputs and outputs of one element of a layer with this weight, [out, in, window…].
std::pair<int64_t, int64_t> calculate_fan_in_and_fan_out(const Tensor& weight);
inline std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& weight) {
  return calculate_fan_in_and_fan_out(weight);
}

const Tensor& uniform_(const Tensor& tensor, double low = 0, double high = 1, Where where = Where::current());
const Tensor& normal_(const Tensor& tensor, double mean = 0, double std = 1, Where where = Where::current());
const Tensor& constant_(const Tensor& tensor, const Scalar& value, Where where = Where::current());
const Tensor& zeros_(const Tensor& tensor, Where where = Where::current());
const Tensor& ones_(const Tensor& tensor, Where where = Where::current());
// Ones on the diagonal of a matrix.
const Tensor& eye_(const Tensor& tensor, Where where = Where::current());
// For the weight of a convolution, [out, in, window…]: a one in the middle of the window for each channel that goes in and out.
const Tensor& dirac_(const Tensor& tensor, Where where = Where::current());
// A matrix of normal draws, a share `sparsity` of each column zero.
const Tensor& sparse_(const Tensor& tensor, double sparsity, double std = 0.01, Where where = Where::current());
// Glorot: variance 2 / (fan_in + fan_out), times gain².
const Tensor& xavier_uniform_(const Tensor& tensor, double gain = 1, Where where = Where::current());
const Tensor& xavier_normal_(const Tensor& tensor, double gain = 1, Where where = Where::current());
// He: variance gain² / fan; `a` is the slope of the leaky ReLU that follows.
const Tensor& kaiming_uniform_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::kFanIn,
                               Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU, Where where = Where::current());
const Tensor& kaiming_normal_(const Tensor& tensor, double a = 0, FanMode mode = FanMode::kFanIn,
                              Nonlinearity nonlinearity = Nonlinearity::kLeakyReLU, Where where = Where::current());
// The normal distribution without what lies outside [low, high].
const Tensor& trunc_normal_(const Tensor& tensor, double mean = 0, double std = 1, double low = -2, double high = 2,
                            Where where = Where::current());
// A matrix (dimensions after the first merged) with orthonormal rows or columns, whichever are fewer, times gain.
const Tensor& orthogonal_(const Tensor& tensor, double gain = 1, Where where = Where::current());

}  // namespace nn::init
}  // namespace sinter

// Bounds on gradients, applied between backward() and the optimiser's step, and parameters as one vector.
namespace sinter SINTER_API {
namespace nn::utils {

// The norm of all elements together, as f32; 0 for none.
Tensor get_total_norm(const TensorList& tensors, double norm_type = 2, bool error_if_nonfinite = false,
                      Where where = Where::current());
// Scales all gradients by one factor so that their common norm is at most max_norm; gives the norm they had. Tensors
// without a gradient are passed over. Nothing is read on the host unless error_if_nonfinite.
Tensor clip_grad_norm_(const TensorList& parameters, double max_norm, double norm_type = 2,
                       bool error_if_nonfinite = false, Where where = Where::current());
// Holds every element of every gradient within [-clip_value, clip_value].
void clip_grad_value_(const TensorList& parameters, double clip_value, Where where = Where::current());

// All elements one after another, 1-d and recorded; and back, unrecorded and in place.
Tensor parameters_to_vector(const TensorList& parameters, Where where = Where::current());
void vector_to_parameters(const Tensor& vector, const TensorList& parameters, Where where = Where::current());

}  // namespace nn::utils
}  // namespace sinter
