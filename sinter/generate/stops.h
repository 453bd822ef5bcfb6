#pragma once
// The text of a sequence as its tokens come, and the strings that end it.
#include <cstdint>
#include <string>
#include <vector>

#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter {

// Gives text when it is certain: whole characters, and nothing that may turn out to begin a stop string. The text ends
// before the first stop string; of two that are complete at once, the one that begins first.
class TextStream {
 public:
  // An Error where a stop string is empty.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops, bool skip_special_tokens = true);

  // The text that became certain. After stopped() there is none.
  std::string push(int64_t id);
  // The rest, when no more tokens come.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::string take(const std::string& more, bool last);

  std::vector<std::string> stops_;
  StreamDecoder decoder_;
  std::string held_;  // what may begin a stop string
  bool stopped_ = false;
};

}  // namespace sinter
