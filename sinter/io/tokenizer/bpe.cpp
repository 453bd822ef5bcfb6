// Byte pair encoding: the characters of a piece are merged pair by pair, the pair that was learnt first going first.
#include <algorithm>
#include <array>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/flat_map.h"
#include "sinter/io/tokenizer/model.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

struct Merge {
  uint32_t rank = 0;
  Id id = 0;
};

constexpr Id kNone = ~0u;  // no id

uint64_t pair_key(Id left, Id right) { return uint64_t(left) << 32 | right; }

// A symbol of a word under way; a merged one is unlinked from its neighbours.
struct Symbol {
  Id id;
  int previous, next;
  bool gone;
};

// A pair that may be merged: smallest rank first, then leftmost.
struct Candidate {
  uint32_t rank;
  int at;
  Id id;
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

class Bpe : public Model {
 public:
  explicit Bpe(JsonRef json)
      : prefix_(json["continuing_subword_prefix"].text_or("")),
        suffix_(json["end_of_word_suffix"].text_or("")),
        fuse_unknown_(json["fuse_unk"].boolean_or(false)),
        ignore_merges_(json["ignore_merges"].boolean_or(false)) {
    vocab_.read(json["vocab"]);
    if (!json["unk_token"].is_null()) unknown_ = json["unk_token"].text();
    if (json["byte_fallback"].boolean_or(false)) fallback_.emplace(vocab_);
    uint32_t rank = 0;
    json["merges"].each([&](JsonRef merge) { add_merge(merge, rank++); });
  }

  bool take_bytes() override {
    if (!prefix_.empty() || !suffix_.empty() || fallback_) return false;
    bytes_.emplace();
    for (int b = 0; b < 256; ++b) (*bytes_)[b] = vocab_.find(byte_to_text(uint8_t(b)));
    return true;
  }

  void tokenize(std::string_view piece, std::vector<Id>& out) const override {
    if (ignore_merges_) {
      if (auto whole = vocab_.find(bytes_ ? as_text(piece) : std::string(piece))) return out.push_back(*whole);
    }
    size_t begin = out.size();
    if (bytes_) {
      symbols_of_bytes(piece, out);
    } else {
      symbols_of_text(piece, out);
    }
    merge(out, begin);
  }

 private:
  void add_merge(JsonRef json, uint32_t rank) {
    std::string left, right;
    if (json.is_string()) {  // the older form, "a b"
      const std::string& text = json.text();
      size_t space = text.find(' ');
      if (space == text.npos || text.find(' ', space + 1) != text.npos)
        json.fail(format("has the merge '{}', not a pair", text));
      left = text.substr(0, space), right = text.substr(space + 1);
    } else {
      std::vector<std::string> pair;
      if (json.size() != 2) json.fail("has a merge that is not a pair");
      json.each([&](JsonRef each) { pair.push_back(each.text()); });
      left = pair[0], right = pair[1];
    }
    auto a = vocab_.find(left), b = vocab_.find(right);
    if (!a || !b) json.fail(format("merges '{}', which is not in the vocabulary", a ? right : left));
    if (right.size() < prefix_.size()) json.fail(format("merges '{}', which is shorter than the prefix", right));
    auto both = vocab_.find(left + right.substr(prefix_.size()));
    if (!both) json.fail(format("merges '{}' and '{}' into a token that is not in the vocabulary", left, right));
    merges_[pair_key(*a, *b)] = {rank, *both};
  }

  static std::string as_text(std::string_view bytes) {
    std::string text;
    for (char c : bytes) text += byte_to_text(uint8_t(c));
    return text;
  }

  Id unknown_id() const {
    auto id = vocab_.find(*unknown_);
    check(id.has_value(), "tokenizer: a character is unknown, and the vocabulary has no '{}' for it", *unknown_);
    return *id;
  }

  void symbols_of_bytes(std::string_view piece, std::vector<Id>& out) const {
    Id pending = kNone;
    for (char c : piece) add_symbol((*bytes_)[uint8_t(c)], {}, pending, out);
    if (pending != kNone) out.push_back(pending);
  }

