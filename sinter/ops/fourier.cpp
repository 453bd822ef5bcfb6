#include "sinter/ops/fourier.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/graph/interpreter.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

double fourier_factor(int64_t norm, double n) {
  switch (FourierNorm(norm)) {
    case FourierNorm::kRootOfN:
      return 1 / std::sqrt(n);
    case FourierNorm::kN:
      return 1 / n;
    default:
      return 1;
  }
}

namespace {

void check_numbers(const OpCall& call) {
  const Type& x = call.inputs[0];
  check(x.dtype == kFloat32 || x.dtype == kFloat64, "{}: takes f32 or f64, not {}; convert with .to(kFloat32)",
        call.name(), x.dtype);
}
// The sizes without that of the pairs.
Shape check_pairs(const OpCall& call) {
  check_numbers(call);
  const Shape& s = call.shape(0);
  check(!s.empty() && s.back() == 2, "{}: expected pairs (re, im) in the last dimension, got shape {}", call.name(), s);
  return Shape(s.begin(), s.end() - 1);
}
void check_dims(const OpCall& call, const IntList& dims, int64_t norm, const Shape& elements) {
  const int64_t rank = int64_t(elements.size());
  check(!dims.empty(), "{}: no dimension to transform is named", call.name());
  check(norm >= 0 && norm <= int64_t(FourierNorm::kN), "{}: there is no normalisation {}", call.name(), norm);
  for (size_t i = 0; i < dims.size(); ++i) {
    check(dims[i] >= 0 && dims[i] < rank, "{}: there is no dimension {} in {}", call.name(), dims[i], elements);
    check(std::find(dims.begin(), dims.begin() + int64_t(i), dims[i]) == dims.begin() + int64_t(i),
          "{}: dimension {} is named twice", call.name(), dims[i]);
    check(possibly_le(1, elements[size_t(dims[i])]), "{}: dimension {} of {} is empty", call.name(), dims[i], elements);
  }
}
Shape with_pairs(Shape elements) {
  elements.push_back(2);
  return elements;
}
Shape with_half(const Shape& elements, int64_t dim) { return replaced(elements, dim, elements[size_t(dim)] / 2 + 1); }

// --- the referee: sums by the definition

using Complex = std::complex<double>;
struct ComplexArray {
  IntList sizes;
  std::vector<Complex> elements;  // row-major

  double count(const IntList& dims) const {
    double n = 1;
    for (int64_t d : dims) n *= double(sizes[size_t(d)]);
    return n;
  }
};

ComplexArray from_pairs(const Array& x) {
  ComplexArray out{{x.sizes.begin(), x.sizes.end() - 1}, {}};
  for (size_t i = 0; i + 1 < x.f.size(); i += 2) out.elements.emplace_back(x.f[i], x.f[i + 1]);
  return out;
}
ComplexArray from_reals(const Array& x) { return {x.sizes, {x.f.begin(), x.f.end()}}; }
void store(const ComplexArray& x, double factor, bool pairs, Array& out) {
  for (size_t i = 0; i < x.elements.size(); ++i) {
    out.f[pairs ? 2 * i : i] = x.elements[i].real() * factor;
    if (pairs) out.f[2 * i + 1] = x.elements[i].imag() * factor;
  }
}

// Each line along `dim` becomes line_of(line), of `size` elements.
template <class F>
ComplexArray along(const ComplexArray& x, int64_t dim, int64_t size, F&& line_of) {
  ComplexArray out{x.sizes, {}};
  out.sizes[size_t(dim)] = size;
  const int64_t n = x.sizes[size_t(dim)];
  int64_t inner = 1, outer = 1;
  for (int64_t d = 0; d < int64_t(x.sizes.size()); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : x.sizes[size_t(d)];
  out.elements.resize(size_t(outer * size * inner));
  std::vector<Complex> line(static_cast<size_t>(n));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t k = 0; k < n; ++k) line[size_t(k)] = x.elements[size_t((o * n + k) * inner + i)];
      const std::vector<Complex> result = line_of(line);
      for (int64_t k = 0; k < size; ++k) out.elements[size_t((o * size + k) * inner + i)] = result[size_t(k)];
    }
  return out;
}

