#pragma once
// UTF-8 and the properties of characters that tokenizers ask for.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sinter::tokenizers {

// One character of valid UTF-8 and the bytes it takes. Bytes that are no character count as U+FFFD, one byte long.
struct Character {
  char32_t code;
  uint32_t size;
};
Character decode_character(const char* text, const char* end);
inline Character first_character(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) < 0x80) return {static_cast<unsigned char>(text[0]), 1};
  return decode_character(text.data(), text.data() + text.size());
}
void append_utf8(std::string& out, char32_t code);

// Calls `body(code, piece)` for every character of the text.
template <class Body>
void each_character(std::string_view text, Body&& body) {
  while (!text.empty()) {
    Character c = first_character(text);
    body(c.code, text.substr(0, c.size));
    text.remove_prefix(c.size);
  }
}
size_t count_characters(std::string_view text);

bool is_ascii(std::string_view text);
bool is_valid_utf8(std::string_view text);
// How many bytes at the end are the beginning of a character whose rest may still come.
size_t incomplete_suffix(std::string_view text);
// The text with every maximal broken sequence replaced by U+FFFD.
std::string replace_invalid(std::string_view text);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
std::string normalize_unicode(std::string_view text, NormalForm form);
std::string lowercase(std::string_view text);
std::string uppercase(std::string_view text);

bool is_whitespace(char32_t c);   // the property White_Space
bool is_letter(char32_t c);       // the L categories
bool is_numeric(char32_t c);      // categories Nd, Nl, No
bool is_word(char32_t c);         // what \w means to Unicode: letters, marks, digits, connectors, joiners
bool is_punctuation(char32_t c);  // the P categories, and every ASCII symbol
bool is_other(char32_t c);        // control, format, private use
bool is_mark(char32_t c);         // Mn, Mc, Me
bool is_nonspacing_mark(char32_t c);

// Calls `body` for each grapheme cluster.
void each_grapheme(std::string_view text, const std::function<void(std::string_view)>& body);

// The printable character that stands for a byte in byte-level vocabularies, as UTF-8, and back (-1: none does).
std::string_view byte_to_text(uint8_t byte);
int text_to_byte(char32_t c);

// Every occurrence of `from` replaced.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace sinter::tokenizers
