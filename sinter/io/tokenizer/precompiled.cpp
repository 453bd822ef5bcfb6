// SentencePiece's compiled character map: four bytes of trie size, a double-array trie of 32-bit units, and the
// replacements, each ended by a zero byte. Every index is checked: the bytes come from a file.
#include <cstring>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/normalizer.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

std::string decode_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    if (c == '=') break;
    int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    check(value >= 0, "tokenizer: precompiled_charsmap is not base64");
    bits = bits << 6 | uint32_t(value);
    if (++count == 4) {
      out += {char(bits >> 16), char(bits >> 8), char(bits)};
      bits = 0, count = 0;
    }
  }
  if (count == 2) out += char(bits >> 4);
  if (count == 3) out += {char(bits >> 10), char(bits >> 2)};
  return out;
}

// One unit of the double array.
struct Unit {
  uint32_t bits;
  bool has_leaf() const { return bits >> 8 & 1; }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
  uint32_t label() const { return bits & 0x800000FF; }
  uint32_t offset() const { return (bits >> 10) << ((bits & 0x200) >> 6); }
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(JsonRef json) {
    std::string bytes = decode_base64(json["precompiled_charsmap"].text());
    uint32_t trie_size = 0;
    if (bytes.size() < 4) json.fail("has a precompiled_charsmap that is too short");
    std::memcpy(&trie_size, bytes.data(), 4);
    if (trie_size > bytes.size() - 4 || trie_size % 4 != 0 || trie_size == 0)
      json.fail("has a precompiled_charsmap whose trie does not fit");
    trie_.resize(trie_size / 4);
    std::memcpy(trie_.data(), bytes.data() + 4, trie_size);
    replacements_ = bytes.substr(4 + trie_size);
    if (!is_valid_utf8(replacements_)) json.fail("has a precompiled_charsmap that is not UTF-8");
  }

  void apply(std::string& text) const override {
    std::string out, replacement;
    each_grapheme(text, [&](std::string_view grapheme) {
      if (grapheme.size() < 6 && find(grapheme, replacement)) {
        out += replacement;
        return;
      }
      each_character(grapheme, [&](char32_t, std::string_view piece) {
        if (find(piece, replacement)) {
          out += replacement;
        } else {
          out += piece;
        }
      });
    });
    text = std::move(out);
  }

 private:
  // The replacement of the shortest beginning of `key` that has one.
  bool find(std::string_view key, std::string& replacement) const {
    uint32_t node = Unit{trie_[0]}.offset();
    for (unsigned char c : key) {
      node ^= c;
      if (c == 0 || node >= trie_.size()) return false;
      Unit unit{trie_[node]};
      if (unit.label() != c) return false;
      node ^= unit.offset();
      if (!unit.has_leaf()) continue;
      if (node >= trie_.size()) return false;
      uint32_t begin = Unit{trie_[node]}.value();
      if (begin >= replacements_.size() || (uint8_t(replacements_[begin]) & 0xC0) == 0x80) return false;
      replacement = replacements_.c_str() + begin;
      return true;
    }
    return false;
  }

  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace

std::unique_ptr<Normalizer> read_precompiled(JsonRef json) { return std::make_unique<Precompiled>(json); }

}  // namespace sinter::tokenizers
