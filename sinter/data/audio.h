#pragma once
// Sounds as tensors, and what models that hear read of them.
#include <string>
#include <string_view>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

class CheckpointFiles;

namespace data {

struct Audio {
  Tensor samples;    // f32[channels, samples], within [-1, 1] unless the file holds louder ones
  int64_t rate = 0;  // samples a second

  // The mean of the channels, f32[samples].
  Tensor mono() const;
};

// A WAV file of 8, 16, 24 or 32 bits, or of floating-point numbers of 32 or 64. Files come from anywhere: what is wrong with
// one is an Error that names it.
Audio read_wav(const std::string& path);
// The same from memory; `name` stands for the file in errors.
Audio decode_wav(std::string_view bytes, const std::string& name = "sound");

struct LogMelOptions {
  int64_t rate = 16000, n_fft = 400, hop_length = 160, mels = 80;
  int64_t samples = 480000;  // of a piece

  // preprocessor_config.json of a checkpoint.
  static LogMelOptions read(const CheckpointFiles& files);
};

// How loud each of some pitches is in each frame, as Whisper reads it: logarithms of the power in bands as wide as ears tell
// pitches apart, no more than 8 powers of ten below the loudest of the piece, over 4, plus 1.
class LogMel {
 public:
  explicit LogMel(const LogMelOptions& options = {});
  const LogMelOptions& options() const { return options_; }
  // f32[samples] or [batch, samples] to [batch, mels, frames]; what is shorter than a piece goes on with silence, what is
  // longer is an Error.
  Tensor operator()(const Tensor& samples) const;

 private:
  LogMelOptions options_;
  Tensor window_, bands_;  // [n_fft], [mels, frequencies]
};

}  // namespace data
}  // namespace SINTER_API
