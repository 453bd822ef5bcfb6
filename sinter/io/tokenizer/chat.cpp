#include "sinter/io/tokenizer/chat.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/io/chat_template/chat_template.h"
#include "sinter/io/tokenizer/json_ref.h"

namespace sinter::tokenizers {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void read_special_tokens(JsonRef json, ChatSettings& settings) {
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    JsonRef token = json[name];
    if (token.is_object()) token = token["content"];
    if (!token.is_null()) settings.special_tokens[name] = token.text();
  }
}

Json parse(const std::string& text, const char* what) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw_error(format("apply_chat_template: {} is not valid JSON: {}", what, error.what()));
  }
}

// The fields of the object that `text` is, over those of `into`.
void merge(Json& into, const std::string& text, const char* what) {
  if (text.empty()) return;
  Json fields = parse(text, what);
  check(fields.is_object(), "apply_chat_template: {} must be a JSON object", what);
  for (auto it = fields.begin(); it != fields.end(); ++it) into[it.key()] = *it;
}

}  // namespace

ChatSettings read_chat_settings(const CheckpointFiles& files) {
  ChatSettings settings;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    auto text = files.read(name);
    if (!text) continue;
    JsonDocument document(*text, files.path(name));
    read_special_tokens(document.root(), settings);
    if (name != std::string_view("tokenizer_config.json")) continue;
    JsonRef chat = document.root()["chat_template"];
    if (chat.is_string()) settings.templates["default"] = chat.text();
    if (chat.is_array()) {
      chat.each([&](JsonRef each) { settings.templates[each["name"].text()] = each["template"].text(); });
    }
  }
  // Files of their own take precedence.
  if (auto text = files.read("chat_template.jinja")) settings.templates["default"] = *text;
  for (auto& name : files.list("additional_chat_templates"))
    if (fs::path path(name); path.extension() == ".jinja") settings.templates[path.stem()] = files.read(name).value_or("");
  return settings;
}

std::string render_chat(const ChatSettings& settings, std::span<const ChatMessage> messages,
                        const ChatOptions& options) {
  check(!settings.templates.empty(), "apply_chat_template: the checkpoint has no chat template");
  std::string name = options.template_name;
  if (name.empty()) name = !options.tools.empty() && settings.templates.contains("tool_use") ? "tool_use" : "default";
  auto chosen = settings.templates.find(name);
  if (chosen == settings.templates.end()) {
    std::string known;
    for (auto& each : settings.templates) known += (known.empty() ? "" : ", ") + each.first;
    throw_error(format("apply_chat_template: there is no template '{}'; there are: {}", name, known));
  }

  Json context = Json::object();
  for (auto& [token, text] : settings.special_tokens) context[token] = text;
  context["add_generation_prompt"] = options.add_generation_prompt;
  context["tools"] = options.tools.empty() ? Json() : parse(options.tools, "tools");
  context["documents"] = nullptr;
  context["messages"] = Json::array();
  for (auto& message : messages) {
    Json fields = {{"role", message.role}, {"content", message.content}};
    merge(fields, message.extra, "the extra fields of a message");
    context["messages"].push_back(std::move(fields));
  }
  merge(context, options.variables, "variables");
  return ChatTemplate(chosen->second).render(context.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace sinter::tokenizers
