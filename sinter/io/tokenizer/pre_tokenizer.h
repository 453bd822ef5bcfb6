#pragma once
// Pre-tokenizers: cut a text into the pieces that the model sees one by one.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/tokenizer/json_ref.h"

namespace sinter::tokenizers {

// A text and the pieces of it, in order. Splitting moves borders only; what changes the text writes it anew.
struct Pieces {
  struct Piece {
    size_t begin, end;
    bool first;  // opens the whole input
  };

  // One piece: all of it.
  void assign(std::string_view all, bool first) {
    text.assign(all);
    pieces.assign(1, {0, text.size(), first});
  }
  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }

  std::string text;
  std::vector<Piece> pieces;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Pieces& pieces) const = 0;
  // Whether the last thing it does is to write each byte as a printable character. After `leave_bytes` it does not, and
  // the model has to take the bytes as they are.
  virtual bool ends_in_bytes() const { return false; }
  virtual void leave_bytes() {}
};

// Null for null. Throws for a type that is not known.
std::unique_ptr<PreTokenizer> read_pre_tokenizer(JsonRef json);

}  // namespace sinter::tokenizers
