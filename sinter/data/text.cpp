// Datasets of text: what of tokens.h needs a tokenizer.
#include "sinter/data/tokens.h"
#include "sinter/io/file.h"
#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter::data {

TokenDataset TokenDataset::from_text(const Tokenizer& tokenizer, std::string_view text, const TokenOptions& options) {
  return from_ids(tokenizer.encode(text, /*add_special_tokens=*/false), options);
}

TokenDataset TokenDataset::from_text_file(const Tokenizer& tokenizer, const std::string& path,
                                          const TokenOptions& options) {
  return from_text(tokenizer, MappedFile("TokenDataset", path).bytes(), options);
}

}  // namespace sinter::data
