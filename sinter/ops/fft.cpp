// The transforms of sinter::fft by those of ops/fourier.h, which work on pairs: sizes, dimensions and normalisation are
// settled here.
#include "sinter/ops/fft.h"

#include <numeric>

#include "sinter/base/error.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/fourier.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/spectrum.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/autocast.h"

namespace sinter {

namespace spectrum {

Tensor numbers(const char* op, const TensorArg& arg) {
  const Tensor& x = tensor_operand(op, arg);
  if (is_differentiable(x.dtype())) {
    if (item_size(real_dtype(x.dtype())) >= 4) return x;
    check(autocast::is_on(), "{}: takes f32, f64 and complex numbers, not {}; convert with .to(kFloat32)", op,
          x.dtype());
  }
  return x.to(is_floating(x.dtype()) ? kFloat32 : get_default_dtype());
}
Tensor reals(const char* op, const TensorArg& arg) {
  Tensor x = numbers(op, arg);
  check(!x.is_complex(), "{}: takes real numbers, not {}{}; take real(x), or the transform of complex ones", op,
        x.dtype(), x.sizes());
  return x;
}
Tensor pairs(const Tensor& x) { return x.is_complex() ? view_as_real(x) : stack({x, zeros_like(x)}, -1); }
Tensor conjugate_pairs(const Tensor& pairs) { return stack({pairs.select(-1, 0), -pairs.select(-1, 1)}, -1); }

Tensor resized(const Tensor& x, int64_t dim, const Dim& size) {
  const Dim there = x.size(dim);
  if (there == size) return x;
  if (size < there) return narrow(x, dim, 0, size);
  Shape pad(size_t(2 * (x.dim() - dim)), Dim(0));
  pad.back() = size - there;
  return constant_pad_nd(x, pad);
}

FourierNorm norm_of(const char* op, std::optional<std::string_view> norm, bool forward) {
  const std::string_view name = norm.value_or("backward");
  check(name == "backward" || name == "forward" || name == "ortho",
        "{}: there is no normalisation '{}'; there are backward, forward and ortho", op, name);
  if (name == "ortho") return FourierNorm::kRootOfN;
  return (name == "forward") == forward ? FourierNorm::kN : FourierNorm::kNone;
}

}  // namespace spectrum

namespace fft {

namespace {

using spectrum::conjugate_pairs;
using spectrum::norm_of;
using spectrum::numbers;
using spectrum::pairs;
using spectrum::reals;
using spectrum::resized;

// What to transform: dimensions from the front, and the sizes of the signal along them. The last size is that of the
// real numbers where there is but a half.
struct Plan {
  IntList dims;
  Shape sizes;
};

enum class Last { kWhole, kHalf };

void check_sizes(const char* op, const Tensor& x, const Plan& plan) {
  for (size_t i = 0; i < plan.dims.size(); ++i)
    check(possibly_le(1, plan.sizes[i]),
          "{}: {} elements along dimension {} of {} cannot be transformed; there must be at least 1", op, plan.sizes[i],
          plan.dims[i], x.sizes());
}

Plan plan_of(const char* op, const Tensor& x, const std::optional<Shape>& s, const std::optional<IntList>& dim,
             Last last) {
  Plan plan;
  const int64_t rank = x.dim();
  if (dim) {
    plan.dims = wrap_dims(op, *dim, rank);
    check(!s || s->size() == dim->size(), "{}: sizes {} and dimensions {} differ in length", op, s.value_or(Shape()),
          *dim);
  } else {
    const int64_t count = s ? s->rank() : rank;
    check(count <= rank, "{}: sizes {} are more than the dimensions of {}", op, s.value_or(Shape()), x.sizes());
    plan.dims.resize(size_t(count));
    std::iota(plan.dims.begin(), plan.dims.end(), rank - count);
  }
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    const Dim there = x.size(plan.dims[i]);
    const bool half = last == Last::kHalf && i + 1 == plan.dims.size();
    const bool given = s && !((*s)[i].is_number() && (*s)[i].number() == -1);
    plan.sizes.push_back(given ? (*s)[i] : half ? 2 * (there - 1) : there);
  }
  check_sizes(op, x, plan);
  return plan;
}

// Along one dimension: `n` and `dim` as a list.
Plan plan_of(const char* op, const Tensor& x, const std::optional<Dim>& n, int64_t dim, Last last) {
  check(x.dim() > 0, "{}: a 0-d tensor has no dimension to transform", op);
  Plan plan{{wrap_dim(op, dim, x.dim())}, {}};
  const Dim there = x.size(plan.dims[0]);
  plan.sizes.push_back(n ? *n : last == Last::kHalf ? 2 * (there - 1) : there);
  check_sizes(op, x, plan);
  return plan;
}

Tensor resized(Tensor x, const Plan& plan, Last last) {
  for (size_t i = 0; i < plan.dims.size(); ++i) {
    const bool half = last == Last::kHalf && i + 1 == plan.dims.size();
    x = resized(x, plan.dims[i], half ? plan.sizes[i] / 2 + 1 : plan.sizes[i]);
  }
  return x;
}

// Of complex numbers, or of real ones, whose transform back is the conjugate of that forward.
Tensor complex_transform(const Tensor& x, const Plan& plan, FourierNorm norm, bool forward) {
  if (plan.dims.empty()) return x.is_complex() ? clone(x) : x.to(complex_dtype(x.dtype()));
  Tensor y = resized(x.is_complex() ? view_as_real(x) : x, plan, Last::kWhole);
  if (x.is_complex()) return view_as_complex(fourier::complex_to_complex(y, plan.dims, norm, forward));
  y = fourier::real_to_complex(y, plan.dims, norm, false);
  return view_as_complex(forward ? y : conjugate_pairs(y));
}

void check_any(const char* op, const Plan& plan) {
  check(!plan.dims.empty(), "{}: there is no dimension to transform; name at least one", op);
}

// Forward, or as its conjugate back.
Tensor half_transform(const char* op, const Tensor& x, const Plan& plan, FourierNorm norm, bool forward) {
  check_any(op, plan);
  Tensor y = fourier::real_to_complex(resized(x, plan, Last::kWhole), plan.dims, norm, true);
  return view_as_complex(forward ? y : conjugate_pairs(y));
}

// Back, or forward as that of the conjugates.
Tensor real_transform(const char* op, const Tensor& x, const Plan& plan, FourierNorm norm, bool forward) {
  check_any(op, plan);
  Tensor y = resized(pairs(x), plan, Last::kHalf);
  return fourier::complex_to_real(forward ? conjugate_pairs(y) : y, plan.dims, norm, plan.sizes.back());
}

// The six of each kind differ in how the dimensions are told.
template <class Sizes, class Dims>
Tensor to_complex(const char* op, const TensorArg& arg, const Sizes& s, const Dims& dim,
                  std::optional<std::string_view> norm, bool forward) {
  UserPosition here(arg.where(), op);
  const Tensor x = numbers(op, arg);
  return complex_transform(x, plan_of(op, x, s, dim, Last::kWhole), norm_of(op, norm, forward), forward);
}
template <class Sizes, class Dims>
Tensor to_half(const char* op, const TensorArg& arg, const Sizes& s, const Dims& dim,
               std::optional<std::string_view> norm, bool forward) {
  UserPosition here(arg.where(), op);
  const Tensor x = reals(op, arg);
  return half_transform(op, x, plan_of(op, x, s, dim, Last::kWhole), norm_of(op, norm, forward), forward);
}
template <class Sizes, class Dims>
Tensor to_real(const char* op, const TensorArg& arg, const Sizes& s, const Dims& dim,
               std::optional<std::string_view> norm, bool forward) {
  UserPosition here(arg.where(), op);
  const Tensor x = numbers(op, arg);
  return real_transform(op, x, plan_of(op, x, s, dim, Last::kHalf), norm_of(op, norm, forward), forward);
}

using Norm = std::optional<std::string_view>;
using Size = std::optional<Dim>;
using Sizes = std::optional<Shape>;
using Dims = std::optional<IntList>;

}  // namespace

Tensor fft(const TensorArg& x, const Size& n, int64_t dim, Norm norm) {
  return to_complex("fft", x, n, dim, norm, true);
}
Tensor ifft(const TensorArg& x, const Size& n, int64_t dim, Norm norm) {
  return to_complex("ifft", x, n, dim, norm, false);
}
Tensor rfft(const TensorArg& x, const Size& n, int64_t dim, Norm norm) {
  return to_half("rfft", x, n, dim, norm, true);
}
Tensor irfft(const TensorArg& x, const Size& n, int64_t dim, Norm norm) {
  return to_real("irfft", x, n, dim, norm, false);
}
Tensor hfft(const TensorArg& x, const Size& n, int64_t dim, Norm norm) {
  return to_real("hfft", x, n, dim, norm, true);
}
Tensor ihfft(const TensorArg& x, const Size& n, int64_t dim, Norm norm) {
  return to_half("ihfft", x, n, dim, norm, false);
}

Tensor fftn(const TensorArg& x, const Sizes& s, const Dims& dim, Norm norm) {
  return to_complex("fftn", x, s, dim, norm, true);
}
Tensor ifftn(const TensorArg& x, const Sizes& s, const Dims& dim, Norm norm) {
  return to_complex("ifftn", x, s, dim, norm, false);
}
Tensor rfftn(const TensorArg& x, const Sizes& s, const Dims& dim, Norm norm) {
  return to_half("rfftn", x, s, dim, norm, true);
}
Tensor irfftn(const TensorArg& x, const Sizes& s, const Dims& dim, Norm norm) {
  return to_real("irfftn", x, s, dim, norm, false);
}
Tensor hfftn(const TensorArg& x, const Sizes& s, const Dims& dim, Norm norm) {
  return to_real("hfftn", x, s, dim, norm, true);
}
Tensor ihfftn(const TensorArg& x, const Sizes& s, const Dims& dim, Norm norm) {
  return to_half("ihfftn", x, s, dim, norm, false);
}

Tensor fft2(const TensorArg& x, const Sizes& s, const IntList& dim, Norm norm) {
  return to_complex("fft2", x, s, Dims(dim), norm, true);
}
Tensor ifft2(const TensorArg& x, const Sizes& s, const IntList& dim, Norm norm) {
  return to_complex("ifft2", x, s, Dims(dim), norm, false);
}
Tensor rfft2(const TensorArg& x, const Sizes& s, const IntList& dim, Norm norm) {
  return to_half("rfft2", x, s, Dims(dim), norm, true);
}
Tensor irfft2(const TensorArg& x, const Sizes& s, const IntList& dim, Norm norm) {
  return to_real("irfft2", x, s, Dims(dim), norm, false);
}
Tensor hfft2(const TensorArg& x, const Sizes& s, const IntList& dim, Norm norm) {
  return to_real("hfft2", x, s, Dims(dim), norm, true);
}
Tensor ihfft2(const TensorArg& x, const Sizes& s, const IntList& dim, Norm norm) {
  return to_half("ihfft2", x, s, Dims(dim), norm, false);
}

// --- frequencies

namespace {

// Whole numbers 0, 1, … over n d; those from `turn` on are n less.
Tensor frequencies(const char* op, const Dim& n, const Dim& count, const Dim& turn, double d,
                   const TensorOptions& options) {
  check(is_floating(options.dtype_), "{}: frequencies are floating numbers, not {}", op, options.dtype_);
  check(possibly_le(0, n), "{}: {} is no number of samples", op, n);
  Tensor k = arange_of_size(count, TensorOptions(kInt64).device(options.device_));
  if (!turn.same_as(count)) k = where(k < turn, k, k - n);
  Tensor out = (k.to(kFloat64) / n / d).to(options.dtype_);
  if (options.requires_grad_) out.requires_grad_();
  return out;
}

Tensor shifted(const char* op, const TensorArg& arg, const Dims& dim, bool back) {
  UserPosition here(arg.where(), op);
  const Tensor& x = tensor_operand(op, arg);
  IntList dims = dim ? wrap_dims(op, *dim, x.dim()) : IntList(size_t(x.dim()));
  if (!dim) std::iota(dims.begin(), dims.end(), 0);
  if (dims.empty()) return clone(x);
  Shape shifts;
  for (int64_t d : dims) shifts.push_back((x.size(d) + int64_t(back)) / 2);
  return roll(x, shifts, dims);
}

}  // namespace

Tensor fftfreq(const Dim& n, double d, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return frequencies("fftfreq", n, n, (n + 1) / 2, d, options);
}
Tensor fftfreq(const Dim& n, const TensorOptions& options, Where where) { return fftfreq(n, 1, options, where); }
Tensor rfftfreq(const Dim& n, double d, const TensorOptions& options, Where where) {
  UserPosition here(where);
  return frequencies("rfftfreq", n, n / 2 + 1, n / 2 + 1, d, options);
}
Tensor rfftfreq(const Dim& n, const TensorOptions& options, Where where) { return rfftfreq(n, 1, options, where); }

Tensor fftshift(const TensorArg& x, const Dims& dim) { return shifted("fftshift", x, dim, false); }
Tensor ifftshift(const TensorArg& x, const Dims& dim) { return shifted("ifftshift", x, dim, true); }

}  // namespace fft

}  // namespace sinter