  void symbols_of_text(std::string_view piece, std::vector<Id>& out) const {
    Id pending = kNone;
    std::string decorated;
    bool plain = prefix_.empty() && suffix_.empty();
    size_t at = 0;
    each_character(piece, [&](char32_t, std::string_view character) {
      std::string_view symbol = character;
      if (!plain) {
        decorated = at == 0 ? "" : prefix_;
        decorated += character;
        if (at + character.size() == piece.size()) decorated += suffix_;
        symbol = decorated;
      }
      add_symbol(vocab_.find(symbol), symbol, pending, out);
      at += character.size();
    });
    if (pending != kNone) out.push_back(pending);
  }

  // An unknown symbol waits for the next known one, so that a row of them can be one; bytes overtake it.
  void add_symbol(std::optional<Id> id, std::string_view symbol, Id& pending, std::vector<Id>& out) const {
    if (id) {
      if (pending != kNone) out.push_back(pending);
      pending = kNone;
      out.push_back(*id);
    } else if (fallback_ && fallback_->append(symbol, out)) {
      return;
    } else if (unknown_) {
      if (pending != kNone && !fuse_unknown_) out.push_back(pending);
      pending = unknown_id();
    }
  }

  // Merges what lies behind `begin`.
  void merge(std::vector<Id>& ids, size_t begin) const {
    int count = int(ids.size() - begin);
    if (count < 2) return;
    if (count <= kShort) return merge_short(ids, begin);
    std::vector<Symbol> symbols(static_cast<size_t>(count));
    std::vector<Candidate> queue;
    auto offer = [&](int left, int right) {
      if (auto* found = merges_.find(pair_key(symbols[left].id, symbols[right].id)))
        queue.push_back({found->rank, left, found->id});
    };
    for (int i = 0; i < count; ++i) symbols[i] = {ids[begin + i], i - 1, i + 1 < count ? i + 1 : -1, false};
    for (int i = 0; i + 1 < count; ++i) offer(i, i + 1);
    std::make_heap(queue.begin(), queue.end());
    while (!queue.empty()) {
      std::pop_heap(queue.begin(), queue.end());
      Candidate top = queue.back();
      queue.pop_back();
      Symbol& left = symbols[top.at];
      if (left.gone || left.next < 0) continue;
      Symbol& right = symbols[left.next];
      auto* found = merges_.find(pair_key(left.id, right.id));
      if (!found || found->id != top.id) continue;  // one of the two has changed since
      left.id = top.id;
      left.next = right.next;
      right.gone = true;
      if (left.next >= 0) symbols[left.next].previous = top.at;
      size_t before = queue.size();
      if (left.previous >= 0) offer(left.previous, top.at);
      if (left.next >= 0) offer(top.at, left.next);
      for (size_t i = before + 1; i <= queue.size(); ++i) std::push_heap(queue.begin(), queue.begin() + ptrdiff_t(i));
    }
    size_t kept = begin;
    for (int i = 0; i >= 0; i = symbols[i].next) ids[kept++] = symbols[i].id;
    ids.resize(kept);
  }

  // The same for few symbols: look for the best pair each time, with no queue to keep.
  void merge_short(std::vector<Id>& ids, size_t begin) const {
    std::array<Merge, kShort> best;
    Id* symbols = ids.data() + begin;
    int count = int(ids.size() - begin);
    auto look_up = [&](int i) {
      auto* found = i + 1 < count ? merges_.find(pair_key(symbols[i], symbols[i + 1])) : nullptr;
      best[i] = found ? *found : Merge{kNone, 0};
    };
    for (int i = 0; i < count; ++i) look_up(i);
    for (;;) {
      int at = 0;
      for (int i = 1; i + 1 < count; ++i)
        if (best[i].rank < best[at].rank) at = i;
      if (best[at].rank == kNone) break;
      symbols[at] = best[at].id;
      --count;
      for (int i = at + 1; i < count; ++i) symbols[i] = symbols[i + 1], best[i] = best[i + 1];
      look_up(at);
      if (at > 0) look_up(at - 1);
    }
    ids.resize(begin + size_t(count));
  }

  static constexpr int kShort = 24;

  std::string prefix_, suffix_;
  bool fuse_unknown_, ignore_merges_;
  std::optional<std::string> unknown_;
  std::optional<ByteTokens> fallback_;
  std::optional<std::array<std::optional<Id>, 256>> bytes_;  // set when pieces come as bytes
  FlatMap<Merge> merges_;
};

}  // namespace

std::unique_ptr<Model> read_bpe(JsonRef json) { return std::make_unique<Bpe>(json); }

}  // namespace sinter::tokenizers
