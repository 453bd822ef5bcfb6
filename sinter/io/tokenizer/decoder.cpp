#include "sinter/io/tokenizer/decoder.h"

#include <optional>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/regex.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

constexpr int kMaxDepth = 16;

// A stage that looks at one token at a time: its text and its number.
class PerToken : public DecodeStage {
 public:
  using Body = std::function<std::string(std::string token, size_t index)>;
  explicit PerToken(Body body) : body_(std::move(body)) {}
  void push(std::string token, const Sink& sink) override { sink(body_(std::move(token), index_++)); }

 private:
  Body body_;
  size_t index_ = 0;
};

// Bytes written as printable characters; a token with any other character stands for itself.
class ByteLevel : public DecodeStage {
 public:
  void push(std::string token, const Sink& sink) override {
    std::string bytes;
    bool all = true;
    each_character(token, [&](char32_t c, std::string_view) {
      int byte = text_to_byte(c);
      all &= byte >= 0;
      bytes += char(byte);
    });
    held_ += all ? bytes : token;
    size_t rest = incomplete_suffix(held_);
    std::string_view ready = std::string_view(held_).substr(0, held_.size() - rest);
    if (!ready.empty()) sink(is_valid_utf8(ready) ? std::string(ready) : replace_invalid(ready));
    held_.erase(0, held_.size() - rest);
  }
  void finish(const Sink& sink) override {
    if (!held_.empty()) sink(replace_invalid(held_));
  }

 private:
  std::string held_;
};

// Rows of "<0xE2>" become the text they spell; a row that spells none becomes as many U+FFFD.
class ByteFallback : public DecodeStage {
 public:
  void push(std::string token, const Sink& sink) override {
    if (auto byte = byte_of(token)) {
      row_ += char(*byte);
      return;
    }
    finish(sink);
    sink(std::move(token));
  }
  void finish(const Sink& sink) override {
    if (row_.empty()) return;
    if (is_valid_utf8(row_)) {
      sink(std::move(row_));
    } else {
      for (size_t i = 0; i < row_.size(); ++i) sink("\uFFFD");
    }
    row_.clear();
  }

 private:
  static std::optional<uint8_t> byte_of(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return {};
    int value = 0;
    for (int i = 3; i < 5; ++i) {
      char c = token[i];
      // As Rust reads numbers: one sign is allowed, so "<0x+A>" is a byte too.
      if (i == 3 && c == '+') continue;
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0) return {};
      value = value * 16 + digit;
    }
    return uint8_t(value);
  }

  std::string row_;
};

// The suffix of a word is a space, but for the last token.
class WordEnds : public DecodeStage {
 public:
  explicit WordEnds(std::string suffix) : suffix_(std::move(suffix)) {}
  void push(std::string token, const Sink& sink) override {
    if (held_) sink(replace_all(*held_, suffix_, " "));
    held_ = std::move(token);
  }
  void finish(const Sink& sink) override {
    if (held_) sink(replace_all(*held_, suffix_, ""));
  }

 private:
  std::string suffix_;
  std::optional<std::string> held_;
};

// Takes up to `start` characters off the beginning and `stop` off the end: of each token, or of all as one.
class Strip : public DecodeStage {
 public:
  Strip(std::string content, size_t start, size_t stop, bool fused)
      : content_(std::move(content)), start_(start), stop_(stop), left_(start), fused_(fused) {}

  void push(std::string token, const Sink& sink) override {
    if (!fused_) left_ = start_;
    std::string text = std::move(held_) + token;
    held_.clear();
    size_t cut = 0;
    for (; left_ > 0 && std::string_view(text).substr(cut).starts_with(content_); --left_) cut += content_.size();
    if (cut < text.size()) left_ = 0;
    size_t keep = text.size();
    for (size_t i = 0; i < stop_ && keep - cut >= content_.size(); ++i) {
      if (!std::string_view(text).substr(0, keep).ends_with(content_)) break;
      keep -= content_.size();
    }
    if (fused_) held_ = text.substr(keep);  // may yet turn out not to be the end
    sink(text.substr(cut, keep - cut));
  }

 private:
  std::string content_, held_;
  size_t start_, stop_, left_;
  bool fused_;
};

// All tokens as one; `hold` keeps them back for a stage that must see the whole.
class Fuse : public DecodeStage {
 public:
  explicit Fuse(bool hold) : hold_(hold) {}
  void push(std::string token, const Sink& sink) override {
    if (hold_) {
      held_ += token;
    } else {
      sink(std::move(token));
    }
  }
  void finish(const Sink& sink) override {
    if (hold_) sink(std::move(held_));
  }

 private:
  bool hold_;
  std::string held_;
};

