#include "sinter/runtime/cpu/gemm/encoded.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/gemm/encoded_layout.h"

namespace sinter::runtime {

namespace gemm_detail {

EncodedLayout::EncodedLayout(const EncodedFormat& f) {
  codes_in_word = 4 * f.codes_in_byte();
  depth = round_up(std::max<int64_t>(f.k, 1), EncodedFormat::kGroupStep);
  group = f.group > 0 && f.group < f.k ? f.group : depth;
  groups = ceil_div(depth, group);
  panels = ceil_div(f.n, EncodedFormat::kPanel);
  if (f.has_table()) table_entries = f.kind == CodeKind::kTable4 ? 16 : 256;
  table_bytes = 4 * table_entries;
  scale_size = f.scale == GemmType::f32 || f.offset ? 4 : 2;
  scale_bytes = scale_size * EncodedFormat::kPanel;
  if (f.zero != ZeroType::none) {
    zero_size = (f.zero == ZeroType::u8 || f.zero == ZeroType::i8) && !f.offset ? 2 : 4;
    zero_bytes = zero_size * EncodedFormat::kPanel;
  }
  zeros_at = groups * scale_bytes;
  codes_at = zeros_at + groups * zero_bytes;
  panel_bytes = codes_at + depth / codes_in_word * 4 * EncodedFormat::kPanel;
}

GroupNumbers EncodedReader::numbers(int64_t col, int64_t group) const {
  const int64_t at = col % EncodedFormat::kPanel;
  const char* from = panel(col);
  const float same = format_.kind == CodeKind::kInt8 ? 128.0f : format_.kind == CodeKind::kUInt4 ? 8.0f : 0.0f;
  GroupNumbers out{};
  out.scale = from + group * layout_.scale_bytes + at * layout_.scale_size;
  out.scale_storage = layout_.scale_size == 4 ? kNative : format_.scale == GemmType::f16 ? kHalf : kBFloat16;
  out.scale_step = layout_.scale_bytes;
  out.same = same;
  if (layout_.zero_bytes) {
    out.zero = from + layout_.zeros_at + group * layout_.zero_bytes + at * layout_.zero_size;
    out.zero_storage = layout_.zero_size == 4 ? kNative : kBFloat16;
    out.zero_step = layout_.zero_bytes;
  }
  return out;
}

PanelMaker EncodedPanels::maker() const {
  return {
      [](const void* context, int64_t row, int64_t rows, int64_t col, int64_t, void* dst) {
        const auto& panels = *static_cast<const EncodedPanels*>(context);
        const EncodedReader& reader = panels.reader;
        const int64_t size = panels.pairs ? 2 : 4;
        for (int64_t k = row, end; k < row + rows; k = end) {
          const int64_t group = reader.group_at(k);
          end = std::min(row + rows, (group + 1) * reader.layout().group);
          panels.core->expand[reader.kind()]({end - k, reader.codes(col, k), reader.table(), reader.numbers(col, group),
                                              static_cast<char*>(dst) + (k - row) * panels.panel * size, panels.pairs});
        }
      },
      this};
}

}  // namespace gemm_detail

using namespace gemm_detail;

namespace {

float number_at(const void* from, GemmType type, int64_t at) {
  if (type == GemmType::f32) return static_cast<const float*>(from)[at];
  float out;
  core_f32(CpuIsa::kScalar)
      ->load(static_cast<const uint16_t*>(from) + at, type == GemmType::f16 ? kHalf : kBFloat16, 1, 1, 1, 1, &out, 1);
  return out;
}

// Four neighbours along k of one column, or eight of four bits, from row `n` of W at `k`.
class WordReader {
 public:
  WordReader(const EncodedFormat& format, const EncodedOperand& operand, int64_t n)
      : format_(format),
        from_(static_cast<const uint8_t*>(operand.codes) + n * operand.row_stride),
        step_(operand.col_stride),
        bytes_((format.k + format.codes_in_byte() - 1) / format.codes_in_byte()) {}

  uint32_t operator()(int64_t k) const {
    const int64_t at = k / format_.codes_in_byte();
    uint32_t word = 0;
    if (step_ == 1 && at + 4 <= bytes_)
      std::memcpy(&word, from_ + at, 4);
    else
      for (int64_t i = 0; i < 4 && at + i < bytes_; ++i) word |= uint32_t(from_[(at + i) * step_]) << (8 * i);
    if (format_.kind == CodeKind::kInt8) return word ^ 0x80808080u;
    if (format_.codes_in_byte() == 1) return word;
    // Neighbours' halves become halves of bytes apart by four.
    const auto spread = [](uint32_t halves) {
      halves = (halves | halves << 8) & 0x00ff00ffu;
      return (halves | halves << 4) & 0x0f0f0f0fu;
    };
    return spread(word & 0xffff) | spread(word >> 16) << 4;
  }

 private:
  const EncodedFormat& format_;
  const uint8_t* from_;
  int64_t step_, bytes_;
};

// A zero as what is subtracted from unsigned codes.
class ZeroReader {
 public:
  ZeroReader(const EncodedFormat& format, const EncodedOperand& operand)
      : type_(format.zero), operand_(operand), more_(format.kind == CodeKind::kInt8 ? 128.0f : 0.0f) {}

