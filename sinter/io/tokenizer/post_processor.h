#pragma once
// Post-processors: put special tokens around the ids of a text.
#include <memory>
#include <vector>

#include "sinter/io/tokenizer/json_ref.h"
#include "sinter/io/tokenizer/model.h"

namespace sinter::tokenizers {

class PostProcessor {
 public:
  // Null adds nothing. Throws for a type that is not known.
  explicit PostProcessor(JsonRef json) { read(json, 0); }
  std::vector<int64_t> apply(std::vector<int64_t> ids, bool add_special_tokens) const;

 private:
  // Ids to write, or the text's own ids.
  struct Part {
    bool text = false;
    std::vector<Id> ids;
  };
  void read(JsonRef json, int depth);
  void read_template(JsonRef json);

  std::vector<std::vector<Part>> steps_;
};

}  // namespace sinter::tokenizers
