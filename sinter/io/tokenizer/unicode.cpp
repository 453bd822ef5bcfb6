#include "sinter/io/tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "sinter/base/error.h"

namespace sinter::tokenizers {

namespace {

constexpr char32_t kReplacement = 0xFFFD;

// The length of the character at `text`, or 0. `broken` gets the bytes that one U+FFFD stands for: the longest start
// of a character, at least one.
int character_length(const unsigned char* text, const unsigned char* end, int* broken) {
  *broken = 1;
  unsigned char lead = text[0];
  if (lead < 0x80) return 1;
  int length = lead >= 0xC2 && lead <= 0xDF ? 2 : (lead & 0xF0) == 0xE0 ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
  if (length == 0) return 0;
  // The second byte excludes overlong forms, surrogates, and what lies beyond U+10FFFF.
  unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (int i = 1; i < length; ++i) {
    if (text + i >= end || text[i] < low || text[i] > high) return 0;
    *broken = i + 1;
    low = 0x80, high = 0xBF;
  }
  return length;
}

const unsigned char* bytes(const char* text) { return reinterpret_cast<const unsigned char*>(text); }

utf8proc_category_t category(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

bool in_categories(char32_t c, utf8proc_category_t first, utf8proc_category_t last) {
  auto its = category(c);
  return its >= first && its <= last;
}

struct ByteTable {
  std::array<std::string, 256> text;
  std::array<int16_t, 512> byte;

  ByteTable() {
    byte.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      char32_t code = printable ? char32_t(b) : next++;
      append_utf8(text[b], code);
      byte[code] = int16_t(b);
    }
  }
};

const ByteTable& byte_table() {
  static const ByteTable table;
  return table;
}

}  // namespace

Character decode_character(const char* text, const char* end) {
  int broken = 0;
  const unsigned char* p = bytes(text);
  switch (character_length(p, bytes(end), &broken)) {
    case 1:
      return {p[0], 1};
    case 2:
      return {char32_t((p[0] & 0x1F) << 6 | (p[1] & 0x3F)), 2};
    case 3:
      return {char32_t((p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F)), 3};
    case 4:
      return {char32_t((p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F)), 4};
    default:
      return {kReplacement, 1};
  }
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += {char(0xC0 | c >> 6), char(0x80 | (c & 0x3F))};
  } else if (c < 0x10000) {
    out += {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 0x3F)), char(0x80 | (c & 0x3F))};
  } else {
    out += {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 0x3F)), char(0x80 | (c >> 6 & 0x3F)), char(0x80 | (c & 0x3F))};
  }
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (unsigned char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (unsigned char c : text) all |= c;
  return all < 0x80;
}

bool is_valid_utf8(std::string_view text) {
  if (is_ascii(text)) return true;
  const unsigned char *p = bytes(text.data()), *end = p + text.size();
  int broken = 0;
  while (p < end) {
    int length = character_length(p, end, &broken);
    if (length == 0) return false;
    p += length;
  }
  return true;
}

size_t incomplete_suffix(std::string_view text) {
  const unsigned char *begin = bytes(text.data()), *end = begin + text.size();
  for (int back = 1; back <= 3 && begin + back <= end; ++back) {
    const unsigned char* p = end - back;
    if ((*p & 0xC0) == 0x80) continue;
    int broken = 0;
    return character_length(p, end, &broken) == 0 && broken == back && *p >= 0xC2 && *p <= 0xF4 ? back : 0;
  }
  return 0;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const unsigned char *p = bytes(text.data()), *end = p + text.size();
  while (p < end) {
    int broken = 0;
    int length = character_length(p, end, &broken);
    if (length > 0) {
      out.append(reinterpret_cast<const char*>(p), size_t(length));
      p += length;
    } else {
      append_utf8(out, kReplacement);
      p += broken;
    }
  }
  return out;
}

std::string normalize_unicode(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  int options = UTF8PROC_STABLE;
  options |= form == NormalForm::kNfc || form == NormalForm::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t* result = nullptr;
  auto size = utf8proc_map(bytes(text.data()), utf8proc_ssize_t(text.size()), &result, utf8proc_option_t(options));
  std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(result, std::free);
  check(size >= 0, "tokenizer: the text cannot be normalized: {}", utf8proc_errmsg(size));
  return std::string(reinterpret_cast<const char*>(result), size_t(size));
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t c, std::string_view) {
    if (c < 0x80) {
      out += char(c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (c == 0x130) {
      out += "i\xCC\x87";  // the one character whose lower case is two
    } else {
      append_utf8(out, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
    }
  });
  return out;
}

std::string uppercase(std::string_view text) {
  std::string out;
  each_character(text, [&](char32_t c, std::string_view) {
    if (c == 0xDF) {
      out += "SS";
    } else {
      append_utf8(out, char32_t(utf8proc_toupper(utf8proc_int32_t(c))));
    }
  });
  return out;
}

bool is_letter(char32_t c) { return in_categories(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return in_categories(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_word(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  bool circled = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
                 (c >= 0x1F170 && c <= 0x1F189);
  return in_categories(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) || category(c) == UTF8PROC_CATEGORY_PC ||
         c == 0x200C || c == 0x200D || circled;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return c > ' ' && c < 0x7F && !((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'));
  return in_categories(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_other(char32_t c) {
  return in_categories(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CF) || category(c) == UTF8PROC_CATEGORY_CO;
}

bool is_mark(char32_t c) { return c >= 0x300 && in_categories(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN; }

void each_grapheme(std::string_view text, const std::function<void(std::string_view)>& body) {
  size_t begin = 0, at = 0;
  char32_t previous = 0;
  utf8proc_int32_t state = 0;
  each_character(text, [&](char32_t c, std::string_view piece) {
    if (at != 0 && utf8proc_grapheme_break_stateful(utf8proc_int32_t(previous), utf8proc_int32_t(c), &state)) {
      body(text.substr(begin, at - begin));
      begin = at;
    }
    previous = c;
    at += piece.size();
  });
  if (at > begin) body(text.substr(begin, at - begin));
}

std::string_view byte_to_text(uint8_t byte) { return byte_table().text[byte]; }

int text_to_byte(char32_t c) { return c < 512 ? byte_table().byte[c] : -1; }

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  if (from.empty()) return std::string(text);
  for (size_t at; (at = text.find(from)) != text.npos; text.remove_prefix(at + from.size())) {
    out += text.substr(0, at);
    out += to;
  }
  out += text;
  return out;
}

}  // namespace sinter::tokenizers
