// A call's JSON as requests to the engine.
#include <algorithm>
#include <random>

#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {

constexpr int64_t kMostStops = 16, kMostBiases = 1024, kMostChoices = 128, kMostPrompts = 1024;

uint64_t random_seed() {
  thread_local std::mt19937_64 engine{(uint64_t(std::random_device{}()) << 32) ^ std::random_device{}()};
  return engine();
}

// What is understood by others and not here must not be passed over in silence.
void refuse(const Fields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const Json* value = fields.find(name); value && !(value->is_boolean() && !value->get<bool>()))
      throw ApiError(400, format("{} is not supported by this server", name), name);
}

// The schema of an object, of a text, or of what vLLM calls so.
std::shared_ptr<const Grammar> grammar_of(const Json& schema, const char* param, Engine& engine) {
  demand(schema.is_object() || schema.is_string(), param, "a schema must be an object");
  return engine.grammar(schema.is_string() ? schema.get<std::string>() : to_line(schema));
}

std::shared_ptr<const Grammar> choice_of(const Fields& f, const char* name, Engine& engine) {
  const std::vector<std::string> texts = f.texts(name);
  demand(!texts.empty() && std::ranges::none_of(texts, &std::string::empty), name, "{} must be a list of texts", name);
  return engine.grammar(texts);
}

// What the text has to be, where something is said of it.
std::shared_ptr<const Grammar> read_grammar(const Fields& f, Engine& engine) {
  if (const Json* schema = f.find("guided_json")) return grammar_of(*schema, "guided_json", engine);
  if (f.find("guided_choice")) return choice_of(f, "guided_choice", engine);
  if (const Json* outputs = f.find("structured_outputs")) {
    demand(outputs->is_object(), "structured_outputs", "structured_outputs must be an object");
    const Fields inner(*outputs);
    refuse(inner, {"regex", "grammar", "structural_tag"});
    if (const Json* schema = inner.find("json")) return grammar_of(*schema, "structured_outputs", engine);
    if (inner.find("choice")) return choice_of(inner, "choice", engine);
    if (inner.boolean("json_object", false)) return engine.grammar(R"({"type":"object"})");
  }
  const Json* form = f.find("response_format");
  if (!form) return nullptr;
  demand(form->is_object() && form->contains("type") && form->at("type").is_string(), "response_format",
         "response_format must be an object with a type");
  const auto type = form->at("type").get<std::string>();
  if (type == "text") return nullptr;
  if (type == "json_object") return engine.grammar(R"({"type":"object"})");
  demand(type == "json_schema", "response_format", "response_format {} is not supported by this server", type);
  const Json* named = Fields(*form).find("json_schema");
  demand(named && named->is_object() && named->contains("schema"), "response_format",
         "json_schema must be an object with a schema");
  return grammar_of(named->at("schema"), "response_format", engine);
}

// References from the beginning of a schema that becomes a part of another.
void move_references(Json& schema, const std::string& to) {
  if (schema.is_array())
    for (auto& each : schema) move_references(each, to);
  if (!schema.is_object()) return;
  for (auto& [name, value] : schema.items()) {
    if (name == "$ref" && value.is_string() && value.get<std::string>().starts_with("#"))
      value = "#" + to + value.get<std::string>().substr(1);
    else
      move_references(value, to);
  }
}

