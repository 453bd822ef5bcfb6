#pragma once
// Windows of a long sequence of tokens, for a model that says what comes next:
//
//   auto train = data::TokenDataset::from_file("train.bin", data::TokenOptions(1024));  // ids as uint16
//   auto small = data::TokenDataset::from_text(tokenizer, "Call me Ishmael. …", data::TokenOptions(64).stride(1));
//
// An example is `length` ids and the same moved by one: data are ids i … i + length - 1, targets i + 1 … i + length, as
// i64.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/data/dataset.h"

namespace sinter SINTER_API {

class Tokenizer;

namespace data {

// How a file holds ids: one after the other, little-endian.
enum class TokenType : uint8_t { kUInt16, kUInt32, kInt32 };

struct TokenOptions {
  TokenOptions(int64_t length) : length_(length) {}
  SINTER_OPTION(int64_t, length);
  // From the beginning of one window to that of the next; 0: `length`, so that windows do not overlap.
  SINTER_OPTION(int64_t, stride) = 0;
  // An id that is not smaller is an Error where it is read; 0: anything goes.
  SINTER_OPTION(int64_t, vocab_size) = 0;
  // Of files.
  SINTER_OPTION(TokenType, type) = TokenType::kUInt16;
  // Bytes at the beginning of a file that are no ids.
  SINTER_OPTION(int64_t, header_bytes) = 0;
};

// Copies share the ids.
class TokenDataset : public Dataset<TokenDataset> {
 public:
  // The file is mapped, not read.
  static TokenDataset from_file(const std::string& path, const TokenOptions& options);
  static TokenDataset from_ids(std::span<const int64_t> ids, const TokenOptions& options);
  // The text is encoded once, without special tokens, and its ids are kept in memory.
  static TokenDataset from_text(const Tokenizer& tokenizer, std::string_view text, const TokenOptions& options);
  static TokenDataset from_text_file(const Tokenizer& tokenizer, const std::string& path, const TokenOptions& options);

  int64_t size() const { return size_; }
  Example<> get(int64_t index) const;
  // Ids in all.
  int64_t tokens() const;

 private:
  struct Ids;
  TokenDataset(std::shared_ptr<const Ids> ids, const TokenOptions& options);

  std::shared_ptr<const Ids> ids_;
  TokenOptions options_;
  int64_t size_;
};

}  // namespace data
}  // namespace SINTER_API
