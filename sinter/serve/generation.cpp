// Answers of the engine in the API's words.
#include <chrono>

#include "sinter/serve/json_api.h"

namespace sinter::serve {

namespace {

const char* finish_reason(End end) { return end == End::kStop ? "stop" : end == End::kLength ? "length" : "abort"; }

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

class GenerationOfEngine final : public Generation {
 public:
  GenerationOfEngine(Engine& engine, GenerationCall call) : engine_(engine), call_(std::move(call)) {
    using namespace std::chrono;
    created_ = duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
    choices_ = call_.requests[0].choices;
    wants_logprobs_ = call_.requests[0].logprobs.has_value();
    texts_.resize(call_.requests.size() * size_t(choices_));
    try {
      for (auto& request : call_.requests) streams_.push_back(engine.submit(request));
    } catch (...) {
      cancel();
      throw;
    }
    open_ = streams_.size();
  }
  ~GenerationOfEngine() override {
    cancel();
    for (auto& stream : streams_) stream->on_event({});
  }

  bool is_stream() const override { return call_.is_stream; }
  bool is_done() const override { return open_ == 0; }
  Usage usage() const override { return usage_; }
  void cancel() override {
    for (auto& stream : streams_) stream->cancel();
  }
  void on_event(std::function<void()> call) override {
    for (auto& stream : streams_) stream->on_event(call);
  }

  std::string take() override {
    std::string out;
    for (size_t i = 0; i < streams_.size(); ++i)
      while (open_ > 0) {
        auto event = streams_[i]->try_next();
        if (!event) break;
        see(i, *event, out);
      }
    return call_.is_stream ? out : std::string();
  }

  Reply reply() override {
    if (!error_.empty()) return error_reply(500, error_);
    Json choices = Json::array();
    for (size_t i = 0; i < texts_.size(); ++i) {
      Text& text = texts_[i];
      Json choice{{"index", i}};
      const Json called = call_.is_tool_call ? tool_call(text, i) : Json();
      if (!called.is_null())
        choice["message"] = {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({called})}};
      else if (call_.is_chat)
        choice["message"] = {{"role", "assistant"}, {"content", text.text}};
      else
        choice["text"] = call_.echo[i / size_t(choices_)] + text.text;
      choice["logprobs"] = wants_logprobs_ ? logprobs_json(text.tokens, text) : Json();
      choice["finish_reason"] = called.is_null() || !call_.tool.empty() ? finish_reason(text.end) : "tool_calls";
      choices.push_back(std::move(choice));
    }
    Json body = head(call_.is_chat ? "chat.completion" : "text_completion");
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage_);
    return {.body = to_line(body)};
  }

 private:
  // One choice of one prompt.
  struct Text {
    std::string text;
    std::vector<Token> tokens;
    End end = End::kCancelled;
    int64_t offset = 0;  // characters of what was told of tokens
    bool has_begun = false;
  };

  Json head(const char* object) const {
    return {{"id", call_.id},
            {"object", object},
            {"created", created_},
            {"model", call_.model},
            {"system_fingerprint", nullptr}};
  }

  void see(size_t prompt, Event& event, std::string& out) {
    const size_t index = prompt * size_t(choices_) + size_t(event.choice);
    Text& text = texts_[index];
    if (event.end) text.end = *event.end;
    if (!event.error.empty() && error_.empty()) {
      error_ = event.error;
      if (call_.is_stream) add(out, Json::parse(error_reply(500, error_).body));
    }
    if (event.is_last) {
      --open_;
      usage_.prompt_tokens += event.usage.prompt_tokens;
      usage_.completion_tokens += event.usage.completion_tokens;
      usage_.cached_tokens += event.usage.cached_tokens;
    }
    if (!call_.is_stream) {
      text.text += event.text;
      for (auto& token : event.tokens) text.tokens.push_back(std::move(token));
      return;
    }
    if (error_.empty()) tell(index, text, event, out);
    if (open_ > 0) return;
    if (call_.include_usage && error_.empty()) {
      Json chunk = head(chunk_name());
      chunk["choices"] = Json::array();
      chunk["usage"] = usage_json(usage_);
      add(out, chunk);
    }
    out += "data: [DONE]\n\n";
  }

  // The call that a text is; null where it was cut off.
  Json tool_call(const Text& text, size_t index) const {
    const Json whole = Json::parse(text.text, nullptr, /*allow_exceptions=*/false);
    if (whole.is_discarded()) return nullptr;
    const bool is_named = !call_.tool.empty();
    return {{"id", format("call_{}_{}", call_.id, index)},
            {"type", "function"},
            {"function",
             {{"name", is_named ? Json(call_.tool) : whole.at("name")},
              {"arguments", is_named ? text.text : to_line(whole.at("arguments"))}}}};
  }