// The functions that may be called, and what a call has to be. Nothing where none is to be called.
const Json* read_tools(const Fields& f, GenerationCall& out, Request& r, Engine& engine) {
  const Json* tools = f.find("tools");
  if (!tools || tools->empty()) {
    demand(!f.find("tool_choice") || f.find("tool_choice")->is_string(), "tool_choice", "there are no tools to choose");
    return nullptr;
  }
  demand(tools->is_array(), "tools", "tools must be a list");
  const Json* choice = f.find("tool_choice");
  if (choice && *choice == "none") return nullptr;
  const bool is_named = choice && choice->is_object();
  demand(is_named || (choice && *choice == "required"), "tool_choice",
         "this server does not read calls out of free text: tool_choice must be none, required or a function");
  demand(!r.grammar, "tools", "response_format and tools exclude each other");
  std::string wanted;
  if (is_named) {
    const Json* function = Fields(*choice).find("function");
    demand(function && function->is_object() && function->contains("name") && function->at("name").is_string(),
           "tool_choice", "tool_choice must name a function");
    wanted = function->at("name").get<std::string>();
  }
  Json calls = Json::array();
  for (auto& tool : *tools) {
    const Json* function = tool.is_object() ? Fields(tool).find("function") : nullptr;
    demand(function && function->is_object() && function->contains("name") && function->at("name").is_string(), "tools",
           "a tool is a function with a name");
    const auto name = function->at("name").get<std::string>();
    Json parameters = function->contains("parameters")
                          ? function->at("parameters")
                          : Json{{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
    if (is_named && name != wanted) continue;
    if (is_named) {
      out.tool = name;
      r.grammar = grammar_of(parameters, "tools", engine);
      break;
    }
    move_references(parameters, format("/anyOf/{}/properties/arguments", calls.size()));
    calls.push_back({{"type", "object"},
                     {"properties", {{"name", {{"const", name}}}, {"arguments", std::move(parameters)}}},
                     {"required", {"name", "arguments"}},
                     {"additionalProperties", false}});
  }
  if (!is_named) r.grammar = grammar_of({{"anyOf", std::move(calls)}}, "tools", engine);
  demand(r.grammar != nullptr, "tool_choice", "there is no function '{}'", wanted);
  out.is_tool_call = true;
  return tools;
}

// What both kinds of calls have.
Request read_settings(const Fields& f, Engine& engine, const ApiOptions& options) {
  Request r;
  r.choices = f.integer("n", 1, 1, kMostChoices);
  SamplingOptions& s = r.sampling;
  s.temperature = f.number("temperature", options.sampling.temperature, 0, 100);
  // Where logits would leave the range of numbers it is the likeliest token anyway.
  if (s.temperature < 1e-5) s.temperature = 0;
  s.top_p = f.number("top_p", options.sampling.top_p, 0, 1);
  demand(s.top_p > 0, "top_p", "top_p is 0, which must be above 0");
  // vLLM's -1 is our 0: all tokens.
  s.top_k = std::max<int64_t>(0, f.integer("top_k", options.sampling.top_k, -1, INT32_MAX));
  s.min_p = f.number("min_p", options.sampling.min_p, 0, 1);
  demand(s.min_p < 1, "min_p", "min_p is 1, which must be below 1");
  s.repetition_penalty = f.number("repetition_penalty", options.sampling.repetition_penalty, 1e-6, 1e6);
  s.seed = f.find("seed") ? uint64_t(f.integer("seed", 0, INT64_MIN, INT64_MAX)) : random_seed();
  r.presence_penalty = f.number("presence_penalty", 0, -2, 2);
  r.frequency_penalty = f.number("frequency_penalty", 0, -2, 2);
  r.stops = f.texts("stop");
  std::erase(r.stops, std::string());
  demand(int64_t(r.stops.size()) <= kMostStops, "stop", "stop has {} strings; at most {} are taken", r.stops.size(),
         kMostStops);
  r.stop_ids = f.integers("stop_token_ids");
  r.ignore_eos = f.boolean("ignore_eos", false);
  r.min_tokens = f.integer("min_tokens", 0, 0, INT32_MAX);
  r.skip_special_tokens = f.boolean("skip_special_tokens", true);
  r.priority = f.integer("priority", 0, INT32_MIN, INT32_MAX);
  if (const Json* bias = f.find("logit_bias")) {
    demand(bias->is_object() && int64_t(bias->size()) <= kMostBiases, "logit_bias",
           "logit_bias must be an object of at most {} token ids with numbers", kMostBiases);
    for (auto& [token, value] : bias->items()) {
      char* end = nullptr;
      const int64_t id = std::strtoll(token.c_str(), &end, 10);
      demand(!token.empty() && *end == 0 && id >= 0 && id < engine.vocab(), "logit_bias",
             "logit_bias has the token '{}'; the model knows 0 to {}", token, engine.vocab() - 1);
      demand(value.is_number() && std::abs(value.get<double>()) <= 100, "logit_bias",
             "logit_bias of token {} must be a number from -100 to 100", token);
      r.logit_bias.emplace_back(id, value.get<double>());
    }
  }
  refuse(f, {"guided_regex", "guided_grammar", "prompt_logprobs", "use_beam_search", "include_stop_str_in_output",
             "truncate_prompt_tokens", "bad_words", "allowed_token_ids"});
  r.grammar = read_grammar(f, engine);
  return r;
}

void read_stream(const Fields& f, GenerationCall& out) {
  out.is_stream = f.boolean("stream", false);
  const Json* options = f.find("stream_options");
  if (!options) return;
  demand(options->is_object(), "stream_options", "stream_options must be an object");
  demand(out.is_stream, "stream_options", "stream_options is for streams; set stream");
  out.include_usage = Fields(*options).boolean("include_usage", false);
}

// The room that a prompt leaves, or what was asked for.
void set_length(Request& r, std::optional<int64_t> asked, int64_t otherwise, const Engine& engine) {
  const int64_t room = engine.max_length() - int64_t(r.prompt.size());
  if (r.prompt.empty()) throw ApiError(400, "the prompt is empty", "prompt");
  const bool fits = room > 0 && asked.value_or(1) <= room;
  if (!fits)
    throw ApiError(
        400,
        format(
            "This model's maximum context length is {} tokens. However, you requested {} tokens ({} in the messages, "
            "{} in the completion).",
            engine.max_length(), int64_t(r.prompt.size()) + asked.value_or(1), r.prompt.size(), asked.value_or(1)),
        "messages", "context_length_exceeded");
  r.max_tokens = asked.value_or(std::min(otherwise, room));
  demand(r.min_tokens <= r.max_tokens, "min_tokens", "min_tokens is {}, which must be at most max_tokens, {}",
         r.min_tokens, r.max_tokens);
}

std::optional<int64_t> asked_length(const Fields& f) {
  for (const char* name : {"max_completion_tokens", "max_tokens"})
    if (f.find(name)) return f.integer(name, 0, 1, INT32_MAX);
  return {};
}

const Tokenizer& tokenizer_of(const Engine& engine) {
  if (!engine.tokenizer()) throw ApiError(400, "the model has no tokenizer; give prompts as token ids", "prompt");
  return *engine.tokenizer();
}

// Text, or a list of parts with text.
std::string content_of(const Json& message) {
  auto at = message.find("content");
  if (at == message.end() || at->is_null()) return {};
  if (at->is_string()) return at->get<std::string>();
  demand(at->is_array(), "messages", "the content of a message must be a string or a list of parts");
  std::string out;
  for (auto& part : *at) {
    demand(part.is_object() && part.contains("type") && part.at("type").is_string(), "messages",
           "a part of a message has a type");
    const auto type = part.at("type").get<std::string>();
    demand(type == "text" && part.contains("text") && part.at("text").is_string(), "messages",
           "a part of type '{}' is not supported by this server; there is text", type);
    out += part.at("text").get<std::string>();
  }
  return out;
}

}  // namespace

std::vector<int64_t> chat_ids(const Fields& f, const Tokenizer& tokenizer, const Json* tools) {
  const Json* messages = f.find("messages");
  demand(messages && messages->is_array() && !messages->empty(), "messages",
         "messages must be a list of at least one message");
  std::vector<ChatMessage> conversation;
  for (auto& message : *messages) {
    demand(message.is_object() && message.contains("role") && message.at("role").is_string(), "messages",
           "a message has a role");
    Json extra = message;
    extra.erase("role");
    extra.erase("content");
    conversation.push_back(
        {message.at("role").get<std::string>(), content_of(message), extra.empty() ? "" : to_line(extra)});
  }
  if (!tokenizer.has_chat_template())
    throw ApiError(400, "the model has no chat template; use /v1/completions, or start the server with --chat-template",
                   "messages");
  ChatOptions how;
  if (tools) how.tools = to_line(*tools);
  const bool continues = f.boolean("continue_final_message", false);
  how.add_generation_prompt = f.boolean("add_generation_prompt", !continues);
  demand(!(continues && how.add_generation_prompt), "continue_final_message",
         "continue_final_message and add_generation_prompt exclude each other");
  if (const Json* variables = f.find("chat_template_kwargs")) {
    demand(variables->is_object(), "chat_template_kwargs", "chat_template_kwargs must be an object");
    how.variables = to_line(*variables);
  }
  std::string text;
  try {
    text = tokenizer.apply_chat_template(conversation, how);
  } catch (const ApiError&) {
    throw;
  } catch (const Error& error) {
    throw ApiError(400, error.message(), "messages");
  }
  if (continues) {
    // What the template writes behind the last message goes.
    const size_t end =
        conversation.back().content.empty() ? std::string::npos : text.rfind(conversation.back().content);
    demand(end != std::string::npos, "continue_final_message", "the template does not write the last message as it is");
    text.resize(end + conversation.back().content.size());
  }
  return tokenizer.encode(text, f.boolean("add_special_tokens", false));
}

GenerationCall read_chat(const Json& body, Engine& engine, const ApiOptions& options) {
  const Fields f(body);
  GenerationCall out;
  out.is_chat = true;
  read_stream(f, out);
  Request r = read_settings(f, engine, options);
  const Json* tools = read_tools(f, out, r, engine);
  const int64_t top = f.integer("top_logprobs", 0, 0, PagedDecoder::kMostLogprobs);
  if (f.boolean("logprobs", false)) r.logprobs = top;
  demand(r.logprobs || !f.find("top_logprobs") || top == 0, "top_logprobs", "top_logprobs needs logprobs");
  r.prompt = chat_ids(f, tokenizer_of(engine), tools);
  set_length(r, asked_length(f), engine.max_length(), engine);
  out.requests.push_back(std::move(r));
  out.echo.resize(1);
  return out;
}

GenerationCall read_completion(const Json& body, Engine& engine, const ApiOptions& options) {
  const Fields f(body);
  GenerationCall out;
  read_stream(f, out);
  Request settings = read_settings(f, engine, options);
  refuse(f, {"suffix"});
  demand(f.integer("best_of", settings.choices, 1, kMostChoices) == settings.choices, "best_of",
         "best_of other than n is not supported");
  if (f.find("logprobs")) settings.logprobs = f.integer("logprobs", 0, 0, PagedDecoder::kMostLogprobs);
  const bool echo = f.boolean("echo", false);
  demand(!echo || !settings.logprobs, "echo", "echo with logprobs is not supported");

  const Json* prompt = f.find("prompt");
  demand(prompt != nullptr, "prompt", "there is no prompt");
  const bool is_ids = prompt->is_array() && !prompt->empty() && prompt->front().is_number();
  std::vector<const Json*> prompts;
  if (prompt->is_array() && !is_ids)
    for (auto& each : *prompt) prompts.push_back(&each);
  else
    prompts.push_back(prompt);
  demand(!prompts.empty() && int64_t(prompts.size()) <= kMostPrompts, "prompt", "{} prompts; 1 to {} are taken",
         prompts.size(), kMostPrompts);
  for (const Json* each : prompts) {
    Request r = settings;
    if (each->is_string()) {
      r.prompt = tokenizer_of(engine).encode(each->get<std::string>(), f.boolean("add_special_tokens", true));
    } else {
      const Json wrapped{{"prompt", *each}};
      r.prompt = Fields(wrapped).integers("prompt");
      for (int64_t id : r.prompt)
        demand(id >= 0 && id < engine.vocab(), "prompt", "the prompt has the id {}; the model knows 0 to {}", id,
               engine.vocab() - 1);
    }
    set_length(r, asked_length(f), 16, engine);
    out.echo.push_back(!echo               ? ""
                       : each->is_string() ? each->get<std::string>()
                                           : tokenizer_of(engine).decode(r.prompt));
    out.requests.push_back(std::move(r));
  }
  return out;
}

}  // namespace sinter::serve
