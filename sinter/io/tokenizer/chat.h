#pragma once
// What a checkpoint says beside tokenizer.json: names of special tokens, and chat templates.
#include <map>
#include <span>
#include <string>

#include "sinter/io/config.h"
#include "sinter/io/tokenizer/tokenizer.h"

namespace sinter::tokenizers {

struct ChatSettings {
  std::map<std::string, std::string> special_tokens;  // "bos_token" → "<s>"
  std::map<std::string, std::string> templates;       // by name; "default" is the default

  // Empty when there is none.
  std::string special(const std::string& name) const {
    auto found = special_tokens.find(name);
    return found == special_tokens.end() ? std::string() : found->second;
  }
};

// Files that are not there are passed over; broken ones throw.
ChatSettings read_chat_settings(const CheckpointFiles& files);

std::string render_chat(const ChatSettings& settings, std::span<const ChatMessage> messages,
                        const ChatOptions& options);

}  // namespace sinter::tokenizers
