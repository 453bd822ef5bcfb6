#include "sinter/generate/stops.h"

#include <algorithm>

#include "sinter/base/error.h"

namespace sinter {

StopStrings::StopStrings(std::vector<std::string> stops, const Tokenizer* tokenizer) : stops_(std::move(stops)) {
  for (auto& stop : stops_) {
    check(!stop.empty(), "generate: a stop string is empty");
    longest_ = std::max(longest_, stop.size());
  }
  if (stops_.empty()) return;
  check(tokenizer, "generate: stop strings need the tokenizer; set GenerateOptions::tokenizer");
  decoder_.emplace(*tokenizer);
}

bool StopStrings::push(int64_t id) {
  if (stops_.empty()) return false;
  tail_ += decoder_->push(id);
  bool found = std::any_of(stops_.begin(), stops_.end(), [&](auto& stop) { return tail_.find(stop) != std::string::npos; });
  if (tail_.size() > longest_) tail_.erase(0, tail_.size() - longest_);
  return found;
}

}  // namespace sinter