std::vector<Complex> transformed(const std::vector<Complex>& line, bool forward) {
  const size_t n = line.size();
  std::vector<Complex> out(n);
  for (size_t k = 0; k < n; ++k)
    for (size_t j = 0; j < n; ++j)
      out[k] += line[j] * std::polar(1.0, (forward ? -2 : 2) * std::numbers::pi * double(j * k % n) / double(n));
  return out;
}
ComplexArray transformed(ComplexArray x, std::span<const int64_t> dims, bool forward) {
  for (int64_t d : dims) x = along(x, d, x.sizes[size_t(d)], [&](auto& line) { return transformed(line, forward); });
  return x;
}
// All n elements of a line whose others are conjugates.
std::vector<Complex> completed(const std::vector<Complex>& half, int64_t n) {
  std::vector<Complex> line(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) line[size_t(k)] = 2 * k <= n ? half[size_t(k)] : std::conj(half[size_t(n - k)]);
  line[0].imag(0);
  if (n % 2 == 0) line[size_t(n / 2)].imag(0);
  return line;
}

// --- the ops

// For elements of the first half of a line of `n`, along a dimension of `pairs`: 1 where one is its own conjugate, else
// `of_two`, since it stands for two.
Tensor weights(const Tensor& pairs, int64_t dim, const Dim& n, double of_two) {
  Tensor place = arange_of_size(n / 2 + 1, TensorOptions(kInt64).device(pairs.device()));
  Tensor out = where(logical_or(eq(place, 0), eq(place * 2, n)), 1.0, of_two).to(pairs.dtype());
  for (int64_t d = dim + 1; d < pairs.dim(); ++d) out = out.unsqueeze(-1);
  return out;
}

struct ComplexToComplex : Opaque {
  static constexpr auto name = "_fft_c2c";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = ComplexToComplexAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<Attributes>();
    check_dims(call, a.dims, a.norm, check_pairs(call));
    return {call.inputs[0]};
  }
  static void interpret(InterpretCall& c) {
    auto& a = c.call.as<Attributes>();
    const ComplexArray x = from_pairs(*c.inputs[0]);
    store(transformed(x, a.dims, a.forward), fourier_factor(a.norm, x.count(a.dims)), true, c.outputs[0]);
  }
  // A kernel of the device takes it whole.
  static constexpr auto run_cpu = nullptr;
  static constexpr bool reads_host_memory = true;
  static TensorList grad(const GradCall& c) {
    auto& a = c.as<Attributes>();
    return c.each([&] { return call<ComplexToComplex>({c.grad()}, Attributes{a.dims, a.norm, !a.forward}); });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5};
  SINTER_SAMPLES("x[8, 2] | dims=[0]", "x[3, 5, 2] | dims=[1], forward=false", "x[4, 3, 2] | dims=[0], norm=1",
                 "x[2, 6, 5, 2] | dims=[2, 1], norm=2, forward=false", "x[1, 2] | dims=[0]",
                 "x[3, 2, 4, 2] | dims=[0, 1, 2]", "x[0, 4, 2] | dims=[1]")
};

struct RealToComplex : Opaque {
  static constexpr auto name = "_fft_r2c";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = RealToComplexAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<Attributes>();
    auto& x = call.inputs[0];
    check_numbers(call);
    check_dims(call, a.dims, a.norm, x.shape);
    return {Type{x.dtype, with_pairs(a.onesided ? with_half(x.shape, a.dims.back()) : x.shape), x.device}};
  }
  static void interpret(InterpretCall& c) {
    auto& a = c.call.as<Attributes>();
    const ComplexArray x = from_reals(*c.inputs[0]);
    const int64_t last = a.dims.back(), kept = c.outputs[0].sizes[size_t(last)];
    const ComplexArray all = transformed(x, a.dims, true);
    store(along(all, last, kept, [](auto& line) { return line; }), fourier_factor(a.norm, x.count(a.dims)), true,
          c.outputs[0]);
  }
  static constexpr auto run_cpu = nullptr;
  static constexpr bool reads_host_memory = true;
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      auto& a = c.as<Attributes>();
      const FourierNorm norm{a.norm};
      if (!a.onesided) return fourier::complex_to_complex(c.grad(), a.dims, norm, false).select(-1, 0);
      // The way back adds the conjugates of all elements that stand for two.
      const Dim n = c[0].sizes()[size_t(a.dims.back())];
      const Tensor share = weights(c.grad(), a.dims.back(), n, 0.5);
      return fourier::complex_to_real(c.grad() * share, a.dims, norm, n);
    });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5};
  SINTER_SAMPLES("x[8] | dims=[0]", "x[3, 5] | dims=[1], norm=2", "x[4, 3] | dims=[0], norm=1", "x[6, 4] | dims=[0, 1]",
                 "x[2, 6, 5] | dims=[2, 1], onesided=false", "x[7, 2] | dims=[0], onesided=false", "x[1] | dims=[0]",
                 "x[3, 2, 4] | dims=[0, 1, 2]", "x[0, 4] | dims=[1]")
};

