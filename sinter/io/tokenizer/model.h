#pragma once
// Models: one piece of text to the ids of its tokens.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sinter/io/tokenizer/json_ref.h"

namespace sinter::tokenizers {

using Id = uint32_t;

// Tokens and their ids, which may have gaps.
class Vocab {
 public:
  // A token that is there already gets the new id. `where` is named when the id is out of all proportion.
  void add(const std::string& token, Id id, JsonRef where);
  void read(JsonRef object);  // {"token": id, …}

  std::optional<Id> find(std::string_view token) const {
    auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional<Id>(found->second);
  }
  // Null when no token has the id.
  const std::string* token(Id id) const { return id < tokens_.size() && tokens_[id] ? &*tokens_[id] : nullptr; }
  size_t size() const { return ids_.size(); }
  // One more than the largest id.
  size_t end() const { return tokens_.size(); }
  size_t longest() const { return longest_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const;
  };
  std::unordered_map<std::string, Id, Hash, std::equal_to<>> ids_;
  std::vector<std::optional<std::string>> tokens_;
  size_t longest_ = 0;
};

// The ids of "<0x00>" to "<0xFF>".
class ByteTokens {
 public:
  explicit ByteTokens(const Vocab& vocab);
  // Appends one id per byte; false, and nothing appended, when one of them is not in the vocabulary.
  bool append(std::string_view text, std::vector<Id>& out) const;

 private:
  std::vector<std::optional<Id>> ids_;
};

class Model {
 public:
  virtual ~Model() = default;
  // Appends the ids of a piece, which is not empty.
  virtual void tokenize(std::string_view piece, std::vector<Id>& out) const = 0;
  // Whether it can take pieces as bytes instead of as the printable characters that stand for them.
  virtual bool take_bytes() { return false; }
  const Vocab& vocab() const { return vocab_; }

 protected:
  Vocab vocab_;
};

std::unique_ptr<Model> read_model(JsonRef json);
std::unique_ptr<Model> read_bpe(JsonRef json);
std::unique_ptr<Model> read_unigram(JsonRef json);

}  // namespace sinter::tokenizers
