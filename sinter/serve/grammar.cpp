#include "sinter/serve/grammar.h"

#include <algorithm>
#include <cmath>

#include "sinter/base/error.h"

namespace sinter::serve {

namespace {

constexpr size_t kMostOpen = 64;  // brackets
constexpr int kMostChoices = 32;  // of choices in choices, before a character is read
constexpr int64_t kMostDigits = 15;
constexpr size_t kMostMasks = 4096;

using Stack = std::vector<Grammar::Frame>;

void add(Grammar::Places& out, Stack stack) {
  if (std::find(out.begin(), out.end(), stack) == out.end()) out.push_back(std::move(stack));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// The value closed by the last character.
Stack closed(Stack stack) {
  stack.pop_back();
  return stack;
}

enum StringPhase { kOpening, kInside, kEscaped, kHex, kLowHex };
enum NumberPhase { kStart, kMinus, kZero, kDigits, kPoint, kFraction, kExponent, kSign, kPower };
enum ObjectPhase { kBrace, kFirstKey, kColon, kValue, kBehindValue, kNextKey };
enum ArrayPhase { kBracket, kFirstElement, kBehindElement, kNextElement };

}  // namespace

// --- the vocabulary

TokenTexts::TokenTexts(const Tokenizer& tokenizer, int64_t vocab) : texts_(size_t(vocab)) {
  // In the middle of a text: at its beginning some tokenizers drop a space.
  std::vector<int64_t> pair = tokenizer.encode("a", false);
  const std::string front = tokenizer.decode(pair, false);
  pair.push_back(0);
  for (int64_t id = 0; id < std::min(vocab, tokenizer.vocab_size()); ++id) {
    if (tokenizer.is_special(id)) continue;
    pair.back() = id;
    const std::string both = tokenizer.decode(pair, false);
    if (both.size() <= front.size() || !both.starts_with(front)) continue;
    std::string own = both.substr(front.size());
    if (own.find("\xef\xbf\xbd") != std::string::npos) continue;
    texts_[size_t(id)] = own;
    sorted_.push_back({std::move(own), id});
  }
  std::ranges::sort(sorted_, {}, &Entry::text);
}

std::shared_ptr<const Grammar> Grammar::of_texts(const std::vector<std::string>& texts) {
  check(!texts.empty(), "there is no text to choose");
  for (auto& text : texts) check(!text.empty(), "a text to choose is empty");
  std::shared_ptr<Grammar> out(new Grammar);
  out->nodes_.push_back({.kind = JsonKind::kLiteral, .literals = texts});
  return out;
}

// --- reading

Grammar::Places Grammar::begin() const {
  // The frame of nothing read yet: a choice of the root alone.
  return {{Frame{int32_t(root_), -1, 0, 0}}};
}

void Grammar::enter(const Stack& stack, int64_t node, char c, Places& out, int depth) const {
  const JsonNode& n = nodes_[size_t(node)];
  if (depth > kMostChoices) return;
  if (n.kind == JsonKind::kChoice) {
    for (int64_t each : n.first) enter(stack, each, c, out, depth + 1);
    return;
  }
  if (stack.size() >= kMostOpen) return;
  Stack inner = stack;
  for (size_t i = 0; i < (n.kind == JsonKind::kLiteral ? n.literals.size() : 1); ++i) {
    inner.resize(stack.size());
    inner.push_back({int32_t(node), 0, 0, n.kind == JsonKind::kLiteral ? int64_t(i) : 0});
    feed(inner, c, out, depth);
  }
}

void Grammar::feed(const Stack& stack, char c, Places& out, int depth) const {
  if (stack.empty()) return;
  const Frame& top = stack.back();
  if (top.phase < 0) return enter({}, top.node, c, out, depth);
  const JsonNode& n = nodes_[size_t(top.node)];
  switch (n.kind) {
    case JsonKind::kLiteral: {
      const std::string& text = n.literals[size_t(top.b)];
      if (text[size_t(top.a)] != c) return;
      Stack next = stack;
      if (size_t(++next.back().a) == text.size()) next.pop_back();
      return add(out, std::move(next));
    }
    case JsonKind::kString:
      return feed_string(stack, c, out);
    case JsonKind::kNumber:
      return feed_number(stack, c, out, depth);
    case JsonKind::kObject:
      return feed_object(stack, c, out, depth);
    case JsonKind::kArray:
      return feed_array(stack, c, out, depth);
    case JsonKind::kChoice:
      return;
  }
}

// a: characters so far, where they are counted. b: hex digits of an escape.
void Grammar::feed_string(Stack stack, char c, Places& out) const {
  Frame& f = stack.back();
  const JsonNode& n = nodes_[size_t(f.node)];
  const bool counts = n.least > 0 || n.most < INT64_MAX;
  const bool continues = (c & 0xc0) == 0x80;
  auto character = [&] {
    if (!counts) return true;
    return ++f.a <= n.most;
  };
  switch (f.phase) {
    case kOpening:
      if (c != '"') return;
      f.phase = kInside;
      return add(out, std::move(stack));
    case kInside:
      if (c == '"') {
        if (f.a >= n.least) add(out, closed(std::move(stack)));
        return;
      }
      if (static_cast<unsigned char>(c) < 0x20) return;
      if (!continues && !character()) return;
      if (c == '\\') f.phase = kEscaped;
      return add(out, std::move(stack));
    case kEscaped:
      if (c == 'u') {
        f.phase = kHex;
        f.b = 0;
        return add(out, std::move(stack));
      }
      if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return;
      f.phase = kInside;
      return add(out, std::move(stack));
    case kLowHex:
      // Behind \ud: no half of a pair.
      if (c > '7') return;
      [[fallthrough]];
    case kHex:
      if (!is_hex(c)) return;
      f.phase = f.b == 0 && (c == 'd' || c == 'D') ? kLowHex : kHex;
      if (++f.b == 4) f.phase = kInside, f.b = 0;
      return add(out, std::move(stack));
  }
}

namespace {

// Numbers keep their digits without the point in `a` and, in `b`, how many there are behind the point, and 1024 where
// they are negative, and 2048 for each digit.
constexpr int64_t kNegative = 1024, kOneDigit = 2048;

int64_t decimals_of(int64_t b) { return b % kNegative; }
bool is_negative(int64_t b) { return b & kNegative; }
int64_t digits_of(int64_t b) { return b / kOneDigit; }

double value_of(int64_t digits, int64_t b) {
  const double size = double(digits) / std::pow(10.0, double(decimals_of(b)));
  return is_negative(b) ? -size : size;
}

bool is_in(const JsonNode& n, double value) {
  return (n.low_open ? value > n.low : value >= n.low) && (n.high_open ? value < n.high : value <= n.high);
}

// Whether some number that begins like this is within the bounds.
bool can_be_in(const JsonNode& n, int64_t digits, int64_t b, bool is_fraction) {
  const double step = std::pow(10.0, -double(decimals_of(b)));
  double near = double(digits) * step, far = is_fraction || n.integer ? near + (n.integer ? 0 : step) : near + 1;
  const double sign = is_negative(b) ? -1 : 1;
  // More digits in front of the point only where there may be; a leading zero ends them.
  const int64_t more = is_fraction || digits == 0 ? 0 : kMostDigits - digits_of(b);
  for (int64_t k = 0; k <= more; ++k) {
    const double low = std::min(sign * near, sign * far), high = std::max(sign * near, sign * far);
    if (high >= n.low && low <= n.high) return true;
    near *= 10;
    far = n.integer ? near + std::pow(10.0, double(k + 1)) - 1 : far * 10;
  }
  return false;
}

}  // namespace

bool Grammar::is_whole_number(const Frame& f) const {
  const JsonNode& n = nodes_[size_t(f.node)];
  if (n.kind != JsonKind::kNumber || f.phase < 0) return false;
  if (f.phase != kZero && f.phase != kDigits && f.phase != kFraction && f.phase != kPower) return false;
  return !n.bounded || is_in(n, value_of(f.a, f.b));
}

void Grammar::feed_number(Stack stack, char c, Places& out, int depth) const {
  // What ends a number belongs to what it stands in.
  if (!is_digit(c) && is_whole_number(stack.back())) {
    Stack outer = closed(stack);
    feed(outer, c, out, depth);
  }
  Frame& f = stack.back();
  const JsonNode& n = nodes_[size_t(f.node)];
  auto digit = [&](NumberPhase phase) {
    f.phase = phase;
    f.a = f.a * 10 + (c - '0');
    f.b += kOneDigit + (phase == kFraction);
    if (digits_of(f.b) > kMostDigits) return;
    if (n.bounded && !can_be_in(n, f.a, f.b, phase == kFraction)) return;
    add(out, stack);
  };
  auto go = [&](NumberPhase phase) {
    f.phase = phase;
    add(out, stack);
  };
  switch (f.phase) {
    case kStart:
      if (c == '-') {
        f.b |= kNegative;
        if (!n.bounded || n.low < 0) go(kMinus);
      } else if (is_digit(c)) {
        digit(c == '0' ? kZero : kDigits);
      }
      return;
    case kMinus:
      if (is_digit(c)) digit(c == '0' ? kZero : kDigits);
      return;
    case kDigits:
      if (is_digit(c)) return digit(kDigits);
      [[fallthrough]];
    case kZero:
      if (n.integer) return;
      if (c == '.') return go(kPoint);
      if ((c == 'e' || c == 'E') && !n.bounded) return go(kExponent);
      return;
    case kPoint:
      if (is_digit(c)) digit(kFraction);
      return;
    case kFraction:
      if (is_digit(c)) return digit(kFraction);
      if ((c == 'e' || c == 'E') && !n.bounded) return go(kExponent);
      return;
    case kExponent:
      if (c == '+' || c == '-') return go(kSign);
      [[fallthrough]];
    case kSign:
      f.a = 0;
      if (is_digit(c)) return go(kPower);
      return;
    case kPower:
      // Two digits: more are beyond what a double has.
      if (is_digit(c) && ++f.a < 2) go(kPower);
      return;
  }
}

// a: the next property that may come. b: of the pair under way, its value's node; or whether a space was read.
void Grammar::feed_object(Stack stack, char c, Places& out, int depth) const {
  Frame& f = stack.back();
  const JsonNode& n = nodes_[size_t(f.node)];
  auto may_close = [&] {
    return std::none_of(n.properties.begin() + std::min<int64_t>(f.a, int64_t(n.properties.size())), n.properties.end(),
                        [](auto& p) { return p.required; });
  };
  auto key = [&] {
    const int64_t from = f.a;
    if (n.properties.empty() && n.others >= 0) {
      Stack inner = stack;
      inner.back().phase = kColon;
      inner.back().b = n.others;
      enter(inner, n.first[0], c, out, depth);
    }
    for (size_t i = size_t(from); i < n.properties.size(); ++i) {
      Stack inner = stack;
      inner.back() = {f.node, kColon, int64_t(i) + 1, n.properties[i].value};
      enter(inner, n.properties[i].key, c, out, depth);
      if (n.properties[i].required) break;
    }
  };
  switch (f.phase) {
    case kBrace:
      if (c != '{') return;
      f.phase = kFirstKey;
      return add(out, std::move(stack));
    case kFirstKey:
      if (c == '}' && may_close()) return add(out, closed(std::move(stack)));
      if (c == '"') key();
      return;
    case kColon:
      if (c != ':') return;
      f.phase = kValue;
      return add(out, std::move(stack));
    case kValue: {
      // The node of the value is known by its number; a space makes it negative.
      if (c == ' ' && f.b >= 0) {
        f.b = -1 - f.b;
        return add(out, std::move(stack));
      }
      const int64_t value = f.b >= 0 ? f.b : -1 - f.b;
      f.phase = kBehindValue;
      f.b = 0;
      return enter(stack, value, c, out, depth);
    }
    case kBehindValue: {
      if (c == '}' && may_close()) return add(out, closed(std::move(stack)));
      const bool more = n.others >= 0 ? n.properties.empty() : f.a < int64_t(n.properties.size());
      if (c != ',' || !more) return;
      f.phase = kNextKey;
      f.b = 0;
      return add(out, std::move(stack));
    }
    case kNextKey:
      if (c == ' ' && f.b == 0) {
        f.b = 1;
        return add(out, std::move(stack));
      }
      if (c == '"') key();
      return;
  }
}

// a: elements begun. b: whether a space was read.
void Grammar::feed_array(Stack stack, char c, Places& out, int depth) const {
  Frame& f = stack.back();
  const JsonNode& n = nodes_[size_t(f.node)];
  auto next = [&] { return f.a < int64_t(n.first.size()) ? n.first[size_t(f.a)] : n.others; };
  auto element = [&] {
    const int64_t node = next();
    if (f.a >= n.most || node < 0) return;
    f.phase = kBehindElement;
    f.b = 0;
    // Elements that nobody counts are one place.
    if (n.least > 0 || n.most < INT64_MAX || f.a < int64_t(n.first.size())) ++f.a;
    enter(stack, node, c, out, depth);
  };
  switch (f.phase) {
    case kBracket:
      if (c != '[') return;
      f.phase = kFirstElement;
      return add(out, std::move(stack));
    case kFirstElement:
      if (c == ']') {
        if (n.least == 0) add(out, closed(std::move(stack)));
        return;
      }
      return element();
    case kBehindElement:
      if (c == ']' && f.a >= n.least) return add(out, closed(std::move(stack)));
      if (c != ',' || f.a >= n.most || next() < 0) return;
      f.phase = kNextElement;
      return add(out, std::move(stack));
    case kNextElement:
      if (c == ' ' && f.b == 0) {
        f.b = 1;
        return add(out, std::move(stack));
      }
      return element();
  }
}

Grammar::Places Grammar::step(const Places& places, char c) const {
  Places out;
  for (auto& stack : places) feed(stack, c, out, 0);
  return out;
}

Grammar::Places Grammar::after(const Places& places, std::string_view text) const {
  Places now = places;
  for (char c : text) {
    if (now.empty()) break;
    now = step(now, c);
  }
  return now;
}

bool Grammar::may_end(const Places& places) const {
  return std::ranges::any_of(
      places, [&](auto& stack) { return stack.empty() || (stack.size() == 1 && is_whole_number(stack[0])); });
}

bool Grammar::must_end(const Places& places) const {
  return !places.empty() && std::ranges::all_of(places, [](auto& stack) { return stack.empty(); });
}

std::shared_ptr<const std::vector<bool>> Grammar::allowed(const Places& places, const TokenTexts& tokens) const {
  std::string key;
  for (auto& stack : places) {
    key.append(reinterpret_cast<const char*>(stack.data()), stack.size() * sizeof(Frame));
    key += '|';
  }
  {
    std::lock_guard lock(mutex_);
    if (auto known = masks_.find(key); known != masks_.end()) return known->second;
  }
  auto mask = std::make_shared<std::vector<bool>>(size_t(tokens.vocab()), false);
  // By depth, what is possible behind so many characters of the token before; tokens share beginnings.
  std::vector<Places> behind{places};
  std::string_view before;
  for (auto& entry : tokens.sorted()) {
    const std::string_view text = entry.text;
    size_t common =
        size_t(std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first - before.begin());
    behind.resize(std::min(behind.size(), common + 1));
    while (behind.size() <= text.size() && !behind.back().empty())
      behind.push_back(step(behind.back(), text[behind.size() - 1]));
    before = text;
    if (behind.size() == text.size() + 1 && !behind.back().empty()) (*mask)[size_t(entry.id)] = true;
  }
  std::lock_guard lock(mutex_);
  if (masks_.size() >= kMostMasks) masks_.clear();
  return masks_[key] = mask;
}

}  // namespace sinter::serve
