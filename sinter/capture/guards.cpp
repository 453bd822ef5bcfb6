#include <algorithm>

#include "sinter/autograd/history.h"
#include "sinter/base/hash.h"
#include "sinter/capture/entry.h"

namespace sinter::capture {

namespace {

// Whether two tensors lie in the same memory; `same`: at the same places.
bool shares(const TensorImpl& a, const TensorImpl& b, bool same) {
  return a.buffer == b.buffer && (!same || (a.offset == b.offset && a.sizes == b.sizes && a.strides == b.strides));
}

std::string tensor_text(DType dtype, Device device, const IntList& sizes, const IntList& strides, bool requires_grad) {
  return format("{}{} on {}, strides {}{}", dtype, sizes, device, strides, requires_grad ? ", requires grad" : "");
}

bool same_leaf(const CellSource& a, const CellSource& b) {
  return a.kind == b.kind && a.index == b.index && a.tensor.is_same(b.tensor);
}

}  // namespace

Guards::Guards(const Signature& signature, std::vector<Word> words, const SizeTable& sizes)
    : signature_(signature), words_(std::move(words)), place_(words_.size(), -1), free_(words_.size(), false) {
  SINTER_INTERNAL_ASSERT(words_.size() == signature_.size(), "{} names for {} words", words_.size(), signature_.size());
  for (size_t i = 0; i < words_.size(); ++i) free_[i] = words_[i].kind == Word::Kind::kNumber;
  complete(sizes);
}

void Guards::complete(const SizeTable& sizes) {
  symbols_ = sizes.symbols();
  for (size_t place = 0; place < symbols_.size(); ++place)
    if (symbols_[place].word >= 0) {
      place_[size_t(symbols_[place].word)] = int(place);
      for (int word : symbols_[place].same) place_[size_t(word)] = int(place);
    }
  facts_.clear();
  auto place_of = [&](const std::string& name) { return sizes.place_of(name); };
  for (auto& fact : sizes.facts()) facts_.push_back({fact, DimProgram(fact.a, place_of), DimProgram(fact.b, place_of)});
}

void Guards::add_captured(const Tensor& tensor, const std::string& name) {
  const TensorImpl& impl = tensor.impl();
  captured_.push_back({tensor, name, impl.dtype, impl.device, impl.sizes, impl.strides, impl.requires_grad,
                       autograd::needs_gradient(tensor), autograd::hooks_version(impl)});
}

void Guards::add_state(const IntrusivePtr<HostState>& state, uint64_t fingerprint) {
  for (auto& [known, stamp] : states_)
    if (known == state) return;
  states_.emplace_back(state, fingerprint);
  has_unclocked_state_ = has_unclocked_state_ || !state->moves_clock();
}

bool Guards::watches(const IntrusivePtr<HostState>& state) const {
  return std::any_of(states_.begin(), states_.end(), [&](auto& known) { return known.first == state; });
}

void Guards::add_grad(const GradRead& read) { grads_.push_back(read); }

void Guards::add_sharing(const Sharing& sharing) {
  for (auto& known : sharings_)
    if (known.argument == sharing.argument && known.captured.is_same(sharing.captured)) return;
  sharings_.push_back(sharing);
}

void Guards::add_grad_sharing(const GradSharing& sharing) {
  for (auto& known : grad_sharings_)
    if (known.argument == sharing.argument && known.captured.is_same(sharing.captured) &&
        same_leaf(known.leaf, sharing.leaf))
      return;
  grad_sharings_.push_back(sharing);
}

void Guards::keep_apart(std::span<const Tensor> written, bool writes_arguments) {
  for (auto& tensor : written) apart_.push_back(tensor.impl().buffer.get());
  if (writes_arguments)
    for (auto& c : captured_) apart_.push_back(c.tensor.impl().buffer.get());
  std::sort(apart_.begin(), apart_.end());
  apart_.erase(std::unique(apart_.begin(), apart_.end()), apart_.end());
  if (grads_.empty()) return;
  reached_.clear();
  for (auto& c : captured_) reached_.push_back(c.tensor.impl().buffer.get());
  std::sort(reached_.begin(), reached_.end());
}

std::string Guards::sharing_failure(const Invocation& invocation) const {
  for (auto& [argument, captured, same] : sharings_) {
    const TensorImpl &a = invocation.tensors[size_t(argument)]->impl(), &b = captured.impl();
    if (!shares(a, b, same))
      return format("tensor {} of the arguments is no longer one that the function also reaches by itself", argument);
  }
  if (apart_.empty()) return {};
  for (size_t i = 0; i < invocation.tensors.size(); ++i) {
    if (!invocation.tensors[i]->defined()) continue;
    const Buffer* buffer = invocation.tensors[i]->impl().buffer.get();
    if (!std::binary_search(apart_.begin(), apart_.end(), buffer)) continue;
    bool expected = std::any_of(sharings_.begin(), sharings_.end(), [&](auto& sharing) {
      return sharing.argument == int(i) && sharing.captured.impl().buffer.get() == buffer;
    });
    if (!expected) return format("tensor {} of the arguments now shares memory with one that the function reaches by itself", i);
  }
  return {};
}

bool Guards::match_words(const Signature& signature) const {
  if (signature.size() != signature_.size()) return false;
  for (size_t i = 0; i < signature.size(); ++i)
    if (signature[i] != signature_[i] && place_[i] < 0 && !free_[i]) return false;
  return true;
}

bool Guards::match_state() const {
  uint64_t geometry = TensorImpl::geometry_clock.load(std::memory_order_relaxed);
  if (geometry != geometry_clock_.load(std::memory_order_relaxed)) {
    for (auto& c : captured_) {
      const TensorImpl& impl = c.tensor.impl();
      if (impl.dtype != c.dtype || !(impl.device == c.device) || impl.sizes != c.sizes || impl.strides != c.strides ||
          impl.requires_grad != c.requires_grad || autograd::needs_gradient(c.tensor) != c.needs_grad ||
          autograd::hooks_version(impl) != c.hooks)
        return false;
    }
    geometry_clock_.store(geometry, std::memory_order_relaxed);
  }
  uint64_t clock = HostState::clock.load(std::memory_order_relaxed);
  if (has_unclocked_state_ || clock != state_clock_.load(std::memory_order_relaxed)) {
    for (auto& [state, stamp] : states_)
      if (state->fingerprint() != std::optional<uint64_t>(stamp)) return false;
    state_clock_.store(clock, std::memory_order_relaxed);
  }
  return true;
}

Tensor Guards::grad_of(const CellSource& leaf, const Invocation& invocation) {
  const Tensor& tensor = leaf.kind == CellSource::Kind::kArgument ? *invocation.tensors[size_t(leaf.index)] : leaf.tensor;
  auto* state = tensor.defined() ? autograd::state_of(tensor.impl()) : nullptr;
  return state ? state->grad : Tensor();
}

std::string Guards::grad_failure(const Invocation& invocation) const {
  for (auto& [leaf, argument, captured, same] : grad_sharings_) {
    Tensor grad = grad_of(leaf, invocation);
    const Tensor& other = argument >= 0 ? *invocation.tensors[size_t(argument)] : captured;
    if (!grad.defined() || !other.defined() || !shares(grad.impl(), other.impl(), same))
      return format(
          "the gradient of {} is no longer in the memory of {}", leaf.name,
          argument >= 0 ? format("tensor {} of the arguments", argument) : "one that the function reaches by itself");
  }
  for (auto& [leaf, present] : grads_) {
    Tensor grad = grad_of(leaf, invocation);
    if (grad.defined() != present) return format("{} {} a gradient", leaf.name, present ? "no longer has" : "now has");
    if (!present) continue;
    bool expected = std::any_of(grad_sharings_.begin(), grad_sharings_.end(),
                                [&, &its = leaf](auto& sharing) { return same_leaf(sharing.leaf, its); });
    if (expected) continue;
    const Buffer* buffer = grad.impl().buffer.get();
    bool shared = std::binary_search(reached_.begin(), reached_.end(), buffer);
    for (auto* argument : invocation.tensors)
      shared = shared || (argument->defined() && argument->impl().buffer.get() == buffer);
    if (shared)
      return format("the gradient of {} now shares memory with an argument or a tensor that the function uses",
                    leaf.name);
  }
  return {};
}

void Guards::spend(std::string reason) {
  spent_reason_ = std::move(reason);
  spent_ = true;
}

bool Guards::match(const Signature& signature, const Invocation& invocation, SmallVector<int64_t, 8>& sizes) const {
  if (is_spent() || !match_words(signature)) return false;
  sizes.clear();
  for (auto& symbol : symbols_) {
    if (symbol.word < 0) break;  // those that the data decides come last
    sizes.push_back(signature[size_t(symbol.word)]);
  }
  for (size_t place = 0; place < sizes.size(); ++place)
    if (sizes[place] < symbols_[place].low || sizes[place] > symbols_[place].high) return false;
  // Words that share a symbol must agree.
  for (size_t i = 0; i < place_.size(); ++i)
    if (place_[i] >= 0 && signature[i] != sizes[size_t(place_[i])]) return false;
  for (auto& [fact, a, b] : facts_) {
    int64_t x = a(sizes.data()), y = b(sizes.data());
    bool holds = fact.op == DimCompare::kEqual ? x == y : fact.op == DimCompare::kLess ? x < y : x <= y;
    if (holds != fact.holds) return false;
  }
  return match_state() && ((grads_.empty() && grad_sharings_.empty()) || grad_failure(invocation).empty()) &&
         ((sharings_.empty() && apart_.empty()) || sharing_failure(invocation).empty());
}

Guard Guards::failure(const Signature& signature, const std::vector<Word>& words, const Invocation& invocation) const {
  if (is_spent()) return {spent_reason_, {}};
  auto differs = [&](size_t i) { return signature[i] != signature_[i] && place_[i] < 0 && !free_[i]; };
  auto told = [&](size_t i) { return Guard{difference(words_[i], signature_[i], words[i], signature[i]), {}}; };
  for (size_t i : {kGradModeWord, kAutocastWord, kDefaultDTypeWord, kTypesWord})
    if (differs(i)) return told(i);
  // Calls of another structure differ in a word before they do in the number of words: in a length, a rank.
  for (size_t i = kHeaderWords; i < std::min(signature.size(), signature_.size()); ++i)
    if (differs(i)) return told(i);
  for (size_t i = 0; i < kHeaderWords; ++i)
    if (differs(i)) return told(i);
  SmallVector<int64_t, 8> sizes;
  for (auto& symbol : symbols_)
    if (symbol.word >= 0) sizes.push_back(signature[size_t(symbol.word)]);
  for (size_t place = 0; place < sizes.size(); ++place)
    if (sizes[place] < symbols_[place].low || sizes[place] > symbols_[place].high)
      return {format("{} is {}, outside [{}, {}]", symbols_[place].source, sizes[place], symbols_[place].low,
                     symbols_[place].high),
              {}};
  for (size_t i = 0; i < place_.size(); ++i)
    if (place_[i] >= 0 && signature[i] != sizes[size_t(place_[i])])
      return {format("{} == {} no longer holds: now {} and {}", words_[i].name, symbols_[size_t(place_[i])].source,
                     signature[i], sizes[size_t(place_[i])]),
              {}};
  for (auto& [fact, a, b] : facts_) {
    int64_t x = a(sizes.data()), y = b(sizes.data());
    bool holds = fact.op == DimCompare::kEqual ? x == y : fact.op == DimCompare::kLess ? x < y : x <= y;
    if (holds != fact.holds)
      return {format("{} (asked at {}) no longer holds: now {} and {}", fact.text(), fact.where, x, y), fact.where};
  }
  for (auto& c : captured_) {
    const TensorImpl& impl = c.tensor.impl();
    if (impl.dtype != c.dtype || impl.sizes != c.sizes || impl.strides != c.strides || !(impl.device == c.device) ||
        impl.requires_grad != c.requires_grad || autograd::needs_gradient(c.tensor) != c.needs_grad)
      return {
          format("the captured tensor '{}' was {}, now {}", c.name,
                 tensor_text(c.dtype, c.device, c.sizes, c.strides, c.needs_grad),
                 tensor_text(impl.dtype, impl.device, impl.sizes, impl.strides, autograd::needs_gradient(c.tensor))),
          {}};
  }
  for (auto& c : captured_)
    if (autograd::hooks_version(c.tensor.impl()) != c.hooks)
      return {format("the captured tensor '{}' has other hooks", c.name), {}};
  for (auto& [state, stamp] : states_)
    if (state->fingerprint() != std::optional<uint64_t>(stamp)) return {format("{} has changed", state->name()), {}};
  if (std::string grads = grad_failure(invocation); !grads.empty()) return {grads, {}};
  std::string sharing = sharing_failure(invocation);
  return {sharing.empty() ? "nothing" : sharing, {}};
}

std::vector<Guard> Guards::list() const {
  std::vector<Guard> out;
  if (is_spent()) out.push_back({spent_reason_, {}});
  for (size_t i = 0; i < words_.size(); ++i) {
    // A text is several words.
    bool again = i > 0 && !words_[i].text.empty() && words_[i].name == words_[i - 1].name;
    if (free_[i] || again) continue;
    if (place_[i] < 0)
      out.push_back({format("{} == {}", words_[i].name, word_text(words_[i], signature_[i])), {}});
    else if (symbols_[size_t(place_[i])].word == int(i))
      out.push_back({format("{} == {}, in [{}, {}]", words_[i].name, symbols_[size_t(place_[i])].name,
                            symbols_[size_t(place_[i])].low,
                            symbols_[size_t(place_[i])].high >= kAnySize ? std::string("…")
                                                                         : std::to_string(symbols_[size_t(place_[i])].high)),
                     {}});
    else
      out.push_back({format("{} == {}", words_[i].name, symbols_[size_t(place_[i])].name), {}});
  }
  for (auto& [fact, a, b] : facts_) out.push_back({fact.text(), fact.where});
  for (auto& c : captured_) out.push_back({format("'{}' is the same tensor, {}{}", c.name, c.dtype, c.sizes), {}});
  for (auto& [state, stamp] : states_) out.push_back({format("{} is unchanged", state->name()), {}});
  for (auto& read : grads_) out.push_back({format("'{}' {} a gradient", read.leaf.name, read.present ? "has" : "has not"), {}});
  for (auto& sharing : sharings_)
    out.push_back({format("tensor {} of the arguments {} one that the function reaches by itself", sharing.argument,
                          sharing.same ? "is" : "shares memory with"), {}});
  for (auto& sharing : grad_sharings_)
    out.push_back({format("the gradient of '{}' lies in the memory of {}", sharing.leaf.name,
                          sharing.argument >= 0 ? format("tensor {} of the arguments", sharing.argument)
                                                : "one that the function reaches by itself"),
                   {}});
  if (!apart_.empty()) out.emplace_back().text = "no other argument shares memory with what the function reaches by itself";
  return out;
}

uint64_t Guards::hash() const {
  uint64_t h = 0;
  for (auto& guard : list()) h = hash_text(guard.text, h);
  return h;
}

}  // namespace sinter::capture