// English punctuation closed up to the word before it.
std::string clean_up(std::string text) {
  constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (auto& [from, to] : kRules)
    if (text.find(from) != text.npos) text = replace_all(text, from, to);
  return text;
}

// Repetitions and padding removed, as speech models want it.
class Ctc : public DecodeStage {
 public:
  explicit Ctc(JsonRef json)
      : pad_(json["pad_token"].text_or("<pad>")),
        delimiter_(json["word_delimiter_token"].text_or("|")),
        clean_(json["cleanup"].boolean_or(true)) {}
  void push(std::string token, const Sink& sink) override {
    if (last_ == token) return;
    last_ = token;
    std::string text = replace_all(token, pad_, "");
    if (clean_) text = replace_all(clean_up(text), delimiter_, " ");
    if (!text.empty()) sink(std::move(text));
  }

 private:
  std::string pad_, delimiter_;
  bool clean_;
  std::optional<std::string> last_;
};

}  // namespace

Decoder::Decoder(JsonRef json) {
  if (json.is_null()) {
    steps_.push_back({[] {
                        return std::make_unique<PerToken>(
                            [](std::string token, size_t i) { return i == 0 ? token : " " + token; });
                      },
                      nullptr});
  } else {
    read(json, 0);
  }
}

void Decoder::read(JsonRef json, int depth) {
  if (depth > kMaxDepth) json.fail("is nested too deeply");
  const std::string& type = json["type"].text();
  auto per_token = [&](PerToken::Body body) {
    steps_.push_back({[=] { return std::make_unique<PerToken>(body); }, nullptr});
  };
  if (type == "Sequence") {
    json["decoders"].each([&](JsonRef each) { read(each, depth + 1); });
  } else if (type == "ByteLevel") {
    steps_.push_back({[] { return std::make_unique<ByteLevel>(); }, nullptr, true});
  } else if (type == "ByteFallback") {
    steps_.push_back({[] { return std::make_unique<ByteFallback>(); }, nullptr});
  } else if (type == "Fuse") {
    steps_.push_back({[] { return std::make_unique<Fuse>(false); }, nullptr, true});
  } else if (type == "BPEDecoder") {
    steps_.push_back(
        {[suffix = json["suffix"].text_or("</w>")] { return std::make_unique<WordEnds>(suffix); }, nullptr});
  } else if (type == "Strip") {
    std::string content = json["content"].text();
    if (count_characters(content) != 1) json.fail("must strip one character");
    size_t start = json["start"].id(), stop = json["stop"].id();
    steps_.push_back({[=] { return std::make_unique<Strip>(content, start, stop, false); },
                      [=] { return std::make_unique<Strip>(content, start, stop, true); }});
  } else if (type == "WordPiece") {
    per_token(
        [prefix = json["prefix"].text_or("##"), clean = json["cleanup"].boolean_or(true)](std::string token, size_t i) {
          if (i != 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
          return clean ? clean_up(std::move(token)) : token;
        });
  } else if (type == "Metaspace") {
    std::string mark = json["replacement"].text_or("\u2581");
    bool prefix =
        json["prepend_scheme"].text_or(json["add_prefix_space"].boolean_or(true) ? "always" : "never") != "never";
    per_token(
        [=](const std::string& token, size_t i) { return replace_all(token, mark, i == 0 && prefix ? "" : " "); });
  } else if (type == "Replace") {
    per_token([pattern = read_pattern(json["pattern"]), with = json["content"].text()](
                  const std::string& token, size_t) { return pattern.replace(token, with); });
  } else if (type == "CTC") {
    Ctc example(json);
    steps_.push_back({[example] { return std::make_unique<Ctc>(example); }, nullptr});
  } else {
    json.fail(format("is a decoder of the unknown type '{}'", type));
  }
}

std::vector<std::unique_ptr<DecodeStage>> Decoder::stages() const {
  std::vector<std::unique_ptr<DecodeStage>> result;
  bool fused = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    auto& step = steps_[i];
    // A stage that must see its token whole gets it whole: what is fused is held back before it.
    if (fused && !step.make_fused && !step.joins) {
      result.push_back(std::make_unique<Fuse>(true));
      fused = false;
    }
    result.push_back(fused && step.make_fused ? step.make_fused() : step.make());
    fused |= step.joins;
  }
  return result;
}

void DecodeStream::push_into(size_t stage, std::string token, std::string& out) {
  if (stage == stages_.size()) {
    out += token;
  } else {
    stages_[stage]->push(std::move(token),
                         [&, stage](std::string made) { push_into(stage + 1, std::move(made), out); });
  }
}

void DecodeStream::finish(std::string& out) {
  for (size_t stage = 0; stage < stages_.size(); ++stage)
    stages_[stage]->finish([&, stage](std::string made) { push_into(stage + 1, std::move(made), out); });
}

}  // namespace sinter::tokenizers
