#pragma once
// Tokens that are found in the text before anything else looks at it.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sinter/io/tokenizer/flat_map.h"
#include "sinter/io/tokenizer/model.h"
#include "sinter/io/tokenizer/normalizer.h"

namespace sinter::tokenizers {

struct AddedToken {
  std::string content;
  std::string written;  // how it looks in the text it is searched in, and when it is decoded
  Id id = 0;
  bool special = false, single_word = false, left_strip = false, right_strip = false, normalized = false;
};

class AddedTokens {
 public:
  // Tokens that the model knows keep the model's ids; others are numbered on from it, in the order of the file.
  AddedTokens(JsonRef list, const Model& model, const Normalizer* normalizer);

  // Cuts the text at the tokens of one kind and calls `body(token or null, part)`; empty parts are left out.
  using Body = std::function<void(const AddedToken*, std::string_view)>;
  void split(std::string_view text, bool normalized, const Body& body) const;

  const AddedToken* find(Id id) const;
  std::optional<Id> find(std::string_view content) const;
  bool is_special(const std::string& text) const { return special_.contains(text); }
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  // Finds the leftmost, and of these the longest.
  class Matcher {
   public:
    void add(std::string_view text, size_t token);
    // The token whose text begins at `at`, and its length; false when there is none.
    bool match(std::string_view text, size_t at, size_t& token, size_t& length) const;
    bool may_begin(char c) const { return begins_[uint8_t(c)]; }
    bool empty() const { return ends_.size() == 1; }

   private:
    bool begins_[256] = {};
    FlatMap<uint32_t> edges_;
    std::vector<size_t> ends_{0};  // of each node: the token that ends there, plus 1
  };

  std::vector<AddedToken> tokens_;
  std::unordered_map<Id, size_t> by_id_;
  std::unordered_map<std::string, Id> by_content_;
  std::unordered_set<std::string> special_;
  Matcher plain_, normalized_;
};

}  // namespace sinter::tokenizers