struct ComplexToReal : Opaque {
  static constexpr auto name = "_fft_c2r";
  static constexpr auto autocast = Autocast::kWide;
  using Attributes = ComplexToRealAttrs;
  static std::vector<Type> infer(const OpCall& call) {
    auto& a = call.as<Attributes>();
    auto& x = call.inputs[0];
    const Shape elements = check_pairs(call);
    check_dims(call, a.dims, a.norm, elements);
    const Dim half = elements[size_t(a.dims.back())];
    check(possibly_le(1, a.last_size) && half == a.last_size / 2 + 1,
          "{}: {} elements along dimension {} of {} are not those of {} real ones, which has {}", call.name(), half,
          a.dims.back(), elements, a.last_size, a.last_size / 2 + 1);
    return {Type{x.dtype, replaced(elements, a.dims.back(), a.last_size), x.device}};
  }
  static void interpret(InterpretCall& c) {
    auto& a = c.call.as<Attributes>();
    const int64_t last = a.dims.back(), n = c.outputs[0].sizes[size_t(last)];
    const ComplexArray x = transformed(from_pairs(*c.inputs[0]), {a.dims.begin(), a.dims.end() - 1}, false);
    const ComplexArray y = along(x, last, n, [&](auto& half) { return transformed(completed(half, n), false); });
    store(y, fourier_factor(a.norm, y.count(a.dims)), false, c.outputs[0]);
  }
  static constexpr auto run_cpu = nullptr;
  static constexpr bool reads_host_memory = true;
  static TensorList grad(const GradCall& c) {
    return c.each([&] {
      auto& a = c.as<Attributes>();
      Tensor g = fourier::real_to_complex(c.grad(), a.dims, FourierNorm(a.norm), true);
      return g * weights(g, a.dims.back(), a.last_size, 2);
    });
  }
  static constexpr Tolerance tolerance{.ulp = 16, .absolute = 1e-5};
  SINTER_SAMPLES("x[5, 2] | dims=[0], last_size=8", "x[3, 3, 2] | dims=[1], norm=2, last_size=5",
                 "x[3, 4, 2] | dims=[0], norm=1, last_size=4", "x[6, 3, 2] | dims=[0, 1], last_size=4",
                 "x[2, 6, 3, 2] | dims=[1, 2], norm=2, last_size=5", "x[1, 2] | dims=[0], last_size=1",
                 "x[2, 2] | dims=[0], last_size=2", "x[0, 3, 2] | dims=[1], last_size=4")
};

}  // namespace

namespace fourier {

Tensor complex_to_complex(const TensorArg& x, const IntList& dims, FourierNorm norm, bool forward) {
  return call<ComplexToComplex>({x}, ComplexToComplexAttrs{dims, int64_t(norm), forward});
}
Tensor real_to_complex(const TensorArg& x, const IntList& dims, FourierNorm norm, bool onesided) {
  return call<RealToComplex>({x}, RealToComplexAttrs{dims, int64_t(norm), onesided});
}
Tensor complex_to_real(const TensorArg& x, const IntList& dims, FourierNorm norm, const Dim& last_size) {
  return call<ComplexToReal>({x}, ComplexToRealAttrs{dims, int64_t(norm), last_size});
}

}  // namespace fourier

OpFamily fourier_ops() {
  static constexpr const Op* all[] = {&op_of<ComplexToComplex>, &op_of<RealToComplex>, &op_of<ComplexToReal>};
  return all;
}

}  // namespace sinter
