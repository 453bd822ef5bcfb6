// Transforms of the frames of a signal, and the signal of such frames.
#include <limits>
#include <string>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/spectrum.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// Weights below this do not count as such.
constexpr double kNoWeight = 1e-11;

struct Framing {
  int64_t size, hop, window_size;
};

Framing framing_of(const char* op, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length) {
  const Framing f{n_fft, hop_length.value_or(n_fft / 4), win_length.value_or(n_fft)};
  check(f.size > 0, "{}: n_fft must be positive, not {}", op, f.size);
  check(f.hop > 0, "{}: hop_length must be positive, not {}{}", op, f.hop,
        hop_length ? "" : ", which is n_fft / 4: say one");
  check(0 < f.window_size && f.window_size <= f.size, "{}: win_length must be positive and at most n_fft = {}, not {}",
        op, f.size, f.window_size);
  return f;
}

// The window in the middle of a frame, zeros around it; ones by default, and undefined where that is the whole frame.
Tensor window_of_frame(const char* op, const std::optional<Tensor>& given, const Framing& f, const Tensor& x) {
  const bool is_given = given && given->defined();
  if (!is_given && f.window_size == f.size) return {};
  if (is_given)
    check(given->dim() == 1 && given->size(0) == f.window_size,
          "{}: expected a window of win_length = {} elements, got {}{}", op, f.window_size, given->dtype(),
          given->sizes());
  const Tensor window =
      is_given ? spectrum::numbers(op, *given) : ones({f.window_size}, x.options().dtype(real_dtype(x.dtype())));
  const int64_t before = (f.size - f.window_size) / 2;
  return f.size == f.window_size ? window : constant_pad_nd(window, {before, f.size - f.window_size - before});
}

// Frames [..., count, size] added up where they lie in the signal, [..., size + hop (count - 1)]. Each is cut into pieces
// of `hop`, of which the r-th belongs r pieces later than the first: rows as long as the signal and one piece more, read
// as rows without it.
Tensor overlapped(const Tensor& frames, const Framing& f) {
  const int64_t pieces = (f.size + f.hop - 1) / f.hop, d = frames.dim() - 2;
  const Dim count = frames.size(d), steps = count + pieces - 1;
  Tensor rows = spectrum::resized(frames, d + 1, pieces * f.hop).unflatten(d + 1, {pieces, f.hop}).transpose(d, d + 1);
  rows = spectrum::resized(rows, d + 1, steps + 1).flatten(d, d + 1);
  rows = narrow(rows, d, 0, pieces * steps).unflatten(d, {Dim(pieces), steps}).sum(IntList{d});
  return narrow(rows.flatten(d, d + 1), d, 0, f.size + f.hop * (count - 1));
}

