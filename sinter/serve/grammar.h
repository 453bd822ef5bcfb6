#pragma once
// JSON as a model may write it, token by token: a schema becomes what reads an answer character by character and knows
// at every place which tokens may come next. Every answer that ends is valid by the schema; not every valid answer can
// be written: properties come in the schema's order, properties that it does not name do not come beside those it
// names, and there is one space at most behind a comma or a colon.
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter::serve {

// What every token of a vocabulary adds to a text. Tokens that are a part of a character add nothing that could be
// judged, and are left out, as special ones are.
class TokenTexts {
 public:
  TokenTexts(const Tokenizer& tokenizer, int64_t vocab);

  struct Entry {
    std::string text;
    int64_t id;
  };
  // By text, so that those with a common beginning are neighbours.
  std::span<const Entry> sorted() const { return sorted_; }
  // Empty where there is none.
  const std::string& text(int64_t id) const { return texts_[size_t(id)]; }
  int64_t vocab() const { return int64_t(texts_.size()); }

 private:
  std::vector<Entry> sorted_;
  std::vector<std::string> texts_;
};

enum class JsonKind : uint8_t { kLiteral, kString, kNumber, kObject, kArray, kChoice };

// One schema inside another; schemas name each other by number.
struct JsonNode {
  JsonKind kind = JsonKind::kChoice;
  std::vector<std::string> literals = {};  // kLiteral: as they are written
  int64_t least = 0, most = INT64_MAX;     // kString: characters; kArray: elements
  bool integer = false, bounded = false;   // kNumber; with bounds, these:
  double low = 0, high = 0;
  bool low_open = false, high_open = false;  // the bound itself is not allowed
  struct Property {
    int64_t key, value;  // the key as a literal with its quotes
    bool required;
  };
  std::vector<Property> properties = {};  // kObject
  int64_t others = -1;              // kObject without properties: of every value; kArray: of elements behind `first`
  std::vector<int64_t> first = {};  // kArray; kChoice: the alternatives
};

class Grammar {
 public:
  // An Error says what of the schema is not understood: nothing that restricts answers is passed over.
  static std::shared_ptr<const Grammar> of_schema(const std::string& schema);
  // One of these texts, as they are.
  static std::shared_ptr<const Grammar> of_texts(const std::vector<std::string>& texts);

  // What is open at some place of an answer, innermost last.
  struct Frame {
    int32_t node, phase;
    int64_t a, b;
    bool operator==(const Frame&) const = default;
  };
  // All ways to have read the text so far.
  using Places = std::vector<std::vector<Frame>>;
  Places begin() const;
  // Empty: the text cannot go on like this.
  Places after(const Places& places, std::string_view text) const;
  // Whether the text may end here, and whether it must.
  bool may_end(const Places& places) const;
  bool must_end(const Places& places) const;
  // By token, whether it may come next.
  std::shared_ptr<const std::vector<bool>> allowed(const Places& places, const TokenTexts& tokens) const;

 private:
  friend class SchemaReader;
  Grammar() = default;
  void enter(const std::vector<Frame>& stack, int64_t node, char c, Places& out, int depth) const;
  void feed(const std::vector<Frame>& stack, char c, Places& out, int depth) const;
  void feed_string(std::vector<Frame> stack, char c, Places& out) const;
  void feed_number(std::vector<Frame> stack, char c, Places& out, int depth) const;
  void feed_object(std::vector<Frame> stack, char c, Places& out, int depth) const;
  void feed_array(std::vector<Frame> stack, char c, Places& out, int depth) const;
  Places step(const Places& places, char c) const;
  bool is_whole_number(const Frame& frame) const;

  std::vector<JsonNode> nodes_;
  int64_t root_ = 0;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::string, std::shared_ptr<const std::vector<bool>>> masks_;
};

}  // namespace sinter::serve
