// Fourier transforms by runtime/cpu/fft, one dimension after the other.
#include "sinter/ops/fourier.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/matrices.h"
#include "sinter/runtime/cpu/fft/fft.h"

namespace sinter::eager {

namespace {

using runtime::FftOptions;

template <class T>
using Engine = void (*)(const runtime::FftShape& shape, const runtime::FftSide<const T>& in,
                        const runtime::FftSide<T>& out, const FftOptions& options);

// A tensor as the engine counts it: strides of pairs, whose dimension is left out, or of reals.
template <class T>
struct Elements {
  Tensor tensor;
  T* data;
  IntList sizes, strides;
  int64_t parts;

  static Elements reals(const Tensor& t) { return {t, data_at(t), t.impl().sizes, t.impl().strides, 1}; }
  static Elements pairs(const Tensor& given) {
    Tensor t = are_adjacent(given.impl()) ? given : given.contiguous();
    Elements out{t, data_at(t), t.impl().sizes, t.impl().strides, 2};
    out.sizes.pop_back();
    out.strides.pop_back();
    for (auto& stride : out.strides) stride /= 2;
    return out;
  }

  int64_t size(int64_t dim) const { return sizes[size_t(dim)]; }
  int64_t stride(int64_t dim) const { return strides[size_t(dim)]; }
  double count(const IntList& dims) const {
    double n = 1;
    for (int64_t d : dims) n *= double(size(d));
    return n;
  }

 private:
  static T* data_at(const Tensor& t) { return reinterpret_cast<T*>(data_of(t.impl())); }
  static bool are_adjacent(const TensorImpl& t) {
    return t.strides.back() == 1 &&
           std::all_of(t.strides.begin(), t.strides.end() - 1, [](int64_t stride) { return stride % 2 == 0; });
  }
};

// A dimension across the lines, as both sides walk it.
struct Axis {
  int64_t size = 1, in = 0, out = 0;
};
// All but `dim`, joined where both sides walk them as one.
template <class T>
std::vector<Axis> axes_across(int64_t dim, const Elements<T>& in, const Elements<T>& out) {
  std::vector<Axis> axes;
  for (int64_t d = 0; d < int64_t(in.sizes.size()); ++d) {
    if (d == dim || in.size(d) == 1) continue;
    const Axis axis{in.size(d), in.stride(d), out.stride(d)};
    if (!axes.empty() && axes.back().in == axis.in * axis.size && axes.back().out == axis.out * axis.size)
      axes.back() = {axes.back().size * axis.size, axis.in, axis.out};
    else
      axes.push_back(axis);
  }
  return axes;
}

// Lines of n reals or complex numbers.
template <class T>
void along(Engine<T> engine, int64_t dim, int64_t n, const Elements<T>& in, const Elements<T>& out,
           const FftOptions& options) {
  std::vector<Axis> axes = axes_across(dim, in, out);
  const auto take_last = [&] {
    if (axes.empty()) return Axis{};
    const Axis last = axes.back();
    axes.pop_back();
    return last;
  };
  // The innermost two are the engine's.
  const Axis lines = take_last(), outer = take_last();
  int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  for (int64_t i = 0; i < count; ++i) {
    int64_t in_at = 0, out_at = 0, rest = i;
    for (auto axis = axes.rbegin(); axis != axes.rend(); rest /= axis->size, ++axis) {
      in_at += rest % axis->size * axis->in;
      out_at += rest % axis->size * axis->out;
    }
    engine({n, lines.size, outer.size}, {in.data + in_at * in.parts, in.stride(dim), lines.in, outer.in},
           {out.data + out_at * out.parts, out.stride(dim), lines.out, outer.out}, options);
  }
}

template <class T>
void transform_in_place(std::span<const int64_t> dims, const Elements<T>& x, int sign) {
  for (int64_t d : dims) along<T>(runtime::fft_c2c<T>, d, x.size(d), x, x, {.sign = sign});
}

// The second halves of row-major lines from the first ones.
template <class T>
void complete(const Elements<T>& x, int64_t dim) {
  const int64_t n = x.size(dim), inner = x.stride(dim), missing = n - n / 2 - 1;
  const int64_t outer = std::accumulate(x.sizes.begin(), x.sizes.begin() + dim, int64_t(1), std::multiplies());
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, inner));
  parallel_for(0, outer * missing, grain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t k = n / 2 + 1 + at % missing;
      T* const line = x.data + 2 * (at / missing) * n * inner;
      for (int64_t i = 0; i < inner; ++i) {
        line[2 * (k * inner + i)] = line[2 * ((n - k) * inner + i)];
        line[2 * (k * inner + i) + 1] = -line[2 * ((n - k) * inner + i) + 1];
      }
    }
  });
}

std::span<const int64_t> without_last(const IntList& dims) { return {dims.data(), dims.size() - 1}; }

template <class T>
void run(const ComplexToComplexAttrs& a, const Tensor& given, const Tensor& result) {
  const auto x = Elements<T>::pairs(given), out = Elements<T>::pairs(result);
  const FftOptions options{.sign = a.forward ? -1 : 1, .factor = fourier_factor(a.norm, x.count(a.dims))};
  along<T>(runtime::fft_c2c<T>, a.dims.back(), x.size(a.dims.back()), x, out, options);
  transform_in_place(without_last(a.dims), out, options.sign);
}

template <class T>
void run(const RealToComplexAttrs& a, const Tensor& given, const Tensor& result) {
  const int64_t last = a.dims.back();
  const auto x = Elements<T>::reals(given), out = Elements<T>::pairs(result);
  along<T>(runtime::fft_r2c<T>, last, x.size(last), x, out, {.factor = fourier_factor(a.norm, x.count(a.dims))});
  if (!a.onesided) complete(out, last);
  transform_in_place(without_last(a.dims), out, -1);
}

template <class T>
void run(const ComplexToRealAttrs& a, const Tensor& given, const Tensor& result) {
  const int64_t last = a.dims.back();
  auto x = Elements<T>::pairs(given);
  const auto out = Elements<T>::reals(result);
  if (a.dims.size() > 1) {
    const auto between = Elements<T>::pairs(empty(given.sizes(), given.dtype()));
    const int64_t first = a.dims[a.dims.size() - 2];
    along<T>(runtime::fft_c2c<T>, first, x.size(first), x, between, {.sign = 1});
    transform_in_place(without_last(a.dims).first(a.dims.size() - 2), between, 1);
    x = between;
  }
  along<T>(runtime::fft_c2r<T>, last, out.size(last), x, out,
           {.sign = 1, .factor = fourier_factor(a.norm, out.count(a.dims))});
}

template <class A>
bool transform(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor*,
               TensorList& outputs) {
  auto types = operand_types(inputs);
  const Type result = op.infer(OpCall{op, types, attrs})[0];
  Tensor out = empty(result.shape, TensorOptions(result.dtype));
  outputs = {out};
  if (out.impl().numel == 0) return true;
  visit_real(result.dtype, [&]<class T>(T) { run<T>(attrs.as<A>(), inputs[0].tensor(), out); });
  return true;
}

const OpKernel kernels[] = {
    {.op = "_fft_c2c", .run = transform<ComplexToComplexAttrs>, .name = "fft"},
    {.op = "_fft_r2c", .run = transform<RealToComplexAttrs>, .name = "fft"},
    {.op = "_fft_c2r", .run = transform<ComplexToRealAttrs>, .name = "fft"},
};

}  // namespace

std::span<const OpKernel> fourier_kernels_of_cpu() { return kernels; }

}  // namespace sinter::eager
