#include "sinter/io/tokenizer/normalizer.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/regex.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

// Most normalizers are one function over the text.
class Function : public Normalizer {
 public:
  explicit Function(std::function<void(std::string&)> body) : body_(std::move(body)) {}
  void apply(std::string& text) const override { body_(text); }

 private:
  std::function<void(std::string&)> body_;
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(JsonRef json) {
    json["normalizers"].each([&](JsonRef each) {
      if (auto one = read_normalizer(each)) steps_.push_back(std::move(one));
    });
  }
  void apply(std::string& text) const override {
    for (auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

template <class Body>
std::unique_ptr<Normalizer> function(Body body) {
  return std::make_unique<Function>(std::move(body));
}

// The characters for which `keep` holds, through `map`.
template <class Keep, class Map>
void filter(std::string& text, Keep keep, Map map) {
  std::string out;
  out.reserve(text.size());
  each_character(text, [&](char32_t c, std::string_view) {
    if (keep(c)) append_utf8(out, map(c));
  });
  text = std::move(out);
}

char32_t same(char32_t c) { return c; }

void strip(std::string& text, bool left, bool right) {
  std::string_view view = text;
  size_t begin = view.size(), end = 0, at = 0;
  each_character(view, [&](char32_t c, std::string_view piece) {
    if (!is_whitespace(c)) {
      begin = std::min(begin, at);
      end = at + piece.size();
    }
    at += piece.size();
  });
  if (!left) begin = 0;
  if (!right) end = view.size();
  text = begin < end ? text.substr(begin, end - begin) : std::string();
}

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

struct Bert {
  bool clean, chinese, strip_accents, lower;

  explicit Bert(JsonRef json)
      : clean(json["clean_text"].boolean_or(true)),
        chinese(json["handle_chinese_chars"].boolean_or(true)),
        strip_accents(json["strip_accents"].boolean_or(json["lowercase"].boolean_or(true))),
        lower(json["lowercase"].boolean_or(true)) {}

  void operator()(std::string& text) const {
    if (clean) {
      filter(
          text,
          [](char32_t c) { return c == '\t' || c == '\n' || c == '\r' || !(c == 0 || c == 0xFFFD || is_other(c)); },
          [](char32_t c) { return is_whitespace(c) ? U' ' : c; });
    }
    if (chinese && !is_ascii(text)) {
      std::string out;
      each_character(text, [&](char32_t c, std::string_view piece) {
        if (is_chinese(c)) out += ' ';
        out += piece;
        if (is_chinese(c)) out += ' ';
      });
      text = std::move(out);
    }
    if (strip_accents && !is_ascii(text)) {
      text = normalize_unicode(text, NormalForm::kNfd);
      filter(
          text, [](char32_t c) { return !is_nonspacing_mark(c); }, same);
    }
    if (lower) text = lowercase(text);
  }
};

// What neural machine translation removes, and what it takes for a space.
void nmt(std::string& text) {
  auto keep = [](char32_t c) {
    return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F);
  };
  auto map = [](char32_t c) {
    bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                 c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    return space ? U' ' : c;
  };
  filter(text, keep, map);
}

std::unique_ptr<Normalizer> form(NormalForm which) {
  return function([which](std::string& text) { text = normalize_unicode(text, which); });
}

}  // namespace

std::unique_ptr<Normalizer> read_normalizer(JsonRef json) {
  if (json.is_null()) return nullptr;
  const std::string& type = json["type"].text();
  if (type == "Sequence") return std::make_unique<Sequence>(json);
  if (type == "NFC") return form(NormalForm::kNfc);
  if (type == "NFD") return form(NormalForm::kNfd);
  if (type == "NFKC") return form(NormalForm::kNfkc);
  if (type == "NFKD") return form(NormalForm::kNfkd);
  if (type == "Lowercase") return function([](std::string& text) { text = lowercase(text); });
  if (type == "StripAccents")
    return function([](std::string& text) {
      filter(
          text, [](char32_t c) { return !is_mark(c); }, same);
    });
  if (type == "BertNormalizer") return function(Bert(json));
  if (type == "Nmt") return function(nmt);
  if (type == "Precompiled") return read_precompiled(json);
  if (type == "Prepend") {
    return function([prefix = json["prepend"].text()](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
    });
  }
  if (type == "Replace") {
    return function([pattern = read_pattern(json["pattern"]), with = json["content"].text()](std::string& text) {
      text = pattern.replace(text, with);
    });
  }
  if (type == "Strip") {
    bool left = json["strip_left"].boolean_or(true), right = json["strip_right"].boolean_or(true);
    return function([=](std::string& text) { strip(text, left, right); });
  }
  if (type == "ByteLevel") {
    return function([](std::string& text) {
      std::string out;
      for (char c : text) out += byte_to_text(uint8_t(c));
      text = std::move(out);
    });
  }
  json.fail(format("is a normalizer of the unknown type '{}'", type));
}

}  // namespace sinter::tokenizers
