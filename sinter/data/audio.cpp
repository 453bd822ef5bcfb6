#include "sinter/data/audio.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>

#include "sinter/base/error.h"
#include "sinter/io/config.h"
#include "sinter/io/file.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/fft.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pad.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::data {

static_assert(std::endian::native == std::endian::little, "WAV files are read as they lie in memory");

namespace {

constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr int64_t kMaxChannels = 64, kMaxRate = 1 << 20;

struct Format {
  uint16_t kind = 0, channels = 0, bits = 0;
  uint32_t rate = 0;
};

template <class T>
T read_at(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Format read_format(std::string_view chunk, const std::string& name) {
  check(chunk.size() >= 16, "wav: '{}' has a format of {} bytes", name, chunk.size());
  Format f{read_at<uint16_t>(chunk, 0), read_at<uint16_t>(chunk, 2), read_at<uint16_t>(chunk, 14),
           read_at<uint32_t>(chunk, 4)};
  // The longer form has the kind as the first two bytes of a GUID.
  if (f.kind == kExtensible && chunk.size() >= 26) f.kind = read_at<uint16_t>(chunk, 24);
  check(f.channels > 0 && f.channels <= kMaxChannels && f.rate > 0 && f.rate <= kMaxRate,
        "wav: '{}' has {} channels of {} samples a second", name, f.channels, f.rate);
  bool known = f.kind == kPcm ? f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32
                              : f.kind == kFloat && (f.bits == 32 || f.bits == 64);
  check(
      known,
      "wav: '{}' has samples of {} bits in the format {}; read are 8, 16, 24 and 32 bits (format 1) and 32 and 64 (3)",
      name, f.bits, f.kind);
  return f;
}

float sample_at(std::string_view data, size_t at, const Format& f) {
  if (f.kind == kFloat) return f.bits == 32 ? read_at<float>(data, at) : float(read_at<double>(data, at));
  switch (f.bits) {
    case 8:
      return (float(uint8_t(data[at])) - 128) / 128;
    case 16:
      return float(read_at<int16_t>(data, at)) / 32768;
    case 24: {
      // In the upper bytes, so that the sign is in its place.
      uint32_t high = uint32_t(read_at<uint16_t>(data, at)) << 8 | uint32_t(uint8_t(data[at + 2])) << 24;
      return float(double(int32_t(high)) / 2147483648.0);
    }
    default:
      return float(double(read_at<int32_t>(data, at)) / 2147483648.0);
  }
}

// --- the scale of pitches: even up to 1000 Hz, then by ratios

constexpr double kEvenTo = 1000, kHertzAMel = 200.0 / 3, kEvenMels = kEvenTo / kHertzAMel;
constexpr double kStep = 1.8562979903656263 / 27;  // log(6.4) / 27

double to_mel(double hertz) {
  return hertz < kEvenTo ? hertz / kHertzAMel : kEvenMels + std::log(hertz / kEvenTo) / kStep;
}
double to_hertz(double mel) {
  return mel < kEvenMels ? mel * kHertzAMel : kEvenTo * std::exp((mel - kEvenMels) * kStep);
}

// Overlapping triangles of one area: [mels, frequencies].
Tensor triangles(const LogMelOptions& o) {
  int64_t frequencies = o.n_fft / 2 + 1;
  double top = to_mel(double(o.rate) / 2);
  auto edge = [&](int64_t i) { return to_hertz(top * double(i) / double(o.mels + 1)); };
  std::vector<float> out;
  for (int64_t m = 0; m < o.mels; ++m) {
    double low = edge(m), middle = edge(m + 1), high = edge(m + 2);
    for (int64_t k = 0; k < frequencies; ++k) {
      double hertz = double(o.rate) / 2 * double(k) / double(frequencies - 1);
      double height = std::min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      out.push_back(float(std::max(height, 0.0) * 2 / (high - low)));
    }
  }
  return tensor(out).view({o.mels, frequencies});
}

}  // namespace

Tensor Audio::mono() const { return samples.size(0) == 1 ? samples.select(0, 0) : samples.mean(0); }

Audio decode_wav(std::string_view bytes, const std::string& name) {
  check(bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WAVE", "wav: '{}' is no WAV file",
        name);
  std::optional<Format> format;
  for (size_t at = 12; at + 8 <= bytes.size();) {
    std::string_view id = bytes.substr(at, 4);
    uint64_t size = read_at<uint32_t>(bytes, at + 4);
    at += 8;
    // What is written while a sound is recorded may promise more than there is.
    std::string_view chunk = bytes.substr(at, size);
    if (id == "fmt ") {
      format = read_format(chunk, name);
    } else if (id == "data") {
      check(format.has_value(), "wav: '{}' has samples in front of their format", name);
      size_t width = format->bits / 8, frames = chunk.size() / (width * format->channels);
      Tensor samples = empty({int64_t(format->channels), int64_t(frames)});
      float* out = samples.data_ptr<float>();
      for (size_t c = 0; c < format->channels; ++c)
        for (size_t i = 0; i < frames; ++i)
          out[c * frames + i] = sample_at(chunk, (i * format->channels + c) * width, *format);
      return {samples, int64_t(format->rate)};
    }
    at += chunk.size() + (size & 1);
  }
  throw_error(format ? ::sinter::format("wav: '{}' holds no samples", name)
                     : ::sinter::format("wav: '{}' does not say its format", name));
}

Audio read_wav(const std::string& path) {
  MappedFile file("wav", path);
  return decode_wav(file.bytes(), path);
}

LogMelOptions LogMelOptions::read(const CheckpointFiles& files) {
  constexpr const char* kFile = "preprocessor_config.json";
  auto text = files.read(kFile);
  check(text.has_value(), "'{}' has no {}, which says how sounds are read", files.name(), kFile);
  ConfigFile file = ConfigFile::parse(*text, files.path(kFile));
  LogMelOptions o;
  o.rate = file.size("sampling_rate", o.rate);
  o.n_fft = file.size("n_fft", o.n_fft);
  o.hop_length = file.size("hop_length", o.hop_length);
  o.mels = file.size("feature_size", o.mels);
  o.samples = file.size("n_samples", file.size("chunk_length", 30) * o.rate);
  return o;
}

LogMel::LogMel(const LogMelOptions& options) : options_(options) {
  const LogMelOptions& o = options_;
  check(o.n_fft >= 4 && o.n_fft <= 1 << 20 && o.hop_length > 0 && o.mels > 0 && o.mels <= 4096 && o.rate > 0 &&
            o.samples >= o.n_fft,
        "LogMel: {} mels of {} samples by frames of {}, one every {}", o.mels, o.samples, o.n_fft, o.hop_length);
  window_ = hann_window(o.n_fft);
  bands_ = triangles(o);
}

Tensor LogMel::operator()(const Tensor& samples) const {
  Tensor x = samples.dim() == 1 ? samples.unsqueeze(0) : samples;
  check(x.dim() == 2 && x.is_floating_point(), "LogMel: samples are [samples] or [batch, samples], not {} {}",
        samples.dtype(), samples.sizes());
  int64_t length = x.size(1).to_int();
  check(length <= options_.samples, "LogMel: {} samples, a piece has {}; cut the sound first", length,
        options_.samples);
  x = pad(x.to(kFloat32), {0, options_.samples - length});
  Tensor parts =
      view_as_real(stft(x, options_.n_fft, options_.hop_length, {}, window_, /*center=*/true, "reflect", false, {},
                        /*return_complex=*/true));
  // The last frame begins where the piece ends.
  Tensor power = parts.square().sum(-1).slice(-1, 0, -1);
  Tensor log_power = matmul(bands_, power).clamp_min(1e-10).log10();
  Tensor loudest = log_power.amax({1, 2}, true);
  return (maximum(log_power, loudest - 8) + 4) / 4;
}

}  // namespace sinter::data
