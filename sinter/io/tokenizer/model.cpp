#include "sinter/io/tokenizer/model.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

// Longest match first, again and again; a word that does not come out whole is unknown.
class WordPiece : public Model {
 public:
  explicit WordPiece(JsonRef json)
      : prefix_(json["continuing_subword_prefix"].text_or("##")), unknown_(json["unk_token"].text_or("[UNK]")) {
    if (!json["max_input_chars_per_word"].is_null()) max_characters_ = json["max_input_chars_per_word"].id();
    vocab_.read(json["vocab"]);
  }

  void tokenize(std::string_view piece, std::vector<Id>& out) const override {
    size_t known = out.size(), start = 0;
    std::string candidate;
    if (count_characters(piece) > max_characters_) return unknown(out, known);
    while (start < piece.size()) {
      candidate = start == 0 ? "" : prefix_;
      size_t head = candidate.size();
      candidate += piece.substr(start, vocab_.longest());
      std::optional<Id> id;
      // A cut inside a character finds nothing, since tokens are whole characters.
      for (; candidate.size() > head && !(id = vocab_.find(candidate)); candidate.pop_back()) continue;
      if (!id) return unknown(out, known);
      out.push_back(*id);
      start += candidate.size() - head;
    }
  }

 private:
  void unknown(std::vector<Id>& out, size_t known) const {
    auto id = vocab_.find(unknown_);
    check(id.has_value(), "tokenizer: a word is unknown, and the vocabulary has no '{}' for it", unknown_);
    out.resize(known);
    out.push_back(*id);
  }

  std::string prefix_, unknown_;
  size_t max_characters_ = 100;
};

class WordLevel : public Model {
 public:
  explicit WordLevel(JsonRef json) : unknown_(json["unk_token"].text_or("<unk>")) { vocab_.read(json["vocab"]); }

  void tokenize(std::string_view piece, std::vector<Id>& out) const override {
    auto id = vocab_.find(piece);
    if (!id) id = vocab_.find(unknown_);
    check(id.has_value(), "tokenizer: a word is unknown, and the vocabulary has no '{}' for it", unknown_);
    out.push_back(*id);
  }

 private:
  std::string unknown_;
};

}  // namespace

size_t Vocab::Hash::operator()(std::string_view text) const { return hash_text(text); }

void Vocab::add(const std::string& token, Id id, JsonRef where) {
  // Ids index arrays here and rows of a matrix in the model: a few gaps are fine, a billion is a broken file.
  if (id > (size_t(1) << 20) + 8 * ids_.size())
    where.fail(format("gives '{}' the id {}, far beyond the others", token, id));
  ids_[token] = id;
  if (id >= tokens_.size()) tokens_.resize(id + 1);
  tokens_[id] = token;
  longest_ = std::max(longest_, token.size());
}

void Vocab::read(JsonRef object) {
  ids_.reserve(object.size());
  object.each_field([&](const std::string& token, JsonRef id) { add(token, id.id(), id); });
}

ByteTokens::ByteTokens(const Vocab& vocab) : ids_(256) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  for (int b = 0; b < 256; ++b) ids_[b] = vocab.find(std::string("<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">");
}

bool ByteTokens::append(std::string_view text, std::vector<Id>& out) const {
  if (!std::all_of(text.begin(), text.end(), [&](char c) { return ids_[uint8_t(c)].has_value(); })) return false;
  for (char c : text) out.push_back(*ids_[uint8_t(c)]);
  return true;
}

std::unique_ptr<Model> read_model(JsonRef json) {
  // Older files leave the type out: merges mean BPE, a list for a vocabulary Unigram.
  std::string type = json["type"].text_or("");
  if (type.empty()) type = json["vocab"].is_array() ? "Unigram" : !json["merges"].is_null() ? "BPE" : "WordPiece";
  if (type == "BPE") return read_bpe(json);
  if (type == "WordPiece") return std::make_unique<WordPiece>(json);
  if (type == "WordLevel") return std::make_unique<WordLevel>(json);
  if (type == "Unigram") return read_unigram(json);
  json.fail(format("is of the unknown type '{}'", type));
}

}  // namespace sinter::tokenizers