  float operator()(int64_t row, int64_t group) const { return more_ + stored(row, group); }

  // A scale with its offset, as one that is multiplied behind what is subtracted. Where next to nothing is left of codes beside the
  // offset, they are as if there were none.
  std::pair<float, float> with_offset(float scale, int64_t row, int64_t group) const {
    constexpr float kBeyondCodes = float(1 << 30);
    const float offset = stored(row, group);
    const bool lost = std::abs(scale) < std::abs(offset) / kBeyondCodes;
    if (lost) return {offset / kBeyondCodes, more_ - kBeyondCodes};
    return {scale, more_ - (scale == 0 ? 0 : offset / scale)};
  }

 private:
  float stored(int64_t row, int64_t group) const {
    const int64_t at = row * operand_.zero_row_stride + group * operand_.zero_col_stride;
    switch (type_) {
      case ZeroType::u8:
        return float(static_cast<const uint8_t*>(operand_.zero)[at]);
      case ZeroType::i8:
        return float(static_cast<const int8_t*>(operand_.zero)[at]);
      case ZeroType::f32:
        return number_at(operand_.zero, GemmType::f32, at);
      case ZeroType::f16:
        return number_at(operand_.zero, GemmType::f16, at);
      default:
        return number_at(operand_.zero, GemmType::bf16, at);
    }
  }

  ZeroType type_;
  const EncodedOperand& operand_;
  float more_;
};

// The numbers of bytes are exact in bf16 up to 256, so they are stored so.
uint16_t as_bf16(float whole) {
  uint32_t bits;
  std::memcpy(&bits, &whole, 4);
  return uint16_t(bits >> 16);
}

void pack_numbers(const EncodedLayout& layout, const EncodedFormat& format, const EncodedOperand& operand,
                  int64_t panel, char* to) {
  const ZeroReader zero_of(format, operand);
  for (int64_t group = 0; group < layout.groups; ++group) {
    char* scale = to + group * layout.scale_bytes;
    char* zero = to + layout.zeros_at + group * layout.zero_bytes;
    for (int64_t j = 0; j < EncodedFormat::kPanel; ++j) {
      const int64_t n = panel * EncodedFormat::kPanel + j;
      if (n >= format.n) {
        // Nobody reads these columns, but they are summed.
        std::memset(scale + j * layout.scale_size, 0, size_t(layout.scale_size));
        if (layout.zero_bytes) std::memset(zero + j * layout.zero_size, 0, size_t(layout.zero_size));
        continue;
      }
      const int64_t row = n / operand.block_rows;
      const int64_t at = row * operand.scale_row_stride + group * operand.scale_col_stride;
      if (format.offset) {
        const auto [factor, less] = zero_of.with_offset(number_at(operand.scale, format.scale, at), row, group);
        std::memcpy(scale + 4 * j, &factor, 4);
        std::memcpy(zero + 4 * j, &less, 4);
        continue;
      }
      std::memcpy(scale + j * layout.scale_size, static_cast<const char*>(operand.scale) + at * layout.scale_size,
                  size_t(layout.scale_size));
      if (!layout.zero_bytes) continue;
      const float value = zero_of(row, group);
      if (layout.zero_size == 4) {
        std::memcpy(zero + 4 * j, &value, 4);
      } else {
        const uint16_t bits = as_bf16(value);
        std::memcpy(zero + 2 * j, &bits, 2);
      }
    }
  }
}

}  // namespace

int64_t packed_encoded_bytes(const EncodedFormat& format) { return EncodedLayout(format).bytes(); }

void pack_encoded(const EncodedFormat& format, const EncodedOperand& operand, void* to) {
  const EncodedLayout layout(format);
  if (format.has_table()) {
    float* table = static_cast<float*>(to);
    for (int64_t i = 0; i < layout.table_entries; ++i)
      table[i] = number_at(operand.table, operand.table_type, i * operand.table_stride);
  }
  parallel_for(0, layout.panels, std::max<int64_t>(1, 65536 / (EncodedFormat::kPanel * (format.k + 1))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t panel = begin; panel < end; ++panel) {
                   char* at = static_cast<char*>(to) + layout.table_bytes + panel * layout.panel_bytes;
                   pack_numbers(layout, format, operand, panel, at);
                   for (int64_t j = 0; j < EncodedFormat::kPanel; ++j) {
                     const int64_t n = panel * EncodedFormat::kPanel + j;
                     const WordReader word_at(format, operand, std::min(n, format.n - 1));
                     char* word = at + layout.codes_at + 4 * j;
                     for (int64_t k = 0; k < layout.depth;
                          k += layout.codes_in_word, word += 4 * EncodedFormat::kPanel) {
                       const uint32_t codes = n < format.n ? word_at(k) : 0;
                       std::memcpy(word, &codes, 4);
                     }
                   }
                 }
               });
}

}  // namespace sinter::runtime
