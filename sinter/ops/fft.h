#pragma once
// Discrete Fourier transforms, those of the frames of a signal, and windows to multiply frames with. Numbers are f32 or
// f64, the parts of complex ones too; integers and bool count as f32.
#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

namespace fft {

// --- along one dimension. n: the size to transform; what is longer is cut, what is shorter goes on with zeros. norm:
// which way divides by n, "forward" or "backward" (the default), or "ortho": both by its root

// The transform of real or complex numbers, and the way back.
Tensor fft(const TensorArg& x, const std::optional<Dim>& n = {}, int64_t dim = -1,
           std::optional<std::string_view> norm = {});
Tensor ifft(const TensorArg& x, const std::optional<Dim>& n = {}, int64_t dim = -1,
            std::optional<std::string_view> norm = {});
// The first n / 2 + 1 elements of the transform of real numbers: the others are conjugates. The way back gives n real
// numbers, by default an even number of them.
Tensor rfft(const TensorArg& x, const std::optional<Dim>& n = {}, int64_t dim = -1,
            std::optional<std::string_view> norm = {});
Tensor irfft(const TensorArg& x, const std::optional<Dim>& n = {}, int64_t dim = -1,
             std::optional<std::string_view> norm = {});
// The transform, which is real, of the first half of a signal whose second half are conjugates; and the way back.
Tensor hfft(const TensorArg& x, const std::optional<Dim>& n = {}, int64_t dim = -1,
            std::optional<std::string_view> norm = {});
Tensor ihfft(const TensorArg& x, const std::optional<Dim>& n = {}, int64_t dim = -1,
             std::optional<std::string_view> norm = {});

// --- along several dimensions: all, where neither they nor sizes `s` are given; the last ones, where only sizes are. A
// size of -1 is that which is there. What is said above of halves holds for the last of them

Tensor fftn(const TensorArg& x, const std::optional<Shape>& s = {}, const std::optional<IntList>& dim = {},
            std::optional<std::string_view> norm = {});
Tensor ifftn(const TensorArg& x, const std::optional<Shape>& s = {}, const std::optional<IntList>& dim = {},
             std::optional<std::string_view> norm = {});
Tensor rfftn(const TensorArg& x, const std::optional<Shape>& s = {}, const std::optional<IntList>& dim = {},
             std::optional<std::string_view> norm = {});
Tensor irfftn(const TensorArg& x, const std::optional<Shape>& s = {}, const std::optional<IntList>& dim = {},
              std::optional<std::string_view> norm = {});
Tensor hfftn(const TensorArg& x, const std::optional<Shape>& s = {}, const std::optional<IntList>& dim = {},
             std::optional<std::string_view> norm = {});
Tensor ihfftn(const TensorArg& x, const std::optional<Shape>& s = {}, const std::optional<IntList>& dim = {},
              std::optional<std::string_view> norm = {});
// The same along two.
Tensor fft2(const TensorArg& x, const std::optional<Shape>& s = {}, const IntList& dim = {-2, -1},
            std::optional<std::string_view> norm = {});
Tensor ifft2(const TensorArg& x, const std::optional<Shape>& s = {}, const IntList& dim = {-2, -1},
             std::optional<std::string_view> norm = {});
Tensor rfft2(const TensorArg& x, const std::optional<Shape>& s = {}, const IntList& dim = {-2, -1},
             std::optional<std::string_view> norm = {});
Tensor irfft2(const TensorArg& x, const std::optional<Shape>& s = {}, const IntList& dim = {-2, -1},
              std::optional<std::string_view> norm = {});
Tensor hfft2(const TensorArg& x, const std::optional<Shape>& s = {}, const IntList& dim = {-2, -1},
             std::optional<std::string_view> norm = {});
Tensor ihfft2(const TensorArg& x, const std::optional<Shape>& s = {}, const IntList& dim = {-2, -1},
              std::optional<std::string_view> norm = {});

// --- frequencies

// Those that the elements of a transform of n samples, `d` apart, stand for: 0, 1, …, -2, -1 over n d.
Tensor fftfreq(const Dim& n, double d = 1, const TensorOptions& options = {}, Where where = Where::current());
Tensor fftfreq(const Dim& n, const TensorOptions& options, Where where = Where::current());
// The same for rfft.
Tensor rfftfreq(const Dim& n, double d = 1, const TensorOptions& options = {}, Where where = Where::current());
Tensor rfftfreq(const Dim& n, const TensorOptions& options, Where where = Where::current());
// Frequency 0 moved to the middle of all dimensions or of those named; and back.
Tensor fftshift(const TensorArg& x, const std::optional<IntList>& dim = {});
Tensor ifftshift(const TensorArg& x, const std::optional<IntList>& dim = {});

}  // namespace fft

