#include "sinter/data/tokens.h"

#include <cstring>

#include "sinter/base/error.h"
#include "sinter/io/file.h"

namespace sinter::data {

struct TokenDataset::Ids {
  std::string name;  // for errors
  TokenType type;
  const char* data = nullptr;
  int64_t count = 0;
  std::unique_ptr<MappedFile> file;
  std::vector<int32_t> in_memory;

  int64_t at(int64_t i) const {
    auto read = [&](auto id) {
      std::memcpy(&id, data + size_t(i) * sizeof id, sizeof id);
      return int64_t(id);
    };
    switch (type) {
      case TokenType::kUInt16:
        return read(uint16_t());
      case TokenType::kUInt32:
        return read(uint32_t());
      case TokenType::kInt32:
        break;
    }
    return read(int32_t());
  }
};

TokenDataset::TokenDataset(std::shared_ptr<const Ids> ids, const TokenOptions& options)
    : ids_(std::move(ids)), options_(options) {
  check(options.length() > 0, "TokenDataset: windows of {} tokens", options.length());
  check(options.stride() >= 0, "TokenDataset: a stride of {}", options.stride());
  if (options_.stride() == 0) options_.stride(options.length());
  check(options.length() < ids_->count, "TokenDataset: {} has {} tokens, a window and its target take {} and one more",
        ids_->name, ids_->count, options.length());
  size_ = (ids_->count - 1 - options.length()) / options_.stride() + 1;
}

TokenDataset TokenDataset::from_file(const std::string& path, const TokenOptions& options) {
  auto ids = std::make_shared<Ids>();
  ids->name = format("'{}'", path);
  ids->type = options.type();
  ids->file = std::make_unique<MappedFile>("TokenDataset", path);
  const int64_t bytes = int64_t(ids->file->size()), item = options.type() == TokenType::kUInt16 ? 2 : 4;
  const int64_t header = options.header_bytes();
  check(header >= 0 && header <= bytes, "TokenDataset: '{}' has {} bytes, its header {}", path, bytes, header);
  check((bytes - header) % item == 0, "TokenDataset: the {} bytes of '{}' are no whole number of ids of {} bytes",
        bytes - header, path, item);
  ids->data = ids->file->data() + header;
  ids->count = (bytes - header) / item;
  return TokenDataset(std::move(ids), options);
}

TokenDataset TokenDataset::from_ids(std::span<const int64_t> given, const TokenOptions& options) {
  auto ids = std::make_shared<Ids>();
  ids->name = "the text";
  ids->type = TokenType::kInt32;
  ids->in_memory.reserve(given.size());
  for (int64_t id : given) {
    check(id >= 0 && id <= INT32_MAX, "TokenDataset: {} is no id", id);
    ids->in_memory.push_back(int32_t(id));
  }
  ids->data = reinterpret_cast<const char*>(ids->in_memory.data());
  ids->count = int64_t(given.size());
  return TokenDataset(std::move(ids), options);
}

int64_t TokenDataset::tokens() const { return ids_->count; }

Example<> TokenDataset::get(int64_t index) const {
  check(index >= 0 && index < size_, "TokenDataset: no window {} in {}", index, size_);
  const int64_t length = options_.length(), begin = index * options_.stride();
  Tensor data = empty({length}, kInt64), target = empty({length}, kInt64);
  auto *in = data.data_ptr<int64_t>(), *out = target.data_ptr<int64_t>();
  for (int64_t i = 0; i <= length; ++i) {
    const int64_t id = ids_->at(begin + i);
    check(id >= 0, "TokenDataset: token {} of {} has the id {}", begin + i, ids_->name, id);
    check(options_.vocab_size() == 0 || id < options_.vocab_size(),
          "TokenDataset: token {} of {} has the id {}, the vocabulary {} tokens", begin + i, ids_->name, id,
          options_.vocab_size());
    if (i < length) in[i] = id;
    if (i > 0) out[i - 1] = id;
  }
  return {data, target};
}

}  // namespace sinter::data
