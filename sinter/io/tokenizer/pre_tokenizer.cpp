#include "sinter/io/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <functional>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/regex.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Behavior read_behavior(JsonRef json, Behavior missing) {
  if (json.is_null()) return missing;
  const std::string& name = json.text();
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  json.fail(format("is the unknown behavior '{}'", name));
}

// Turns found parts into pieces, in place. A match joins its neighbour only when its other neighbour is no match.
void merge_parts(std::vector<Span>& parts, Behavior behavior) {
  std::vector<Span> merged;
  bool previous = false;
  auto add = [&](const Span& part, bool join) {
    if (join && !merged.empty()) {
      merged.back().begin = std::min(merged.back().begin, part.begin);
      merged.back().end = std::max(merged.back().end, part.end);
    } else {
      merged.push_back(part);
    }
    previous = part.match;
  };
  switch (behavior) {
    case Behavior::kIsolated:
      return;
    case Behavior::kRemoved:
      std::erase_if(parts, [](const Span& part) { return part.match; });
      return;
    case Behavior::kContiguous:
      for (auto& part : parts) add(part, part.match == previous);
      break;
    case Behavior::kMergedWithPrevious:
      for (auto& part : parts) add(part, part.match && !previous);
      break;
    case Behavior::kMergedWithNext:
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) add(*part, part->match && !previous);
      std::reverse(merged.begin(), merged.end());
      break;
  }
  parts = std::move(merged);
}

// Cuts every piece where `find(text, parts)` says.
template <class Find>
void split(Pieces& pieces, Behavior behavior, Find find) {
  std::vector<Pieces::Piece> result;
  std::vector<Span> parts;
  for (auto& piece : pieces.pieces) {
    parts.clear();
    find(pieces.view(piece), parts);
    merge_parts(parts, behavior);
    for (auto& part : parts)
      if (part.end > part.begin)
        result.push_back({piece.begin + part.begin, piece.begin + part.end, piece.first && part.begin == 0});
  }
  pieces.pieces = std::move(result);
}

// Every character that `is` accepts is a match of its own.
template <class Is>
void split_characters(Pieces& pieces, Behavior behavior, Is is) {
  split(pieces, behavior, [&](std::string_view text, std::vector<Span>& parts) {
    size_t at = 0, covered = 0;
    each_character(text, [&](char32_t c, std::string_view piece) {
      if (is(c)) {
        if (covered < at) parts.push_back({covered, at, false});
        parts.push_back({at, at + piece.size(), true});
        covered = at + piece.size();
      }
      at += piece.size();
    });
    if (covered < at) parts.push_back({covered, at, false});
  });
}

// Writes every piece anew: `write(piece's text, first, out)` appends it.
template <class Write>
void rewrite(Pieces& pieces, Write write) {
  std::string out;
  out.reserve(pieces.text.size() + pieces.text.size() / 4);
  for (auto& piece : pieces.pieces) {
    size_t begin = out.size();
    write(pieces.view(piece), piece.first, out);
    piece = {begin, out.size(), piece.first};
  }
  pieces.text = std::move(out);
}

class Function : public PreTokenizer {
 public:
  explicit Function(std::function<void(Pieces&)> body) : body_(std::move(body)) {}
  void apply(Pieces& pieces) const override { body_(pieces); }

 private:
  std::function<void(Pieces&)> body_;
};

template <class Body>
std::unique_ptr<PreTokenizer> function(Body body) {
  return std::make_unique<Function>(std::move(body));
}

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(JsonRef json) {
    json["pretokenizers"].each([&](JsonRef each) {
      if (auto one = read_pre_tokenizer(each)) steps_.push_back(std::move(one));
    });
  }
  void apply(Pieces& pieces) const override {
    for (auto& step : steps_) step->apply(pieces);
  }
  bool ends_in_bytes() const override { return !steps_.empty() && steps_.back()->ends_in_bytes(); }
  void leave_bytes() override { steps_.back()->leave_bytes(); }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

class ByteLevel : public PreTokenizer {
 public:
  explicit ByteLevel(JsonRef json) : prefix_(json["add_prefix_space"].boolean_or(true)) {
    if (json["use_regex"].boolean_or(true))
      regex_.emplace(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }
  void apply(Pieces& pieces) const override {
    if (prefix_) {
      rewrite(pieces, [](std::string_view text, bool, std::string& out) {
        if (!text.starts_with(' ')) out += ' ';
        out += text;
      });
    }
    if (regex_) {
      split(pieces, Behavior::kIsolated,
            [&](std::string_view text, std::vector<Span>& parts) { regex_->find_all(text, parts); });
    }
    if (bytes_) return;
    rewrite(pieces, [](std::string_view text, bool, std::string& out) {
      for (char c : text) out += byte_to_text(uint8_t(c));
    });
  }
  bool ends_in_bytes() const override { return true; }
  void leave_bytes() override { bytes_ = true; }

 private:
  bool prefix_, bytes_ = false;
  std::optional<Regex> regex_;
};

enum class Prepend { kFirst, kNever, kAlways };

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(JsonRef json)
      : mark_(json["replacement"].text_or("\u2581")), split_(json["split"].boolean_or(true)) {
    if (mark_.empty()) json.fail("has an empty replacement");
    std::string scheme = json["prepend_scheme"].text_or(json["add_prefix_space"].boolean_or(true) ? "always" : "never");
    if (scheme != "first" && scheme != "never" && scheme != "always")
      json.fail(format("has the unknown prepend_scheme '{}'", scheme));
    prepend_ = scheme == "first" ? Prepend::kFirst : scheme == "never" ? Prepend::kNever : Prepend::kAlways;
  }
  void apply(Pieces& pieces) const override {
    rewrite(pieces, [&](std::string_view text, bool first, std::string& out) {
      bool marked = text.starts_with(' ') || text.starts_with(mark_);
      if (!marked && (prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && first))) out += mark_;
      for (char c : text) {
        if (c == ' ') {
          out += mark_;
        } else {
          out += c;
        }
      }
    });
    if (!split_) return;
    Regex mark = Regex::literal(mark_);
    split(pieces, Behavior::kMergedWithNext,
          [&](std::string_view text, std::vector<Span>& parts) { mark.find_all(text, parts); });
  }

 private:
  std::string mark_;
  Prepend prepend_ = Prepend::kAlways;
  bool split_;
};

