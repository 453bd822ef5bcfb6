#include "sinter/serve/api.h"

#include <algorithm>

#include "sinter/serve/json_api.h"
#include "sinter_embedded.h"

namespace sinter::serve {

namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

Json card(const ApiOptions& options, int64_t max_length) {
  return {{"id", options.model_name},
          {"object", "model"},
          {"created", options.created},
          {"owned_by", "sinter"},
          {"max_model_len", max_length}};
}

void check_model(const Fields& f, const ApiOptions& options) {
  const std::string name = f.text("model", options.model_name);
  if (name != options.model_name)
    throw ApiError(404, format("The model `{}` does not exist; this server has `{}`.", name, options.model_name),
                   "model", "model_not_found");
}

// What there is to know of a model's tokens.
struct Vocabulary {
  const Tokenizer* tokenizer;  // null: it has none
  int64_t size, max_length;
};

Reply tokenize(const Json& body, const Vocabulary& vocabulary) {
  const Fields f(body);
  if (!vocabulary.tokenizer) throw ApiError(400, "the model has no tokenizer");
  const Tokenizer& tokenizer = *vocabulary.tokenizer;
  std::vector<int64_t> ids;
  if (f.find("messages")) {
    ids = chat_ids(f, tokenizer);
  } else {
    demand(f.find("prompt") != nullptr, "prompt", "there is neither a prompt nor messages");
    ids = tokenizer.encode(f.text("prompt", ""), f.boolean("add_special_tokens", true));
  }
  Json out{{"count", ids.size()}, {"max_model_len", vocabulary.max_length}, {"tokens", ids}, {"token_strs", nullptr}};
  if (f.boolean("return_token_strs", false)) {
    out["token_strs"] = Json::array();
    for (int64_t id : ids) out["token_strs"].push_back(tokenizer.token(id));
  }
  return {.body = to_line(out)};
}

Reply detokenize(const Json& body, const Vocabulary& vocabulary) {
  const Fields f(body);
  if (!vocabulary.tokenizer) throw ApiError(400, "the model has no tokenizer");
  demand(f.find("tokens") != nullptr, "tokens", "there are no tokens");
  const std::vector<int64_t> ids = f.integers("tokens");
  for (int64_t id : ids)
    demand(id >= 0 && id < vocabulary.size, "tokens", "there is no token {}; the model knows 0 to {}", id,
           vocabulary.size - 1);
  return {.body = to_line({{"prompt", vocabulary.tokenizer->decode(ids, false)}})};
}

const Arm& arm_of(const Call& call, const Arms& arms) {
  if (call.arm.empty()) return arms.of_key(call.key.empty() ? call.id : call.key);
  if (const Arm* named = arms.named(call.arm)) return *named;
  std::string names;
  for (auto& arm : arms.all()) names += (names.empty() ? "" : ", ") + arm.name;
  throw ApiError(400, format("there is no arm '{}'; there are: {}", call.arm, names));
}

}  // namespace

bool Api::is_ready() const { return arms_ ? arms_->are_ready() : embedder_->is_ready(); }
void Api::close() {
  if (arms_) arms_->close();
}
std::string Api::metrics_text() const { return arms_ ? arms_->metrics_text() : embedder_->metrics().text(); }
Registry& Api::metrics() const { return arms_ ? arms_->all()[0].engine->metrics() : embedder_->metrics(); }

Outcome Api::generate(const std::string& text, bool is_chat, const Call& call) {
  if (!arms_)
    throw ApiError(400, format("`{}` embeds texts and writes none; use /v1/embeddings", options_.model_name), "model");
  const Json body = parse_object(text);
  check_model(Fields(body), options_);
  const Arm& arm = arm_of(call, *arms_);
  Engine& engine = *arm.engine;
  GenerationCall asked = is_chat ? read_chat(body, engine, options_) : read_completion(body, engine, options_);
  asked.id = (is_chat ? "chatcmpl-" : "cmpl-") + call.id;
  asked.model = options_.model_name;
  for (auto& request : asked.requests) {
    request.id = call.id;
    request.tenant = call.tenant;
  }
  Outcome out;
  out.generation = begin_generation(engine, std::move(asked));
  if (arms_->are_compared()) out.arm = arm.name;
  return out;
}

