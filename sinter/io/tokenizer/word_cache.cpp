#include "sinter/io/tokenizer/word_cache.h"

#include <cstring>

#include "sinter/base/hash.h"

namespace sinter::tokenizers {

namespace {

// Pieces are short: eight bytes at a time, the last ones as a word of their own.
uint64_t hash_piece(std::string_view piece) {
  uint64_t hash = piece.size(), word = 0;
  const char* p = piece.data();
  size_t left = piece.size();
  for (; left >= 8; left -= 8, p += 8) {
    std::memcpy(&word, p, 8);
    hash = hash_mix(hash, word);
  }
  word = 0;
  std::memcpy(&word, p, left);
  return hash_mix(hash, word);
}

}  // namespace

void WordCache::clear() {
  slots_.assign(kSlots, {});
  used_ = 0;
  keys_.clear();
  ids_.clear();
}

void WordCache::tokenize(std::string_view piece, const Model& model, std::vector<Id>& out) {
  if (piece.size() > kMaxPiece) return model.tokenize(piece, out);
  if (slots_.empty() || 2 * used_ > kSlots) clear();
  uint64_t hash = hash_piece(piece);
  size_t at = hash & (kSlots - 1);
  for (; slots_[at].key_size != 0; at = (at + 1) & (kSlots - 1)) {
    const Entry& entry = slots_[at];
    if (entry.hash == hash && std::string_view(keys_.data() + entry.key, entry.key_size) == piece) {
      out.insert(out.end(), ids_.begin() + entry.ids, ids_.begin() + entry.ids + entry.count);
      return;
    }
  }
  size_t begin = out.size();
  model.tokenize(piece, out);
  slots_[at] = {hash, uint32_t(keys_.size()), uint32_t(piece.size()), uint32_t(ids_.size()),
                uint32_t(out.size() - begin)};
  keys_ += piece;
  ids_.insert(ids_.end(), out.begin() + ptrdiff_t(begin), out.end());
  ++used_;
}

}  // namespace sinter::tokenizers
