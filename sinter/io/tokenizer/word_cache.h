#pragma once
// Remembers the ids of pieces seen before. Not for use by two threads at once.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/io/tokenizer/model.h"

namespace sinter::tokenizers {

class WordCache {
 public:
  static constexpr size_t kMaxPiece = 128;  // longer ones do not come twice

  // Appends the ids of the piece, from memory or from the model.
  void tokenize(std::string_view piece, const Model& model, std::vector<Id>& out);

 private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t key = 0, key_size = 0;  // in keys_; an entry without a key is free
    uint32_t ids = 0, count = 0;     // in ids_
  };
  static constexpr size_t kSlots = size_t(1) << 16;

  void clear();

  std::vector<Entry> slots_;
  size_t used_ = 0;
  std::string keys_;
  std::vector<Id> ids_;
};

}  // namespace sinter::tokenizers
