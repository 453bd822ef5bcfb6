// Complex numbers, Fourier transforms and windows.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

using MaybeText = const std::optional<std::string>&;
using MaybeSizes = const std::optional<Shape>&;
using MaybeView = std::optional<std::string_view>;

MaybeView view_of(MaybeText text) { return text ? MaybeView(*text) : MaybeView(); }

// What a transform divides by, as PyTorch counts: nothing, the root of the elements, their number. Names say which way divides.
MaybeView norm_of(Int divides, bool forward) {
  constexpr std::string_view kForward[] = {"backward", "ortho", "forward"}, kBack[] = {"forward", "ortho", "backward"};
  check(divides >= 0 && divides <= 2, "a Fourier transform is normalized in a way that is not known: {}", divides);
  return (forward ? kForward : kBack)[divides];
}

Tensor transform(In x, Ints dims, Int divides, bool forward) {
  return forward ? fft::fftn(x, {}, dims, norm_of(divides, true)) : fft::ifftn(x, {}, dims, norm_of(divides, false));
}
Tensor transform_of_real(In x, Ints dims, Int divides, bool onesided) {
  return onesided ? fft::rfftn(x, {}, dims, norm_of(divides, true)) : fft::fftn(x, {}, dims, norm_of(divides, true));
}
Tensor transform_to_real(In x, Ints dims, Int divides, const Dim& last) {
  Shape sizes;
  for (int64_t dim : dims) sizes.push_back(x.tensor().size(dim));
  check(!dims.empty(), "_fft_c2r: there is no dimension to transform");
  sizes[sizes.size() - 1] = last;
  return fft::irfftn(x, sizes, dims, norm_of(divides, false));
}

template <Tensor (*F)(const TensorArg&, const std::optional<Dim>&, int64_t, std::optional<std::string_view>)>
Tensor along_one(In x, MaybeDim n, Int dim, MaybeText norm) {
  return F(x, n, dim, view_of(norm));
}
template <Tensor (*F)(const TensorArg&, const std::optional<Shape>&, const IntList&, std::optional<std::string_view>)>
Tensor along_two(In x, MaybeSizes s, Ints dim, MaybeText norm) {
  return F(x, s, dim, view_of(norm));
}
template <Tensor (*F)(const TensorArg&, const std::optional<Shape>&, const std::optional<IntList>&,
                      std::optional<std::string_view>)>
Tensor along_many(In x, MaybeSizes s, MaybeInts dim, MaybeText norm) {
  return F(x, s, dim, view_of(norm));
}

}  // namespace

std::span<const Function> complex_functions() {
  static const Function kList[] = {
      {"complex(Tensor real, Tensor imag) -> Tensor", complex},
      {"polar(Tensor abs, Tensor angle) -> Tensor", polar},
      {"view_as_real(Tensor(a) self) -> Tensor(a)", view_as_real},
      {"view_as_complex(Tensor(a) self) -> Tensor(a)", view_as_complex},
      {"real(Tensor(a) self) -> Tensor(a)", real},
      {"imag(Tensor(a) self) -> Tensor(a)", imag},
      {"conj(Tensor(a) self) -> Tensor(a)", conj},
      {"_conj(Tensor(a) self) -> Tensor(a)", conj},
      {"conj_physical(Tensor self) -> Tensor", conj_physical},
      {"_conj_physical(Tensor self) -> Tensor", conj_physical},
      {"resolve_conj(Tensor(a) self) -> Tensor(a)", resolve_conj},
      {"resolve_neg(Tensor(a) self) -> Tensor(a)", resolve_neg},
      {"_neg_view(Tensor(a) self) -> Tensor(a)", [](In x) { return neg(x); }},
      {"angle(Tensor self) -> Tensor", angle},

      // --- Fourier transforms
      {"_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", transform},
      {"_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", transform_of_real},
      {"_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", transform_to_real},
      {"fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", along_one<fft::fft>},
      {"fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", along_one<fft::ifft>},
      {"fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", along_one<fft::rfft>},
      {"fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", along_one<fft::irfft>},
      {"fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", along_one<fft::hfft>},
      {"fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor", along_one<fft::ihfft>},
      {"fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", along_two<fft::fft2>},
      {"fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", along_two<fft::ifft2>},
      {"fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", along_two<fft::rfft2>},
      {"fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
       along_two<fft::irfft2>},
      {"fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", along_many<fft::fftn>},
      {"fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", along_many<fft::ifftn>},
      {"fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", along_many<fft::rfftn>},
      {"fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", along_many<fft::irfftn>},
      {"fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", fft::fftshift},
      {"fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", fft::ifftshift},
      {"fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", along_two<fft::hfft2>},
      {"fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", along_two<fft::ihfft2>},
      {"fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", along_many<fft::hfftn>},
      {"fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor", along_many<fft::ihfftn>},
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
       [](In x, Int n_fft, MaybeInt hop, MaybeInt length, const std::optional<Tensor>& window, bool normalized,
          std::optional<bool> onesided, std::optional<bool> return_complex, Unset) {
         return stft(x, n_fft, hop, length, window, false, "constant", normalized, onesided, return_complex);
       }},
      {"stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
       "center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
       "align_to_window=None) -> Tensor",
       [](In x, Int n_fft, MaybeInt hop, MaybeInt length, const std::optional<Tensor>& window, bool center, Text pad_mode,
          bool normalized, std::optional<bool> onesided, std::optional<bool> return_complex, Unset) {
         return stft(x, n_fft, hop, length, window, center, pad_mode, normalized, onesided, return_complex);
       }},
      {"istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
       "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
       [](In x, Int n_fft, MaybeInt hop, MaybeInt win_length, const std::optional<Tensor>& window, bool center,
          bool normalized, std::optional<bool> onesided, MaybeDim length, bool return_complex) {
         return istft(x, n_fft, hop, win_length, window, center, normalized, onesided, length, return_complex);
       }},

      // --- windows
      {"hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Int length, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return hann_window(length, options_of(dtype, device));
       }},
      {"hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return hann_window(length, periodic, options_of(dtype, device));
       }},
      {"hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Int length, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return hamming_window(length, options_of(dtype, device));
       }},
      {"hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return hamming_window(length, periodic, options_of(dtype, device));
       }},
      {"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, "
       "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, double alpha, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return hamming_window(length, periodic, alpha, options_of(dtype, device));
       }},
      {"hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? "
       "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, double alpha, double beta, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return hamming_window(length, periodic, alpha, beta, options_of(dtype, device));
       }},
      {"blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](Int length, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return blackman_window(length, options_of(dtype, device));
       }},
      {"blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return blackman_window(length, periodic, options_of(dtype, device));
       }},
      {"bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
       "bool? pin_memory=None) -> Tensor",
       [](Int length, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return bartlett_window(length, options_of(dtype, device));
       }},
      {"bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return bartlett_window(length, periodic, options_of(dtype, device));
       }},
      {"kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Int length, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return kaiser_window(length, options_of(dtype, device));
       }},
      {"kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, "
       "Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return kaiser_window(length, periodic, options_of(dtype, device));
       }},
      {"kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? "
       "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
       [](Int length, bool periodic, double beta, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return kaiser_window(length, periodic, beta, options_of(dtype, device));
       }},
      {"fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Int n, double d, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return fft::fftfreq(n, d, options_of(dtype, device));
       }},
      {"fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> Tensor",
       [](Int n, double d, MaybeType dtype, Ignored, MaybeDevice device, Ignored) {
         return fft::rfftfreq(n, d, options_of(dtype, device));
       }},
  };
  return kList;
}

}  // namespace sinter::interop
