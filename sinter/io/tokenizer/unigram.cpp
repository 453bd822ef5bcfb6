// The Unigram model: of all ways to cut a piece into tokens, the one with the highest sum of scores.
#include <algorithm>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/flat_map.h"
#include "sinter/io/tokenizer/model.h"
#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

constexpr double kUnknownPenalty = 10.0;

class Unigram : public Model {
 public:
  explicit Unigram(JsonRef json) {
    json["vocab"].each([&](JsonRef entry) {
      if (!entry.is_array() || entry.size() != 2) entry.fail("must be a list of pairs of a token and a score");
      std::string token;
      int field = 0;
      entry.each([&](JsonRef value) {
        if (field++ == 0) {
          token = value.text();
        } else {
          scores_.push_back(value.number());
        }
      });
      Id id = Id(scores_.size() - 1);
      vocab_.add(token, id, entry);
      add_to_trie(token, id);
    });
    if (!json["unk_id"].is_null()) {
      unknown_ = json["unk_id"].id();
      if (*unknown_ >= scores_.size()) json.fail("has an unk_id that is not in the vocabulary");
    }
    for (double score : scores_) lowest_ = std::min(lowest_, score);
    if (json["byte_fallback"].boolean_or(false)) fallback_.emplace(vocab_);
  }

  void tokenize(std::string_view piece, std::vector<Id>& out) const override {
    std::vector<Node> best = best_path(piece);
    std::vector<size_t> cuts;  // ends of tokens, last first
    for (size_t end = piece.size(); end > 0; end = best[end].begin) cuts.push_back(end);
    size_t begin = 0, unknown_from = 0;
    bool in_unknown = false;
    auto flush = [&](size_t end) {
      if (in_unknown) emit(piece.substr(unknown_from, end - unknown_from), out);
      in_unknown = false;
    };
    for (auto cut = cuts.rbegin(); cut != cuts.rend(); begin = *cut++) {
      if (unknown_ == best[*cut].id) {  // neighbours become one
        if (!in_unknown) unknown_from = begin;
        in_unknown = true;
      } else {
        flush(begin);
        emit(piece.substr(begin, *cut - begin), out);
      }
    }
    flush(begin);
  }

 private:
  // The best way to reach a place: its score, where the last token begins, and which it is.
  struct Node {
    double score = 0;
    size_t begin = std::numeric_limits<size_t>::max();
    Id id = 0;
    bool reached() const { return begin != std::numeric_limits<size_t>::max(); }
  };
  struct TrieNode {
    static constexpr Id kNone = ~0u;
    Id token = kNone;
  };

  static uint64_t edge(uint32_t node, char byte) { return uint64_t(node) << 8 | uint8_t(byte); }

  void add_to_trie(const std::string& token, Id id) {
    uint32_t node = 0;
    if (token.empty()) return;
    for (char c : token) {
      uint32_t& child = edges_[edge(node, c)];
      if (child == 0) {
        child = uint32_t(nodes_.size());
        nodes_.emplace_back();
      }
      node = child;
    }
    nodes_[node].token = id;
  }

  std::vector<Node> best_path(std::string_view piece) const {
    std::vector<Node> best(piece.size() + 1);
    auto offer = [&](size_t begin, size_t end, double score, Id id) {
      Node& node = best[end];
      if (!node.reached() || score > node.score) node = {score, begin, id};
    };
    size_t length = 0;
    for (size_t begin = 0; begin < piece.size(); begin += length) {
      length = first_character(piece.substr(begin)).size;
      double so_far = best[begin].score;
      bool has_single = false;
      uint32_t node = 0;
      for (size_t end = begin; end < piece.size();) {
        const uint32_t* child = edges_.find(edge(node, piece[end]));
        if (!child) break;
        node = *child;
        ++end;
        Id id = nodes_[node].token;
        if (id == TrieNode::kNone) continue;
        offer(begin, end, so_far + scores_[id], id);
        has_single |= end - begin == length;
      }
      if (has_single) continue;
      check(unknown_.has_value(), "tokenizer: a character is unknown, and the model has no unk_id for it");
      offer(begin, begin + length, so_far + (lowest_ - kUnknownPenalty), *unknown_);
    }
    return best;
  }

  void emit(std::string_view text, std::vector<Id>& out) const {
    if (auto id = vocab_.find(text)) return out.push_back(*id);
    if (fallback_ && fallback_->append(text, out)) return;
    check(unknown_.has_value(), "tokenizer: '{}' is unknown, and the model has no unk_id for it", text);
    out.push_back(*unknown_);
  }

  std::vector<double> scores_;
  double lowest_ = std::numeric_limits<double>::infinity();
  std::optional<Id> unknown_;
  std::optional<ByteTokens> fallback_;
  FlatMap<uint32_t> edges_;
  std::vector<TrieNode> nodes_{1};
};

}  // namespace

std::unique_ptr<Model> read_unigram(JsonRef json) { return std::make_unique<Unigram>(json); }

}  // namespace sinter::tokenizers