// --- frames of a signal

// Transforms of frames of n_fft samples, one every hop_length (a quarter of n_fft by default), of a signal [length] or
// [batch, length]: [..., frequencies, frames]. Frames are multiplied by `window`, of win_length (n_fft by default)
// elements and zeros on both sides. center: the signal is padded by n_fft / 2 on both sides, as pad() does in this mode.
// normalized: divided by the root of n_fft. onesided: the first n_fft / 2 + 1 frequencies, by default those of real
// signals. return_complex must be said for real signals; without it the parts are a last dimension of 2.
Tensor stft(const TensorArg& x, int64_t n_fft, std::optional<int64_t> hop_length = {},
            std::optional<int64_t> win_length = {}, const std::optional<Tensor>& window = {}, bool center = true,
            std::string_view pad_mode = "reflect", bool normalized = false, std::optional<bool> onesided = {},
            std::optional<bool> return_complex = {});
// The same without `center`.
template <std::same_as<bool> Bool>
Tensor stft(const TensorArg& x, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const std::optional<Tensor>& window, bool normalized, Bool onesided,
            std::optional<bool> return_complex = {}) {
  return stft(x, n_fft, hop_length, win_length, window, false, "constant", normalized, onesided, return_complex);
}
// The way back, where windows overlap such that no sample is without weight: one that is, is an Error, and NaN in a
// compiled function. length: of the signal, which is cut or goes on with zeros. return_complex: of a signal that is
// complex, from all frequencies.
Tensor istft(const TensorArg& x, int64_t n_fft, std::optional<int64_t> hop_length = {},
             std::optional<int64_t> win_length = {}, const std::optional<Tensor>& window = {}, bool center = true,
             bool normalized = false, std::optional<bool> onesided = {}, const std::optional<Dim>& length = {},
             bool return_complex = false);

// --- windows. Periodic ones, for frames, lack the last element of a symmetric one that is longer by one

// 1/2 - 1/2 cos(2πk/N), of N + 1 elements where it is symmetric; Hamming: alpha - beta cos(2πk/N).
Tensor hann_window(int64_t window_length, bool periodic, const TensorOptions& options = {},
                   Where where = Where::current());
Tensor hann_window(int64_t window_length, const TensorOptions& options = {}, Where where = Where::current());
Tensor hamming_window(int64_t window_length, bool periodic, double alpha = 0.54, double beta = 0.46,
                      const TensorOptions& options = {}, Where where = Where::current());
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, const TensorOptions& options,
                      Where where = Where::current());
Tensor hamming_window(int64_t window_length, bool periodic, const TensorOptions& options,
                      Where where = Where::current());
Tensor hamming_window(int64_t window_length, const TensorOptions& options = {}, Where where = Where::current());
// 0.42 - 1/2 cos(2πk/N) + 0.08 cos(4πk/N).
Tensor blackman_window(int64_t window_length, bool periodic, const TensorOptions& options = {},
                       Where where = Where::current());
Tensor blackman_window(int64_t window_length, const TensorOptions& options = {}, Where where = Where::current());
// A triangle.
Tensor bartlett_window(int64_t window_length, bool periodic, const TensorOptions& options = {},
                       Where where = Where::current());
Tensor bartlett_window(int64_t window_length, const TensorOptions& options = {}, Where where = Where::current());
// I₀(beta √(1 - (2k/N - 1)²)) / I₀(beta): the larger beta, the lower the side lobes.
Tensor kaiser_window(int64_t window_length, bool periodic, double beta = 12, const TensorOptions& options = {},
                     Where where = Where::current());
Tensor kaiser_window(int64_t window_length, bool periodic, const TensorOptions& options,
                     Where where = Where::current());
Tensor kaiser_window(int64_t window_length, const TensorOptions& options = {}, Where where = Where::current());

}  // namespace sinter
