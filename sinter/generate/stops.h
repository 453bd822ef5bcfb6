#pragma once
// When a sequence ends.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter {

// Watches one sequence for the strings that end it, in the text that its tokens become.
class StopStrings {
 public:
  StopStrings(std::vector<std::string> stops, const Tokenizer* tokenizer);

  // True when a stop string is complete.
  bool push(int64_t id);

 private:
  std::vector<std::string> stops_;
  std::optional<StreamDecoder> decoder_;
  std::string tail_;  // as much of the text as could begin a stop string
  size_t longest_ = 0;
};

}  // namespace sinter
