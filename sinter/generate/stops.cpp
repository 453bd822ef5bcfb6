#include "sinter/generate/stops.h"

#include <algorithm>

#include "sinter/base/error.h"

namespace sinter {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops, bool skip_special_tokens)
    : stops_(std::move(stops)), decoder_(tokenizer, skip_special_tokens) {
  for (auto& stop : stops_) check(!stop.empty(), "generate: a stop string is empty");
}

std::string TextStream::push(int64_t id) { return stopped_ ? "" : take(decoder_.push(id), false); }

std::string TextStream::finish() { return stopped_ ? "" : take(decoder_.finish(), true); }

std::string TextStream::take(const std::string& more, bool last) {
  held_ += more;
  size_t end = std::string::npos;
  for (auto& stop : stops_) end = std::min(end, held_.find(stop));
  stopped_ = end != std::string::npos;
  if (!stopped_) {
    // Kept back is the longest end of the text that begins a stop string.
    size_t kept = 0;
    for (auto& stop : stops_)
      for (size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
        if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) kept = n;
    end = last ? held_.size() : held_.size() - kept;
  }
  std::string certain = held_.substr(0, end);
  held_.erase(0, stopped_ ? held_.size() : end);
  return certain;
}

}  // namespace sinter
