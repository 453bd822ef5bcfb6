#pragma once
// Normalizers: text to text, before it is split.
#include <memory>
#include <string>

#include "sinter/io/tokenizer/json_ref.h"

namespace sinter::tokenizers {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // The text is valid UTF-8 and stays so.
  virtual void apply(std::string& text) const = 0;
};

// Null for null. Throws for a type that is not known.
std::unique_ptr<Normalizer> read_normalizer(JsonRef json);

// A SentencePiece character map (base64 of a double-array trie and its replacements).
std::unique_ptr<Normalizer> read_precompiled(JsonRef json);

}  // namespace sinter::tokenizers