// What each sample of the signal was multiplied by on both ways, between the frames' ends.
Tensor weights_of_signal(const Tensor& window, const Framing& f, const Dim& count, const Dim& start, const Dim& size) {
  Tensor weights = narrow(overlapped(expand(square(window), {count, f.size}), f), 0, start, size);
  if (!weights.is_traced()) {
    const Tensor least = abs(weights.detach()).min();
    check(least.item().to_double() > kNoWeight,
          "istft: a sample between the frames' ends has no weight (the least is {}): windows must overlap there; "
          "with center the outermost n_fft / 2 samples are left out",
          least.item());
    return weights;
  }
  // A program does not look at numbers: such samples are no numbers.
  return where(gt(abs(weights), kNoWeight), weights, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

Tensor stft(const TensorArg& arg, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const std::optional<Tensor>& window, bool center, std::string_view pad_mode, bool normalized,
            std::optional<bool> onesided, std::optional<bool> return_complex) {
  UserPosition here(arg.where());
  Tensor x = spectrum::numbers("stft", arg);
  const int64_t rank = x.dim();
  const bool is_complex = x.is_complex() || (window && window->defined() && window->is_complex());
  check(rank == 1 || rank == 2, "stft: expected a signal [length] or [batch, length], got {}", x.sizes());
  check(return_complex || is_complex,
        "stft: return_complex must be given for a real signal: true, or false for the parts in a last dimension of 2");
  check(!is_complex || !onesided.value_or(false), "stft: a complex signal or window has no onesided transform");
  const Framing f = framing_of("stft", n_fft, hop_length, win_length);
  const Tensor weights = window_of_frame("stft", window, f, x);

  if (rank == 1) x = x.unsqueeze(0);
  if (center) x = pad(x, {n_fft / 2, n_fft / 2}, std::string(pad_mode));
  check(possibly_le(n_fft, x.size(1)), "stft: n_fft = {} is more than the {} samples of the signal{}", n_fft, x.size(1),
        center ? " with its pads" : "");
  Tensor frames = unfold(x, 1, n_fft, f.hop);
  if (weights.defined()) frames = frames * weights;
  const std::string_view norm = normalized ? "ortho" : "backward";
  Tensor out = onesided.value_or(!is_complex) ? fft::rfft(frames, {}, -1, norm) : fft::fft(frames, {}, -1, norm);
  out = out.transpose(1, 2);
  if (rank == 1) out = out.squeeze(0);
  return return_complex.value_or(true) ? out : view_as_real(out);
}

Tensor istft(const TensorArg& arg, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
             const std::optional<Tensor>& window, bool center, bool normalized, std::optional<bool> onesided,
             const std::optional<Dim>& length, bool return_complex) {
  UserPosition here(arg.where());
  Tensor x = spectrum::numbers("istft", arg);
  const int64_t rank = x.dim();
  check(x.is_complex(),
        "istft: expected complex numbers, as stft gives them with return_complex, not {}; see view_as_complex",
        x.dtype());
  check(rank == 2 || rank == 3, "istft: expected [frequencies, frames] or [batch, frequencies, frames], got {}",
        x.sizes());
  const Framing f = framing_of("istft", n_fft, hop_length, win_length);
  check(f.hop <= f.window_size, "istft: hop_length = {} is more than win_length = {}: there are gaps between frames",
        f.hop, f.window_size);
  if (rank == 2) x = x.unsqueeze(0);
  const Dim found = x.size(1), count = x.size(2);
  const bool half = onesided ? *onesided : !(found == n_fft);
  const int64_t frequencies = half ? n_fft / 2 + 1 : n_fft;
  check(found == frequencies, "istft: {}expected {} frequencies for n_fft = {}, got {}", half ? "onesided, " : "",
        frequencies, n_fft, x.sizes());
  check(possibly_le(1, count), "istft: there are no frames in {}", x.sizes());
  check(!return_complex || !half, "istft: a complex signal needs all {} frequencies, not one side", n_fft);
  Tensor weights = window_of_frame("istft", window, f, x);
  if (!weights.defined()) weights = ones({n_fft}, x.options().dtype(real_dtype(x.dtype())));
  check(return_complex || !weights.is_complex(), "istft: a complex window needs return_complex");

  const std::string_view norm = normalized ? "ortho" : "backward";
  x = x.transpose(1, 2);
  const Tensor frames = return_complex ? fft::ifft(x, {}, -1, norm) : fft::irfft(x, n_fft, -1, norm);
  Tensor signal = overlapped(frames * weights, f);
  const Dim there = signal.size(1), start = center ? n_fft / 2 : 0, end = center && !length ? there - n_fft / 2 : there;
  const Dim kept = length && *length < end - start ? *length : end - start;
  check(possibly_le(1, kept), "istft: nothing of the {} samples of the frames is left", there);
  signal = narrow(signal, 1, start, kept) / weights_of_signal(weights, f, count, start, kept);
  if (length) signal = spectrum::resized(signal, 1, *length);
  return rank == 2 ? signal.squeeze(0) : signal;
}

}  // namespace sinter
