// Fourier transforms, and what goes with them.
#include <cmath>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// Complex numbers are pairs along the last dimension; real ones have one number there.
Tensor from_pairs(In x) {
  const int64_t parts = x.size(x.dim() - 1);
  check(parts == 1 || parts == 2, "its last dimension has {} numbers, which are neither real nor complex", parts);
  return parts == 1 ? select(x, -1, 0) : complex(select(x, -1, 0), select(x, -1, 1));
}

Tensor transformed(In x, const std::optional<Dim>& length, Int axis, bool inverse, bool onesided) {
  const int64_t dim = wrap_dim("DFT", axis, x.dim());
  check(dim < x.dim() - 1, "DFT: axis {} is that of the parts of complex numbers", axis);
  const Tensor signal = from_pairs(x);
  Tensor out;
  if (inverse && onesided) return fft::irfft(signal, length, dim).to(x.dtype()).unsqueeze(-1);
  if (onesided)
    out = signal.is_complex() ? narrow(fft::fft(signal, length, dim), dim, 0, length.value_or(signal.size(dim)) / 2 + 1)
                              : fft::rfft(signal, length, dim);
  else
    out = inverse ? fft::ifft(signal, length, dim) : fft::fft(signal, length, dim);
  return view_as_real(out).to(x.dtype());
}

// Frames of a signal [batch, length, parts], each transformed.
Tensor frames_transformed(In x, Int step, Maybe window, const std::optional<Dim>& length, bool onesided) {
  const Tensor signal = x.dim() == 3 ? from_pairs(x) : x.tensor();
  const int64_t size = window.defined() ? window.size(0) : length.value_or(Dim(0));
  check(size > 0 && step > 0, "STFT: frames of {} every {}", size, step);
  auto framed = [&](const Tensor& part) {
    const Tensor frames = unfold(part, 1, size, step);
    return window.defined() ? mul(frames, window) : frames;
  };
  if (signal.is_complex())
    return view_as_real(fft::fft(complex(framed(real(signal)), framed(imag(signal))), length, -1));
  return view_as_real(onesided ? fft::rfft(framed(signal), length, -1) : fft::fft(framed(signal), length, -1));
}

// Triangles that are equally wide on the mel scale, as columns over the bins of a spectrum.
Tensor mel_weights(Int bins, Int dft_length, Int sample_rate, double low_hertz, double high_hertz, DType dtype) {
  check(bins > 0 && bins < (1 << 20) && dft_length > 0 && dft_length < (1 << 24) && sample_rate > 0,
        "MelWeightMatrix: {} bins of a transform of {}", bins, dft_length);
  const int64_t rows = dft_length / 2 + 1;
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(low_hertz), step = (mel(high_hertz) - low) / double(bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (double(i) * step + low) / 2595) - 1);
    edges.push_back(int64_t(std::floor(double(dft_length + 1) * hertz / double(sample_rate))));
    check(edges.back() >= 0 && edges.back() < rows, "MelWeightMatrix: {} hertz at a sample rate of {}", hertz, sample_rate);
  }
  std::vector<double> out(size_t(rows * bins), 0);
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t left = edges[size_t(i)], middle = edges[size_t(i) + 1], right = edges[size_t(i) + 2];
    auto at = [&](int64_t row) -> double& { return out[size_t(row * bins + i)]; };
    if (left == middle) at(middle) = 1;
    for (int64_t row = left; left != middle && row <= middle; ++row) at(row) = double(row - left) / double(middle - left);
    for (int64_t row = middle; row < right; ++row) at(row) = double(right - row) / double(right - middle);
  }
  return from_data(out, {rows, bins}).to(dtype);
}

}  // namespace

std::span<const Function> signal_operators() {
  static const Function kList[] = {
      {"onnx::DFT.17(Tensor input, int? dft_length=None, *, int axis=1, int inverse=0, int onesided=0) -> Tensor", transformed},
      {"onnx::DFT.20(Tensor input, int? dft_length=None, int axis=-2, *, int inverse=0, int onesided=0) -> Tensor", transformed},
      {"onnx::STFT.17(Tensor signal, int frame_step, Tensor? window=None, int? frame_length=None, *, int onesided=1) -> Tensor",
       frames_transformed},
      {"onnx::MelWeightMatrix.17(int num_mel_bins, int dft_length, int sample_rate, float lower_edge_hertz, float "
       "upper_edge_hertz, *, ScalarType output_datatype=6) -> Tensor",
       mel_weights},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