  const char* chunk_name() const { return call_.is_chat ? "chat.completion.chunk" : "text_completion"; }
  static void add(std::string& out, const Json& json) { out += "data: " + to_line(json) + "\n\n"; }

  void tell(size_t index, Text& text, const Event& event, std::string& out) {
    auto chunk = [&](Json choice) {
      Json body = head(chunk_name());
      body["choices"] = Json::array({std::move(choice)});
      if (call_.include_usage) body["usage"] = nullptr;
      add(out, body);
    };
    std::string front;
    if (!text.has_begun) {
      text.has_begun = true;
      if (call_.is_chat)
        chunk({{"index", index},
               {"delta", {{"role", "assistant"}, {"content", ""}}},
               {"logprobs", nullptr},
               {"finish_reason", nullptr}});
      else
        front = call_.echo[index / size_t(choices_)];
    }
    if (call_.is_tool_call) {
      // A call is told when it is whole.
      text.text += event.text;
      if (!event.end) return;
      const Json called = tool_call(text, index);
      Json delta{{"content", text.text}};
      if (!called.is_null()) {
        delta = {{"tool_calls", Json::array({called})}};
        delta["tool_calls"][0]["index"] = 0;
      }
      chunk({{"index", index}, {"delta", delta}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
      const char* reason = called.is_null() || !call_.tool.empty() ? finish_reason(text.end) : "tool_calls";
      return chunk({{"index", index}, {"delta", Json::object()}, {"logprobs", nullptr}, {"finish_reason", reason}});
    }
    const std::string piece = front + event.text;
    const Json logprobs = wants_logprobs_ && !event.tokens.empty() ? logprobs_json(event.tokens, text) : Json();
    const Json reason = event.end ? Json(finish_reason(*event.end)) : Json();
    if (!call_.is_chat) {
      if (!piece.empty() || event.end || !logprobs.is_null())
        chunk({{"index", index}, {"text", piece}, {"logprobs", logprobs}, {"finish_reason", reason}});
      return;
    }
    if (!piece.empty() || !logprobs.is_null())
      chunk({{"index", index}, {"delta", {{"content", piece}}}, {"logprobs", logprobs}, {"finish_reason", nullptr}});
    if (event.end)
      chunk({{"index", index}, {"delta", Json::object()}, {"logprobs", nullptr}, {"finish_reason", reason}});
  }

  std::string token_text(int64_t id) const {
    return engine_.tokenizer() ? engine_.tokenizer()->decode(std::vector<int64_t>{id}, false)
                               : format("token_id:{}", id);
  }

  // In the form of chats or, of completions, in the older one.
  Json logprobs_json(const std::vector<Token>& tokens, Text& text) const {
    if (call_.is_chat) {
      auto one = [&](int64_t id, double logprob) {
        const std::string piece = token_text(id);
        // A part of a character has bytes that its text does not tell.
        Json bytes;
        if (piece.find("\xef\xbf\xbd") == std::string::npos) bytes = std::vector<int>(piece.begin(), piece.end());
        for (auto& byte : bytes) byte = byte.get<int>() & 255;
        return Json{{"token", piece}, {"logprob", std::max(logprob, -9999.0)}, {"bytes", bytes}};
      };
      Json content = Json::array();
      for (auto& token : tokens) {
        Json entry = one(token.id, token.logprob);
        entry["top_logprobs"] = Json::array();
        for (auto& top : token.top) entry["top_logprobs"].push_back(one(top.id, top.logprob));
        content.push_back(std::move(entry));
      }
      return {{"content", std::move(content)}};
    }
    Json out{{"tokens", Json::array()},
             {"token_logprobs", Json::array()},
             {"top_logprobs", Json::array()},
             {"text_offset", Json::array()}};
    for (auto& token : tokens) {
      const std::string piece = token_text(token.id);
      out["tokens"].push_back(piece);
      out["token_logprobs"].push_back(std::max(token.logprob, -9999.0));
      Json top = Json::object();
      for (auto& each : token.top) top[token_text(each.id)] = std::max(each.logprob, -9999.0);
      out["top_logprobs"].push_back(std::move(top));
      out["text_offset"].push_back(text.offset);
      for (char c : piece) text.offset += (c & 0xc0) != 0x80;
    }
    return out;
  }

  Engine& engine_;
  GenerationCall call_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<Text> texts_;
  int64_t choices_ = 1, created_ = 0;
  size_t open_ = 0;
  bool wants_logprobs_ = false;
  Usage usage_;
  std::string error_;
};

}  // namespace

std::unique_ptr<Generation> begin_generation(Engine& engine, GenerationCall call) {
  return std::make_unique<GenerationOfEngine>(engine, std::move(call));
}

}  // namespace sinter::serve
