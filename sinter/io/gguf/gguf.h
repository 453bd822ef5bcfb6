#pragma once
// The GGUF format, versions 2 and 3, of llama.cpp: pairs of keys and values, the tensors' names, types and sizes, their
// bytes. One file is a whole checkpoint, its configuration and tokenizer among the values. Files come from anywhere, so
// every count, length and offset is checked before it is used; what is wrong throws an Error that names the file.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/tensor/shape.h"

namespace sinter {

// How a tensor's numbers are stored: `items` of them in each `bytes`, along the last dimension.
struct GgufType {
  uint32_t id = 0;
  const char* name = "";
  int64_t items = 1, bytes = 0;
};

struct GgufTensor {
  std::string name;
  GgufType type;
  Shape shape;                   // the fastest dimension last, as elsewhere
  uint64_t begin = 0, size = 0;  // bytes, counted from the first tensor's
};

// A file mapped into memory. Copies share the mapping, which must not be truncated while it is in use.
class GgufFile {
 public:
  // Whether a file begins like one; false where it cannot be read.
  static bool is_gguf(const std::string& path);
  explicit GgufFile(const std::string& path);

  const std::string& path() const;
  const std::vector<GgufTensor>& tensors() const;
  // Null: there is none.
  const GgufTensor* find(std::string_view name) const;
  // The bytes of a tensor, for as long as the file is there.
  const uint8_t* data(const GgufTensor& tensor) const;

  // Values by key; the forms with a default give it where the key is absent, the others an Error. A value of another
  // kind is an Error always.
  bool contains(std::string_view key) const;
  std::vector<std::string> keys() const;
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string text(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t otherwise) const { return contains(key) ? integer(key) : otherwise; }
  double number(std::string_view key, double otherwise) const { return contains(key) ? number(key) : otherwise; }
  bool boolean(std::string_view key, bool otherwise) const { return contains(key) ? boolean(key) : otherwise; }
  std::string text(std::string_view key, const std::string& otherwise) const {
    return contains(key) ? text(key) : otherwise;
  }
  // Empty where the key is absent.
  const std::vector<int64_t>& integers(std::string_view key) const;
  const std::vector<double>& numbers(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

// What the values say, as the file of a Hugging Face checkpoint of this name would: config.json,
// generation_config.json, tokenizer.json or tokenizer_config.json. Nothing where there is no such file. An Error where
// an architecture or a tokenizer is not known.
std::optional<std::string> gguf_text(const GgufFile& file, std::string_view name);

namespace gguf {

// The parts of gguf_text().
std::string config(const GgufFile& file);
std::string generation_config(const GgufFile& file);
std::string tokenizer(const GgufFile& file);
std::string tokenizer_config(const GgufFile& file);
// The id that a key names, "tokenizer.ggml.eos_token_id". SentencePiece has some by nature, which files leave out.
std::optional<int64_t> special_id(const GgufFile& file, std::string_view key);

}  // namespace gguf

}  // namespace sinter
