#pragma once
// Text to ids and back, as a Hugging Face `tokenizer.json` describes it.
//
//   auto tokenizer = Tokenizer::from_pretrained("path/to/checkpoint");
//   auto ids = tokenizer.encode("Call me Ishmael.");
//   std::string text = tokenizer.decode(ids);
//
// Read are BPE, WordPiece, Unigram and WordLevel models with their normalizers, pre-tokenizers, post-processors,
// decoders and added tokens; what is not understood is an Error when the file is read. The settings `truncation` and
// `padding` of the file are ignored: length is the caller's business. So is `dropout`, which belongs to training.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"

namespace sinter SINTER_API {

class CheckpointFiles;

// One message of a conversation. `extra` is a JSON object with further fields for the template, such as tool_calls.
struct ChatMessage {
  std::string role;
  std::string content;
  std::string extra = {};
};

struct ChatOptions {
  bool add_generation_prompt = true;
  std::string template_name = {};  // one of several that the checkpoint names; empty: its default
  std::string tools = {};          // a JSON list
  std::string variables = {};      // a JSON object: more variables for the template
};

// Copies share what was read. Any number of threads may use one.
class Tokenizer {
 public:
  // A tokenizer.json.
  static Tokenizer from_file(const std::string& path);
  // The text of one. `name` opens error messages.
  static Tokenizer from_json(std::string_view json, const std::string& name = "tokenizer.json");
  // A folder with tokenizer.json and, if any, tokenizer_config.json, special_tokens_map.json and chat_template.jinja.
  static Tokenizer from_pretrained(const std::string& folder);
  static Tokenizer from_pretrained(const CheckpointFiles& files);

  // Broken UTF-8 counts as U+FFFD.
  std::vector<int64_t> encode(std::string_view text, bool add_special_tokens = true) const;
  // Ids that no token has are left out.
  std::string decode(std::span<const int64_t> ids, bool skip_special_tokens = true) const;

  // One more than the largest id.
  int64_t vocab_size() const;
  std::optional<int64_t> token_id(std::string_view token) const;
  // The token as the vocabulary has it. Throws when no token has the id.
  std::string token(int64_t id) const;
  bool is_special(int64_t id) const;
  // From tokenizer_config.json or special_tokens_map.json.
  std::optional<int64_t> bos_id() const;
  std::optional<int64_t> eos_id() const;
  std::optional<int64_t> pad_id() const;

  bool has_chat_template() const;
  // The prompt for a conversation. Encode it with add_special_tokens = false: the template writes them itself.
  std::string apply_chat_template(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;

 private:
  friend class StreamDecoder;
  struct State;
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

// Decodes ids as they come. What it has given, joined, is what `decode` gives for all of them; a character is given
// when all its bytes are there, never half of it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();

  // The text that became certain; often empty.
  std::string push(int64_t id);
  // The rest.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinter
