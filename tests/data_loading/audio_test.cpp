#include "sinter/data/audio.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "sinter/base/error.h"
#include "sinter/io/config.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "tests/data_loading/corrupt.h"
#include "tests/support/distance.h"
#include "tests/support/error_of.h"

namespace sinter::data {
namespace {

const std::string kWhisper = std::string(SINTER_TEST_DATA) + "/models/whisper";

template <class T>
std::string little(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string chunk(const std::string& id, const std::string& bytes) {
  return id + little(uint32_t(bytes.size())) + bytes + std::string(bytes.size() % 2, '\0');
}

std::string format_chunk(uint16_t kind, uint16_t channels, uint16_t bits, const std::string& more = "") {
  return chunk("fmt ", little(kind) + little(channels) + little(uint32_t(8000)) + little(uint32_t(0)) +
                           little(uint16_t(0)) + little(bits) + more);
}

std::string riff(const std::string& chunks) { return "RIFF" + little(uint32_t(chunks.size() + 4)) + "WAVE" + chunks; }

TEST(Wav, SamplesOfEveryKind) {
  auto values = [](const std::string& format, const std::string& data) {
    Audio audio = decode_wav(riff(format + chunk("data", data)));
    EXPECT_EQ(audio.rate, 8000);
    return audio.samples.reshape({-1}).to_vector<float>();
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(values(format_chunk(1, 1, 8), std::string("\x80\x00\xc0", 3)), (Floats{0, -1, 0.5}));
  EXPECT_EQ(values(format_chunk(1, 1, 16), little(int16_t(16384)) + little(int16_t(-32768))), (Floats{0.5, -1}));
  EXPECT_EQ(values(format_chunk(1, 1, 24), std::string("\x00\x00\x40\x00\x00\x80\xff\xff\xff", 9)),
            (Floats{0.5, -1, -1.0f / (1 << 23)}));
  EXPECT_EQ(values(format_chunk(1, 1, 32), little(int32_t(1) << 30)), (Floats{0.5}));
  EXPECT_EQ(values(format_chunk(3, 1, 32), little(1.25f)), (Floats{1.25}));
  EXPECT_EQ(values(format_chunk(3, 1, 64), little(-0.25)), (Floats{-0.25}));
  // The longer form: the real kind stands behind 8 bytes of more format.
  EXPECT_EQ(values(format_chunk(0xFFFE, 1, 16, std::string(8, '\0') + little(uint16_t(1)) + std::string(14, '\0')),
                   little(int16_t(-16384))),
            (Floats{-0.5}));
}

TEST(Wav, ChannelsTakeTurns) {
  std::string data;
  for (int16_t value : {0, 16384, -16384, 16384}) data += little(value);
  // What is not known is passed over, to its even end.
  Audio audio = decode_wav(riff(chunk("LIST", "abc") + format_chunk(1, 2, 16) + chunk("data", data)));
  EXPECT_EQ(audio.samples.sizes().numbers(), (IntList{2, 2}));
  EXPECT_EQ(audio.mono().to_vector<float>(), (std::vector<float>{0.25, 0}));
}

TEST(Wav, DamagedFilesAreErrors) {
  std::string whole = riff(format_chunk(1, 2, 16) + chunk("data", std::string(64, 'x')));
  for (size_t size = 0; size < whole.size(); ++size) {
    // A cut sound is shorter; what is in front of it must be there.
    std::string_view cut(whole.data(), size);
    if (size < 12 + 8 + 16 + 8)
      EXPECT_THROW(decode_wav(cut), Error) << size;
    else
      EXPECT_EQ(decode_wav(cut).samples.size(1), Dim(int64_t(size - 44) / 4)) << size;
  }
  auto error = [](const std::string& bytes) { return message_of([&] { decode_wav(bytes, "a.wav"); }); };
  EXPECT_NE(error("OggS............").find("'a.wav' is no WAV file"), std::string::npos);
  EXPECT_NE(error(riff(format_chunk(6, 1, 8))).find("in the format 6"), std::string::npos);
  EXPECT_NE(error(riff(format_chunk(1, 0, 16))).find("0 channels"), std::string::npos);
  EXPECT_NE(error(riff(chunk("data", "abcd"))).find("in front of their format"), std::string::npos);
  // A size of the last chunk beyond everything.
  std::string lies = whole;
  std::memset(lies.data() + 40, 0xff, 4);
  EXPECT_EQ(decode_wav(lies).samples.size(1), Dim(16));
}

TEST(Wav, AnythingIsASoundOrAnError) {
  std::string whole = riff(chunk("LIST", "abc") + format_chunk(1, 2, 24) + chunk("data", std::string(36, 'x')));
  EXPECT_GT(count_errors(whole, [](const std::string& bytes) { decode_wav(bytes); }), 50);
}

// transformers' features of the same file.
TEST(LogMel, IsWhatTransformersReads) {
  Audio audio = read_wav(kWhisper + "/tones.wav");
  EXPECT_EQ(audio.rate, 16000);
  LogMel features(LogMelOptions::read(CheckpointFiles(kWhisper)));
  std::map<std::string, Tensor> golden;
  for (auto& [name, tensor] : load_safetensors(kWhisper + "/golden.safetensors")) golden[name] = tensor;
  Tensor got = features(audio.mono()), want = golden.at("input_features").slice(0, 0, 1);
  EXPECT_LT(distance(got, want), 1e-4);
  EXPECT_LT((got - want).abs().max().item<double>(), 1e-3);
}

TEST(LogMel, RefusesWhatIsTooLong) {
  LogMel features({.samples = 1600});
  EXPECT_EQ(features(zeros({2, 800})).sizes().numbers(), (IntList{2, 80, 10}));
  EXPECT_NE(message_of([&] { features(zeros({1601})); }).find("a piece has 1600"), std::string::npos);
}

}  // namespace
}  // namespace sinter::data
