#include "sinter/io/tokenizer/tokenizer.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/io/tokenizer/added_tokens.h"
#include "sinter/io/tokenizer/chat.h"
#include "sinter/io/tokenizer/decoder.h"
#include "sinter/io/tokenizer/model.h"
#include "sinter/io/tokenizer/normalizer.h"
#include "sinter/io/tokenizer/post_processor.h"
#include "sinter/io/tokenizer/pre_tokenizer.h"
#include "sinter/io/tokenizer/unicode.h"
#include "sinter/io/tokenizer/word_cache.h"

namespace sinter {

using namespace tokenizers;

namespace {

constexpr size_t kMaxText = size_t(1) << 30;

// What one call of encode works in; kept for the next call, since the cache is worth keeping.
struct Workspace {
  Pieces pieces;
  WordCache cache;
  std::vector<Id> ids;
};

class WorkspacePool {
 public:
  std::unique_ptr<Workspace> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Workspace>();
    auto workspace = std::move(free_.back());
    free_.pop_back();
    return workspace;
  }
  void give(std::unique_ptr<Workspace> workspace) {
    std::lock_guard lock(mutex_);
    if (free_.size() < kMaxFree) free_.push_back(std::move(workspace));
  }

 private:
  static constexpr size_t kMaxFree = 16;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

}  // namespace

struct Tokenizer::State {
  explicit State(JsonRef json)
      : normalizer(read_normalizer(json["normalizer"])),
        pre_tokenizer(read_pre_tokenizer(json["pre_tokenizer"])),
        model(read_model(json["model"])),
        added(json["added_tokens"], *model, normalizer.get()),
        post_processor(json["post_processor"]),
        decoder(json["decoder"]) {
    // Bytes need not be written as characters only for the model to read them back.
    if (pre_tokenizer && pre_tokenizer->ends_in_bytes() && model->take_bytes()) pre_tokenizer->leave_bytes();
  }

  void encode_text(std::string_view text, bool first, Workspace& work) const {
    work.pieces.assign(text, first);
    if (pre_tokenizer) pre_tokenizer->apply(work.pieces);
    for (auto& piece : work.pieces.pieces)
      if (piece.end > piece.begin) work.cache.tokenize(work.pieces.view(piece), *model, work.ids);
  }

  // How an id is written when decoding; null when no token has it, or when it is to be skipped.
  const std::string* written(int64_t id, bool skip_special) const {
    if (id < 0 || id > INT32_MAX) return nullptr;
    auto* token = added.find(Id(id));
    const std::string* text = token ? &token->written : model->vocab().token(Id(id));
    return text && skip_special && added.is_special(*text) ? nullptr : text;
  }

  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;
  ChatSettings chat;
  mutable WorkspacePool workspaces;
};

Tokenizer Tokenizer::from_json(std::string_view json, const std::string& name) {
  JsonDocument document(json, name);
  return Tokenizer(std::make_shared<const State>(document.root()));
}

Tokenizer Tokenizer::from_file(const std::string& path) { return from_json(read_file(path), path); }

Tokenizer Tokenizer::from_pretrained(const std::string& folder) {
  return from_pretrained(CheckpointFiles(folder));
}

Tokenizer Tokenizer::from_pretrained(const CheckpointFiles& files) {
  std::string path = files.path("tokenizer.json");
  auto text = files.read("tokenizer.json");
  check(text.has_value(), "cannot open '{}': there is no such file", path);
  JsonDocument document(*text, path);
  auto state = std::make_shared<State>(document.root());
  state->chat = read_chat_settings(files);
  return Tokenizer(std::move(state));
}

std::vector<int64_t> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  check(text.size() <= kMaxText, "encode: a text of {} bytes is longer than {}", text.size(), kMaxText);
  std::string repaired;
  if (!is_valid_utf8(text)) text = repaired = replace_invalid(text);

  auto work = state_->workspaces.take();
  work->ids.clear();
  state_->added.split(text, false, [&](const AddedToken* token, std::string_view part) {
    if (token) return work->ids.push_back(token->id);
    bool first = part.data() == text.data();
    std::string normalized;
    if (state_->normalizer) {
      normalized = part;
      state_->normalizer->apply(normalized);
      part = normalized;
    }
    std::string_view whole = part;
    state_->added.split(whole, true, [&](const AddedToken* inner, std::string_view rest) {
      if (inner) return work->ids.push_back(inner->id);
      state_->encode_text(rest, first && rest.data() == whole.data(), *work);
    });
  });
  std::vector<int64_t> ids(work->ids.begin(), work->ids.end());
  state_->workspaces.give(std::move(work));
  return state_->post_processor.apply(std::move(ids), add_special_tokens);
}

std::string Tokenizer::decode(std::span<const int64_t> ids, bool skip_special_tokens) const {
  DecodeStream stream(state_->decoder);
  std::string text;
  for (int64_t id : ids)
    if (auto* token = state_->written(id, skip_special_tokens)) stream.push(*token, text);
  stream.finish(text);
  return text;
}

int64_t Tokenizer::vocab_size() const {
  int64_t end = int64_t(state_->model->vocab().end());
  for (auto& token : state_->added.tokens()) end = std::max(end, int64_t(token.id) + 1);
  return end;
}

std::optional<int64_t> Tokenizer::token_id(std::string_view token) const {
  auto id = state_->added.find(token);
  if (!id) id = state_->model->vocab().find(token);
  return id ? std::optional<int64_t>(*id) : std::nullopt;
}

std::string Tokenizer::token(int64_t id) const {
  if (id >= 0 && id <= INT32_MAX) {
    if (auto* added = state_->added.find(Id(id))) return added->content;
    if (auto* token = state_->model->vocab().token(Id(id))) return *token;
  }
  throw_error(format("token: no token has the id {}; ids go from 0 to {}", id, vocab_size() - 1));
}

bool Tokenizer::is_special(int64_t id) const {
  auto* token = id >= 0 && id <= INT32_MAX ? state_->added.find(Id(id)) : nullptr;
  return token && token->special;
}

std::optional<int64_t> Tokenizer::bos_id() const { return token_id(state_->chat.special("bos_token")); }
std::optional<int64_t> Tokenizer::eos_id() const { return token_id(state_->chat.special("eos_token")); }
std::optional<int64_t> Tokenizer::pad_id() const { return token_id(state_->chat.special("pad_token")); }

bool Tokenizer::has_chat_template() const { return !state_->chat.templates.empty(); }

std::string Tokenizer::apply_chat_template(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  return render_chat(state_->chat, messages, options);
}

struct StreamDecoder::State {
  std::shared_ptr<const Tokenizer::State> tokenizer;
  DecodeStream stream;
  bool skip_special;
};

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : state_(new State{tokenizer.state_, DecodeStream(tokenizer.state_->decoder), skip_special_tokens}) {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::push(int64_t id) {
  std::string text;
  if (auto* token = state_->tokenizer->written(id, state_->skip_special)) state_->stream.push(*token, text);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  state_->stream.finish(text);
  state_->stream = DecodeStream(state_->tokenizer->decoder);
  return text;
}

}  // namespace sinter
