#include "sinter/io/tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

constexpr size_t kMaxPattern = 64 * 1024;
constexpr uint32_t kMatchLimit = 5'000'000;  // steps of one match
constexpr uint32_t kHeapLimit = 64 * 1024;   // KiB of one match
constexpr uint32_t kNestLimit = 100;
constexpr size_t kMaxText = size_t(1) << 28;  // of a text with replacements

template <class T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const { kFree(object); }
};
template <class T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Freed<T, kFree>>;

using CompileContext = Owned<pcre2_compile_context, pcre2_compile_context_free>;
using MatchContext = Owned<pcre2_match_context, pcre2_match_context_free>;
using MatchData = Owned<pcre2_match_data, pcre2_match_data_free>;
using CompiledCode = Owned<pcre2_code, pcre2_code_free>;

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR subject(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct Regex::Code {
  CompiledCode code;
  MatchContext limits;
  std::string pattern;
};

Regex::Regex(std::string_view pattern) {
  check(pattern.size() <= kMaxPattern, "tokenizer: a pattern of {} bytes is too long", pattern.size());
  std::string translated = to_pcre2(pattern);
  CompileContext context(pcre2_compile_context_create(nullptr));
  pcre2_set_parens_nest_limit(context.get(), kNestLimit);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t at = 0;
  uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  CompiledCode code(pcre2_compile(subject(translated), translated.size(), options, &error, &at, context.get()));
  check(code != nullptr, "tokenizer: the pattern '{}' is not understood: {}", pattern, error_text(error));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it matching is slower, nothing else
  MatchContext limits(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(limits.get(), kMatchLimit);
  pcre2_set_heap_limit(limits.get(), kHeapLimit);
  code_ = std::make_shared<const Code>(Code{std::move(code), std::move(limits), std::string(pattern)});
}

Regex Regex::literal(std::string_view text) {
  Regex result;
  result.literal_ = text;
  return result;
}

void Regex::find_all(std::string_view text, std::vector<Span>& parts) const {
  size_t covered = 0;
  auto found = [&](size_t begin, size_t end) {
    if (covered != begin) parts.push_back({covered, begin, false});
    parts.push_back({begin, end, true});
    covered = end;
  };
  if (!code_) {
    size_t at = literal_.empty() ? text.npos : text.find(literal_);
    for (; at != text.npos; at = text.find(literal_, covered)) found(at, at + literal_.size());
  } else {
    MatchData data(pcre2_match_data_create(1, nullptr));
    check(data != nullptr, "tokenizer: no memory to match '{}'", code_->pattern);
    const size_t* offsets = pcre2_get_ovector_pointer(data.get());
    size_t from = 0, last_end = text.npos;
    while (from <= text.size()) {
      auto match = [&](uint32_t options) {
        return pcre2_match(code_->code.get(), subject(text), text.size(), from, PCRE2_NO_UTF_CHECK | options,
                           data.get(), code_->limits.get());
      };
      int count = match(0);
      if (count == PCRE2_ERROR_JIT_STACKLIMIT) count = match(PCRE2_NO_JIT);
      if (count == PCRE2_ERROR_NOMATCH) break;
      check(count >= 0, "tokenizer: the pattern '{}' cannot be matched: {}", code_->pattern, error_text(count));
      size_t begin = offsets[0], end = offsets[1];
      check(begin <= end && begin >= from, "tokenizer: the pattern '{}' matches backwards", code_->pattern);
      if (begin == end && end == last_end) {  // an empty match right behind the last one does not count
        if (from >= text.size()) break;
        from += first_character(text.substr(from)).size;
        continue;
      }
      found(begin, end);
      from = last_end = end;
    }
  }
  if (covered != text.size()) parts.push_back({covered, text.size(), false});
}

std::string Regex::replace(std::string_view text, std::string_view with) const {
  std::vector<Span> parts;
  find_all(text, parts);
  std::string out;
  for (auto& part : parts) {
    out += part.match ? with : text.substr(part.begin, part.end - part.begin);
    check(out.size() <= kMaxText, "tokenizer: a replacement makes the text longer than {} bytes", kMaxText);
  }
  return out;
}

Regex read_pattern(JsonRef json) {
  if (json.is_string()) return Regex::literal(json.text());
  JsonRef regex = json["Regex"], text = json["String"];
  if (!regex.is_null()) return Regex(regex.text());
  return Regex::literal(text.text());
}

}  // namespace sinter::tokenizers