Outcome Api::route(const Call& call) {
  struct Path {
    const char *method, *path;
  };
  static constexpr Path known[] = {{"GET", "/"},
                                   {"GET", "/health"},
                                   {"GET", "/version"},
                                   {"GET", "/metrics"},
                                   {"GET", "/v1/models"},
                                   {"GET", "/ab"},
                                   {"POST", "/tokenize"},
                                   {"POST", "/detokenize"},
                                   {"POST", "/v1/embeddings"},
                                   {"POST", "/v1/completions"},
                                   {"POST", "/v1/chat/completions"}};
  const Engine* engine = arms_ ? arms_->all()[0].engine : nullptr;
  const Vocabulary vocabulary =
      engine ? Vocabulary{engine->tokenizer(), engine->vocab(), engine->max_length()}
             : Vocabulary{&embedder_->tokenizer(), embedder_->tokenizer().vocab_size(), embedder_->max_tokens()};
  const std::string models = "/v1/models";
  if (call.method == "GET" && call.path.starts_with(models + "/")) {
    const std::string name = call.path.substr(models.size() + 1);
    if (name == options_.model_name) return {{.body = to_line(card(options_, vocabulary.max_length))}};
    throw ApiError(404, format("The model `{}` does not exist.", name), "model", "model_not_found");
  }
  auto at = std::ranges::find_if(known, [&](auto& path) { return call.path == path.path; });
  if (at == std::end(known)) throw ApiError(404, format("There is no {}", call.path));
  if (call.method != at->method) throw ApiError(405, format("{} takes {}, not {}", call.path, at->method, call.method));
  if (call.path == "/") {
    const std::string page(embedded::chat_page, embedded::chat_page_size);
    return {{.body = page, .content_type = "text/html; charset=utf-8"}};
  }
  if (call.path == "/health") {
    if (!is_ready()) return {error_reply(503, "the model is being made ready")};
    return {{.body = "{}"}};
  }
  if (call.path == "/version") return {{.body = to_line({{"version", options_.version}})}};
  if (call.path == "/metrics")
    return {{.body = metrics_text(), .content_type = "text/plain; version=0.0.4; charset=utf-8"}};
  if (call.path == "/ab") {
    if (!arms_ || !arms_->are_compared()) throw ApiError(404, "nothing is compared; start the server with --ab");
    return {{.body = arms_->report()}};
  }
  if (call.path == models) {
    const Json list = Json::array({card(options_, vocabulary.max_length)});
    return {{.body = to_line({{"object", "list"}, {"data", list}})}};
  }
  if (!is_ready()) throw Refused(Refusal::kClosed, "the model is being made ready");
  if (call.path == "/v1/completions" || call.path == "/v1/chat/completions")
    return generate(call.body, call.path == "/v1/chat/completions", call);
  const Json body = parse_object(call.body);
  check_model(Fields(body), options_);
  if (call.path == "/tokenize") return {tokenize(body, vocabulary)};
  if (call.path == "/detokenize") return {detokenize(body, vocabulary)};
  if (!embedder_)
    throw ApiError(400, format("`{}` writes texts; /v1/embeddings needs a model that embeds", options_.model_name),
                   "model");
  return {embed(body, *embedder_, options_)};
}

Reply error_reply(int status, const std::string& message, const std::string& param, const std::string& code) {
  Json error{{"message", message},
             {"type", type_of(status)},
             {"param", param.empty() ? Json() : Json(param)},
             {"code", code.empty() ? Json(status) : Json(code)}};
  Reply out{.status = status, .body = to_line({{"error", std::move(error)}})};
  if (status == 429 || status == 503) out.retry_after_s = 1;
  return out;
}

Outcome Api::call(const Call& call) {
  auto rejected = [&](const char* reason) {
    metrics().counter("requests_rejected", "Requests that were not taken, by why.", {{"reason", reason}}).add();
  };
  try {
    return route(call);
  } catch (const ApiError& error) {
    if (error.status == 400) rejected("invalid");
    return {error_reply(error.status, error.message(), error.param, error.code)};
  } catch (const Refused& error) {
    rejected(error.why == Refusal::kFull ? "full" : "closed");
    return {error_reply(error.why == Refusal::kFull ? 429 : 503, error.message())};
  } catch (const Error& error) {
    rejected("invalid");
    return {error_reply(400, error.message())};
  } catch (const std::exception& error) {
    return {error_reply(500, error.what())};
  }
}

}  // namespace sinter::serve