std::unique_ptr<PreTokenizer> by_pattern(Regex regex, Behavior behavior, bool invert) {
  return function([=](Pieces& pieces) {
    split(pieces, behavior, [&](std::string_view text, std::vector<Span>& parts) {
      regex.find_all(text, parts);
      if (invert)
        for (auto& part : parts) part.match = !part.match;
    });
  });
}

// Runs of word characters, and runs of others; white space is dropped.
void split_words(Pieces& pieces) {
  split(pieces, Behavior::kIsolated, [](std::string_view text, std::vector<Span>& parts) {
    size_t at = 0;
    int previous = -1;
    each_character(text, [&](char32_t c, std::string_view piece) {
      int kind = is_word(c) ? 1 : is_whitespace(c) ? -1 : 0;
      if (kind >= 0 && kind == previous) {
        parts.back().end = at + piece.size();
      } else if (kind >= 0) {
        parts.push_back({at, at + piece.size(), true});
      }
      previous = kind;
      at += piece.size();
    });
  });
}

// Every script but those that Japanese mixes, as Unicode abbreviates them.
constexpr std::string_view kScripts =
    "Adlm Aghb Ahom Arab Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo Brah Brai Bugi Buhd Cakm Cans Cari Cham "
    "Cher Chrs Copt Cpmn Cprt Cyrl Deva Diak Dogr Dsrt Dupl Egyp Elba Elym Ethi Geor Glag Gong Gonm Goth Gran Grek "
    "Gujr Guru Hang Hano Hatr Hebr Hluw Hmng Hmnp Hung Ital Java Kali Khar Khmr Khoj Kits Knda Kthi Lana Laoo Latn "
    "Lepc Limb Lina Linb Lisu Lyci Lydi Mahj Maka Mand Mani Marc Medf Mend Merc Mero Mlym Modi Mong Mroo Mtei Mult "
    "Mymr Nand Narb Nbat Newa Nkoo Nshu Ogam Olck Orkh Orya Osge Osma Ougr Palm Pauc Perm Phag Phli Phlp Phnx Plrd "
    "Prti Rjng Rohg Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sind Sinh Sogd Sogo Sora Soyo Sund Sylo Syrc Tagb Takr "
    "Tale Talu Taml Tang Tavt Telu Tfng Tglg Thaa Thai Tibt Tirh Tnsa Toto Ugar Vaii Vith Wara Wcho Xpeo Xsux Yezi "
    "Yiii Zanb Zinh Zyyy";

// Runs of one script. Hiragana, katakana and their prolonged sound mark count as Han; spaces and what has no script
// stay with the run before them, and before the first one belong to none. Hugging Face's scripts are those of an old
// Unicode: characters that came later have none there.
Regex script_runs() {
  auto run = [](const std::string& set) { return format("[{}][{} \\p{sc:Zzzz}]*", set, set); };
  std::string pattern = run(R"(\p{sc:Hani}\p{sc:Hira}\p{sc:Kana}\x{30FC})");
  for (size_t at = 0; at < kScripts.size(); at += 5) pattern += "|" + run(format("\\p{sc:{}}", kScripts.substr(at, 4)));
  return Regex("(?! )(?:" + pattern + ")");
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(JsonRef json) {
  if (json.is_null()) return nullptr;
  const std::string& type = json["type"].text();
  if (type == "Sequence") return std::make_unique<Sequence>(json);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(json);
  if (type == "Metaspace") return std::make_unique<Metaspace>(json);
  if (type == "Split") {
    return by_pattern(read_pattern(json["pattern"]), read_behavior(json["behavior"], Behavior::kIsolated),
                      json["invert"].boolean_or(false));
  }
  if (type == "Whitespace") return function(split_words);
  if (type == "WhitespaceSplit") {
    return function([](Pieces& pieces) { split_characters(pieces, Behavior::kRemoved, is_whitespace); });
  }
  if (type == "BertPreTokenizer") {
    return function([](Pieces& pieces) {
      split_characters(pieces, Behavior::kRemoved, is_whitespace);
      split_characters(pieces, Behavior::kIsolated, is_punctuation);
    });
  }
  if (type == "Digits") {
    Behavior behavior = json["individual_digits"].boolean_or(false) ? Behavior::kIsolated : Behavior::kContiguous;
    return function([=](Pieces& pieces) { split_characters(pieces, behavior, is_numeric); });
  }
  if (type == "Punctuation") {
    Behavior behavior = read_behavior(json["behavior"], Behavior::kIsolated);
    return function([=](Pieces& pieces) { split_characters(pieces, behavior, is_punctuation); });
  }
  if (type == "UnicodeScripts") return by_pattern(script_runs(), Behavior::kRemoved, true);
  if (type == "CharDelimiterSplit") {
    const std::string& text = json["delimiter"].text();
    if (count_characters(text) != 1) json.fail("has a delimiter that is not one character");
    return by_pattern(Regex::literal(text), Behavior::kRemoved, false);
  }
  json.fail(format("is a pre-tokenizer of the unknown type '{}'", type));
}

}  // namespace sinter::tokenizers
