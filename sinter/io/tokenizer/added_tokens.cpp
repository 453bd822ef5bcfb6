#include "sinter/io/tokenizer/added_tokens.h"

#include <algorithm>

#include "sinter/io/tokenizer/unicode.h"

namespace sinter::tokenizers {

namespace {

// The last character of a text that is not empty.
char32_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80) --at;
  return first_character(text.substr(at)).code;
}

size_t leading_spaces(std::string_view text) {
  size_t count = 0;
  while (count < text.size()) {
    Character c = first_character(text.substr(count));
    if (!is_whitespace(c.code)) break;
    count += c.size;
  }
  return count;
}

size_t without_trailing_spaces(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && is_whitespace(last_character(text.substr(0, end)))) {
    do --end;
    while ((uint8_t(text[end]) & 0xC0) == 0x80);
  }
  return end;
}

}  // namespace

void AddedTokens::Matcher::add(std::string_view text, size_t token) {
  if (text.empty()) return;
  begins_[uint8_t(text[0])] = true;
  uint32_t node = 0;
  for (char c : text) {
    uint32_t& child = edges_[uint64_t(node) << 8 | uint8_t(c)];
    if (child == 0) {
      child = uint32_t(ends_.size());
      ends_.push_back(0);
    }
    node = child;
  }
  ends_[node] = token + 1;
}

bool AddedTokens::Matcher::match(std::string_view text, size_t at, size_t& token, size_t& length) const {
  bool found = false;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const uint32_t* child = edges_.find(uint64_t(node) << 8 | uint8_t(text[i]));
    if (!child) break;
    node = *child;
    if (ends_[node] == 0) continue;
    found = true;
    token = ends_[node] - 1;
    length = i + 1 - at;
  }
  return found;
}

AddedTokens::AddedTokens(JsonRef list, const Model& model, const Normalizer* normalizer) {
  if (list.is_null()) return;
  Id next = Id(model.vocab().size());
  list.each([&](JsonRef json) {
    AddedToken token;
    token.content = token.written = json["content"].text();
    json["id"].id();
    token.special = json["special"].boolean_or(false);
    token.single_word = json["single_word"].boolean_or(false);
    token.left_strip = json["lstrip"].boolean_or(false);
    token.right_strip = json["rstrip"].boolean_or(false);
    token.normalized = json["normalized"].boolean_or(!token.special);
    if (token.content.empty()) return;
    auto known = find(token.content);
    if (!known) known = model.vocab().find(token.content);
    token.id = known ? *known : next++;
    if (token.normalized && normalizer) normalizer->apply(token.written);
    by_content_[token.content] = token.id;
    if (token.special) special_.insert(token.content);
    if (auto there = by_id_.find(token.id); there != by_id_.end()) {
      tokens_[there->second] = std::move(token);
    } else {
      by_id_[token.id] = tokens_.size();
      tokens_.push_back(std::move(token));
    }
  });
  for (size_t i = 0; i < tokens_.size(); ++i) (tokens_[i].normalized ? normalized_ : plain_).add(tokens_[i].written, i);
}

const AddedToken* AddedTokens::find(Id id) const {
  auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

std::optional<Id> AddedTokens::find(std::string_view content) const {
  auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? std::nullopt : std::optional<Id>(found->second);
}

void AddedTokens::split(std::string_view text, bool normalized, const Body& body) const {
  const Matcher& matcher = normalized ? normalized_ : plain_;
  size_t covered = 0, at = 0, which = 0, length = 0;
  auto rest = [&](size_t end) {
    if (covered < end) body(nullptr, text.substr(covered, end - covered));
  };
  while (!matcher.empty() && at < text.size()) {
    if (!matcher.may_begin(text[at]) || !matcher.match(text, at, which, length)) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[which];
    size_t begin = at, end = at + length;
    at = end;
    if (token.single_word) {
      bool alone = (begin == 0 || !is_word(last_character(text.substr(0, begin)))) &&
                   (end == text.size() || !is_word(first_character(text.substr(end)).code));
      if (!alone) continue;
    }
    if (token.left_strip) begin = std::max(without_trailing_spaces(text.substr(0, begin)), covered);
    if (token.right_strip) end += leading_spaces(text.substr(end));
    rest(begin);
    body(&token, text.substr(begin, end - begin));
    covered = end;
  }
  rest(text.size());
}

}  // namespace sinter::tokenizers
