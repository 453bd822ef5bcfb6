// Blocks of ggml as codes, scales and offsets. Each way to store numbers is one function that writes a block's codes,
// as bytes in their order, and what they are multiplied by and what is added. A product of a code and of a scale, be it
// that of a sub-block times its own, has at most 24 bits: so dequantize() gives the same numbers, bit by bit, as ggml
// does.
#include <array>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/models/formats/gguf.h"
#include "sinter/ops/creation.h"

namespace sinter::models {

namespace {

// One block as it is read.
struct Block {
  uint8_t codes[256];
  float scales[16], offsets[16];
};

float half_at(const uint8_t* from) {
  Half out;
  std::memcpy(&out.bits, from, sizeof out.bits);
  return float(out);
}

// Low halves of 16 bytes are the first numbers, high ones the next.
void read_halves(const uint8_t* from, uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = from[i] & 15;
    codes[16 + i] = from[i] >> 4;
  }
}

void read_fifth_bits(const uint8_t* from, uint8_t* codes) {
  uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  for (int i = 0; i < 32; ++i) codes[i] |= uint8_t((bits >> i & 1) << 4);
}

void read_q4_0(const uint8_t* b, Block& out) {
  out.scales[0] = half_at(b);
  read_halves(b + 2, out.codes);
}

void read_q4_1(const uint8_t* b, Block& out) {
  out.scales[0] = half_at(b);
  out.offsets[0] = half_at(b + 2);
  read_halves(b + 4, out.codes);
}

void read_q5_0(const uint8_t* b, Block& out) {
  out.scales[0] = half_at(b);
  read_halves(b + 6, out.codes);
  read_fifth_bits(b + 2, out.codes);
  for (int i = 0; i < 32; ++i) out.codes[i] = uint8_t(out.codes[i] - 16);
}

void read_q5_1(const uint8_t* b, Block& out) {
  out.scales[0] = half_at(b);
  out.offsets[0] = half_at(b + 2);
  read_halves(b + 8, out.codes);
  read_fifth_bits(b + 4, out.codes);
}

void read_q8_0(const uint8_t* b, Block& out) {
  out.scales[0] = half_at(b);
  std::memcpy(out.codes, b + 2, 32);
}

void read_q2_k(const uint8_t* b, Block& out) {
  const uint8_t* codes = b + 16;
  const float scale = half_at(b + 80), least = half_at(b + 82);
  for (int g = 0; g < 16; ++g) {
    out.scales[g] = scale * float(b[g] & 15);
    out.offsets[g] = -(least * float(b[g] >> 4));
  }
  for (int i = 0; i < 256; ++i) out.codes[i] = codes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

void read_q3_k(const uint8_t* b, Block& out) {
  const uint8_t *high = b, *low = b + 32, *scales = b + 96;
  const float scale = half_at(b + 108);
  for (int g = 0; g < 16; ++g) {
    const int four = scales[g % 8] >> (g / 8 * 4) & 15, two = scales[8 + g % 4] >> (g / 4 * 2) & 3;
    out.scales[g] = scale * float((four | two << 4) - 32);
  }
  // From -4 to 3; codes of four bits stand for 8 less.
  for (int i = 0; i < 256; ++i) {
    const int code = low[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3, bit = high[i % 32] >> (i / 32) & 1;
    out.codes[i] = uint8_t((code | bit << 2) + 4);
  }
}

// Eight scales and eight minima of six bits each, in 12 bytes.
void read_scales_k(const uint8_t* b, Block& out) {
  const float scale = half_at(b), least = half_at(b + 2);
  const uint8_t* s = b + 4;
  for (int g = 0; g < 8; ++g) {
    const int of_codes = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    const int of_least = g < 4 ? s[g + 4] & 63 : (s[g + 4] >> 4) | (s[g] >> 6) << 4;
    out.scales[g] = scale * float(of_codes);
    out.offsets[g] = -(least * float(of_least));
  }
}

// Of each 64 numbers the first 32 are the low halves.
void read_halves_k(const uint8_t* from, uint8_t* codes) {
  for (int i = 0; i < 256; ++i) codes[i] = from[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
}

void read_q4_k(const uint8_t* b, Block& out) {
  read_scales_k(b, out);
  read_halves_k(b + 16, out.codes);
}

void read_q5_k(const uint8_t* b, Block& out) {
  read_scales_k(b, out);
  read_halves_k(b + 48, out.codes);
  for (int i = 0; i < 256; ++i) out.codes[i] |= uint8_t((b[16 + i % 32] >> (i / 32) & 1) << 4);
}

void read_q6_k(const uint8_t* b, Block& out) {
  const uint8_t *low = b, *high = b + 128;
  const float scale = half_at(b + 208);
  for (int g = 0; g < 16; ++g) out.scales[g] = scale * float(int8_t(b[192 + g]));
  for (int i = 0; i < 256; ++i) {
    const int part = i % 128 / 32;
    const int four = low[i / 128 * 64 + part % 2 * 32 + i % 32] >> (part / 2 * 4) & 15;
    const int two = high[i / 128 * 32 + i % 32] >> (part * 2) & 3;
    out.codes[i] = uint8_t((four | two << 4) - 32);
  }
}

void read_iq4_nl(const uint8_t* b, Block& out) {
  out.scales[0] = half_at(b);
  read_halves(b + 2, out.codes);
}

void read_iq4_xs(const uint8_t* b, Block& out) {
  const float scale = half_at(b);
  uint16_t high;
  std::memcpy(&high, b + 2, sizeof high);
  for (int g = 0; g < 8; ++g) {
    const int six = (b[4 + g / 2] >> (g % 2 * 4) & 15) | (high >> (2 * g) & 3) << 4;
    out.scales[g] = scale * float(six - 32);
    read_halves(b + 8 + 16 * g, out.codes + 32 * g);
  }
}

// The exponent alone, of half the scale, since the table has the doubles.
void read_mxfp4(const uint8_t* b, Block& out) {
  const uint32_t bits = b[0] < 2 ? uint32_t(0x00200000) << b[0] : uint32_t(b[0] - 1) << 23;
  std::memcpy(&out.scales[0], &bits, sizeof bits);
  read_halves(b + 1, out.codes);
}

constexpr std::array<float, 16> kMxfp4 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr std::array<float, 16> kIq4 = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

struct Reader {
  const char* type;
  void (*read)(const uint8_t* block, Block& out);
  Encoding encoding;
  int64_t group;
  DType scale = kFloat32;  // f16 where a block has one, as it is
  bool has_offset = false;
  const std::array<float, 16>* table = nullptr;
};

constexpr Reader kReaders[] = {
    {"Q4_0", read_q4_0, Encoding::kUInt4, 32, kFloat16},
    {"Q4_1", read_q4_1, Encoding::kUInt4, 32, kFloat16, true},
    {"Q5_0", read_q5_0, Encoding::kInt8, 32, kFloat16},
    {"Q5_1", read_q5_1, Encoding::kInt8, 32, kFloat16, true},
    {"Q8_0", read_q8_0, Encoding::kInt8, 32, kFloat16},
    {"Q2_K", read_q2_k, Encoding::kUInt4, 16, kFloat32, true},
    {"Q3_K", read_q3_k, Encoding::kUInt4, 16},
    {"Q4_K", read_q4_k, Encoding::kUInt4, 32, kFloat32, true},
    {"Q5_K", read_q5_k, Encoding::kInt8, 32, kFloat32, true},
    {"Q6_K", read_q6_k, Encoding::kInt8, 16},
    {"IQ4_NL", read_iq4_nl, Encoding::kTable4, 32, kFloat16, false, &kIq4},
    {"IQ4_XS", read_iq4_xs, Encoding::kTable4, 32, kFloat32, false, &kIq4},
    {"MXFP4", read_mxfp4, Encoding::kTable4, 32, kFloat32, false, &kMxfp4},
};

const Reader* reader_of(const GgufType& type) {
  for (auto& reader : kReaders)
    if (std::string_view(type.name) == reader.type) return &reader;
  return nullptr;
}

void store(const float* from, int64_t count, DType dtype, void* to, int64_t at) {
  for (int64_t i = 0; i < count; ++i)
    if (dtype == kFloat16)
      static_cast<Half*>(to)[at + i] = Half(from[i]);
    else
      static_cast<float*>(to)[at + i] = from[i];
}

}  // namespace

bool is_encoded(const GgufTensor& tensor) { return reader_of(tensor.type) != nullptr; }

nn::QuantizedWeight decode_blocks(const GgufType& type, const uint8_t* blocks, int64_t rows, int64_t columns) {
  const Reader* reader = reader_of(type);
  check(reader != nullptr, "gguf: weights of the type {} are not read", type.name);
  const int64_t items = type.items, groups = columns / reader->group, of_block = items / reader->group;
  const bool nibbles = reader->encoding != Encoding::kInt8;
  nn::QuantizedWeight made;
  made.encoding = reader->encoding;
  made.group_size = groups == 1 ? 0 : reader->group;
  made.columns = columns;
  made.codes = empty({rows, nibbles ? columns / 2 : columns}, nibbles ? kUInt8 : kInt8);
  made.scale = empty({rows, groups}, reader->scale);
  if (reader->has_offset) made.offset = empty({rows, groups}, reader->scale);
  if (reader->table) made.table = tensor(std::vector<float>(reader->table->begin(), reader->table->end()));
  auto* codes = static_cast<uint8_t*>(made.codes.data_ptr());
  void *scale = made.scale.data_ptr(), *offset = reader->has_offset ? made.offset.data_ptr() : nullptr;
  parallel_for(0, rows, std::max<int64_t>(1, 65536 / columns), [&](int64_t begin, int64_t end) {
    Block block;
    for (int64_t at = begin * columns / items; at < end * columns / items; ++at) {
      reader->read(blocks + at * type.bytes, block);
      store(block.scales, of_block, reader->scale, scale, at * of_block);
      if (offset) store(block.offsets, of_block, reader->scale, offset, at * of_block);
      uint8_t* to = codes + at * made.codes.size(1).number() * items / columns;
      if (!nibbles) {
        std::memcpy(to, block.codes, size_t(items));
      } else {
        for (int64_t i = 0; i < items; i += 2) to[i / 2] = uint8_t(block.codes[i] | block.codes[i + 1] << 4);
      }
    }
  });
  return made;
}

}  // namespace sinter::models
