#include "sinter/serve/sequence.h"

#include <algorithm>
#include <limits>

namespace sinter::serve {

Sequence::Sequence(std::shared_ptr<Answer> given, int64_t choice, int64_t order, const Tokenizer* tokenizer,
                   const TokenTexts* texts, const std::vector<int64_t>& end_ids, int64_t vocab)
    : answer(std::move(given)), choice(choice), order(order), tokens(request().prompt), texts_(texts) {
  const Request& r = request();
  if (!r.ignore_eos) ends_ = end_ids;
  ends_.insert(ends_.end(), r.stop_ids.begin(), r.stop_ids.end());
  if (tokenizer) text_.emplace(*tokenizer, r.stops, r.skip_special_tokens);
  settings_.options = r.sampling;
  if (r.presence_penalty != 0 || r.frequency_penalty != 0) counts_.assign(size_t(vocab), 0);
  if (r.grammar) places_ = r.grammar->begin();
  if (r.grammar || !counts_.empty() || !r.logit_bias.empty() || (r.min_tokens > 0 && !ends_.empty())) {
    settings_.bias.assign(size_t(vocab), 0);
    for (auto& [id, bias] : r.logit_bias) settings_.bias[size_t(id)] = float(bias);
    for (int64_t id : ends_) settings_.bias[size_t(id)] = bias_of(id);
  }
  if (r.sampling.repetition_penalty != 1) {
    settings_.seen.assign(size_t(vocab), 0);
    for (int64_t id : tokens) settings_.seen[size_t(id)] = 1;
  }
}

bool Sequence::is_end(int64_t id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }

float Sequence::bias_of(int64_t id) const {
  const Request& r = request();
  if (generated() < r.min_tokens && is_end(id)) return -std::numeric_limits<float>::infinity();
  double bias = 0;
  for (auto& [token, by] : r.logit_bias)
    if (token == id) bias = by;
  if (!counts_.empty() && counts_[size_t(id)] > 0)
    bias -= r.presence_penalty + r.frequency_penalty * counts_[size_t(id)];
  return float(bias);
}

const RowSampling& Sequence::sampling() {
  // Each choice draws from a sequence of its own.
  settings_.draw = sampling_draw(request().sampling.seed, choice, generated());
  if (request().grammar) keep_to_grammar();
  return settings_;
}

void Sequence::count(int64_t id) {
  if (!settings_.seen.empty()) settings_.seen[size_t(id)] = 1;
  std::vector<float>& bias = request().grammar ? plain_ : settings_.bias;
  if (!counts_.empty()) ++counts_[size_t(id)];
  if (!counts_.empty()) bias[size_t(id)] = bias_of(id);
  if (request().min_tokens > 0 && generated() == request().min_tokens && !bias.empty())
    for (int64_t end : ends_) bias[size_t(end)] = bias_of(end);
}

void Sequence::keep_to_grammar() {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const Grammar& grammar = *request().grammar;
  if (plain_.empty()) plain_ = settings_.bias;
  const auto allowed = grammar.allowed(places_, *texts_);
  const bool may_end = grammar.may_end(places_);
  is_stuck_ = true;
  for (size_t id = 0; id < plain_.size(); ++id) {
    const bool may_come = (*allowed)[id];
    settings_.bias[id] = may_come ? plain_[id] : kNever;
    is_stuck_ = is_stuck_ && !may_come;
  }
  // What ends the text comes where it may end, however early.
  for (int64_t id : ends_) settings_.bias[size_t(id)] = may_end ? 0 : kNever;
  is_stuck_ = is_stuck_ && !(may_end && !ends_.empty());
}

Event Sequence::take(Token token, int64_t max_length) {
  const int64_t id = token.id;
  tokens.push_back(id);
  ++answer->usage.completion_tokens;
  count(id);
  Event event{.choice = choice};
  if (is_stuck_) {
    event.end = request().grammar->may_end(places_) ? End::kStop : End::kFailed;
    if (*event.end == End::kFailed)
      event.error = "no token of the vocabulary goes on with the text as its grammar wants it";
    if (text_) event.text += text_->finish();
    return event;
  }
  const bool ends = is_end(id);
  if (!ends && request().grammar) places_ = request().grammar->after(places_, texts_->text(id));
  if (!ends) {
    event.tokens.push_back(std::move(token));
    if (text_) event.text = text_->push(id);
  }
  if (ends || (text_ && text_->stopped()) || (request().grammar && request().grammar->must_end(places_)))
    event.end = End::kStop;
  else if (generated() >= request().max_tokens || int64_t(tokens.size()) >= max_length)
    event.end = End::kLength;
  if (event.end && text_) event.text += text_->finish();
  return event;
}

}  // namespace sinter::serve
