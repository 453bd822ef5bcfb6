#pragma once
// Calls of the API as JSON: fields read with types, requests to the engine and its answers. Internal: .cpp files only.
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/serve/api.h"

namespace sinter::serve {

using Json = nlohmann::ordered_json;

// What a client did wrong.
class ApiError : public Error {
 public:
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : Error(message), status(status), param(std::move(param)), code(std::move(code)) {}
  int status;
  std::string param, code;
};

template <class... Args>
void demand(bool condition, const char* param, const char* pattern, const Args&... args) {
  if (!condition) throw ApiError(400, format(pattern, args...), param);
}

// The object in a text; of bounded depth.
Json parse_object(const std::string& text);
// On one line; broken UTF-8 becomes U+FFFD.
std::string to_line(const Json& json);

// null counts as absent.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  const Json* find(const char* name) const {
    auto at = object_.find(name);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  double number(const char* name, double otherwise, double least, double most) const;
  int64_t integer(const char* name, int64_t otherwise, int64_t least, int64_t most) const;
  bool boolean(const char* name, bool otherwise) const;
  std::string text(const char* name, const std::string& otherwise) const;
  // One or several.
  std::vector<std::string> texts(const char* name) const;
  std::vector<int64_t> integers(const char* name) const;

 private:
  const Json& object_;
};

// --- calls for text

// What a call for text asks for.
struct GenerationCall {
  std::vector<Request> requests;  // one a prompt
  std::vector<std::string> echo;  // of each, the text in front; empty: none
  bool is_chat = false, is_stream = false, include_usage = false;
  std::string model, id;
  // The answer is a call: of one function by its name, whose arguments the text is, or of one that the text names.
  bool is_tool_call = false;
  std::string tool;
};

GenerationCall read_chat(const Json& body, Engine& engine, const ApiOptions& options);
GenerationCall read_completion(const Json& body, Engine& engine, const ApiOptions& options);
// The ids of a conversation, as its model's template writes it.
std::vector<int64_t> chat_ids(const Fields& fields, const Tokenizer& tokenizer, const Json* tools = nullptr);

// Of texts, ids, or lists of these.
Reply embed(const Json& body, Embedder& embedder, const ApiOptions& options);

std::unique_ptr<Generation> begin_generation(Engine& engine, GenerationCall call);

}  // namespace sinter::serve
