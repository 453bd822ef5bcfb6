#include "sinter/serve/api.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/serve/served_whale.h"

namespace sinter::serve {
namespace {

using Json = nlohmann::ordered_json;
using testing::chat_tokenizer;
using testing::served_whale;

struct Got {
  int status = 0;
  std::string text;  // of a reply or a stream
  Json json() const { return Json::parse(text); }
};

Got call(const std::string& path, const std::string& body, const std::string& method = "POST") {
  Api api(served_whale(), {.model_name = "whale", .version = "1.2", .created = 77});
  Outcome outcome = api.call({.method = method, .path = path, .body = body, .id = "one"});
  if (!outcome.generation) return {outcome.reply.status, outcome.reply.body};
  Generation& g = *outcome.generation;
  std::string stream;
  for (int i = 0; i < 60000 && !g.is_done(); ++i) {
    stream += g.take();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(g.is_done());
  if (g.is_stream()) return {200, stream};
  Reply reply = g.reply();
  return {reply.status, reply.body};
}

// What differs from call to call becomes 0.
Json plain(Json json) {
  if (json.contains("created")) json["created"] = 0;
  return json;
}

// The events of a stream, without the marker of its end.
std::vector<Json> events(const std::string& stream) {
  std::vector<Json> out;
  bool ended = false;
  for (size_t at = 0; at < stream.size();) {
    const size_t end = stream.find("\n\n", at);
    const std::string event = stream.substr(at, end - at);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_FALSE(ended) << "nothing comes behind [DONE]";
    if (event == "data: [DONE]")
      ended = true;
    else
      out.push_back(plain(Json::parse(event.substr(6))));
    at = end + 2;
  }
  EXPECT_TRUE(ended) << stream;
  return out;
}

TEST(Api, TellsOfTheModelAndItself) {
  const char* card = R"({"id":"whale","object":"model","created":77,"owned_by":"sinter","max_model_len":128})";
  EXPECT_EQ(call("/v1/models", "", "GET").text, format(R"({"object":"list","data":[{}]})", card));
  EXPECT_EQ(call("/v1/models/whale", "", "GET").text, card);
  EXPECT_EQ(call("/v1/models/shark", "", "GET").status, 404);
  EXPECT_EQ(call("/health", "", "GET").status, 200);
  EXPECT_EQ(call("/version", "", "GET").text, R"({"version":"1.2"})");
}

TEST(Api, HasAPageThatAsksNobodyElse) {
  auto page = call("/", "", "GET");
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.text.starts_with("<!doctype html>"));
  for (const char* outside : {"://", "src=", "@import", "url("})
    EXPECT_EQ(page.text.find(outside), std::string::npos) << outside;
}

TEST(Api, CompletesInTheWordsOfOpenAi) {
  auto got = call("/v1/completions", R"({"model":"whale","prompt":"Call me Ishmael.","max_tokens":4,"temperature":0})");
  ASSERT_EQ(got.status, 200) << got.text;
  auto ids = chat_tokenizer().encode("Call me Ishmael.");
  Json want = Json::parse(
      R"({"id":"cmpl-one","object":"text_completion","created":0,"model":"whale","system_fingerprint":null,"choices":[
      {"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":0,"completion_tokens":4,
      "total_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}})");
  const std::string text = got.json()["choices"][0]["text"];
  EXPECT_FALSE(text.empty());
  want["choices"][0]["text"] = text;
  want["usage"]["prompt_tokens"] = ids.size();
  want["usage"]["total_tokens"] = ids.size() + 4;
  EXPECT_EQ(plain(got.json()).dump(), want.dump());
  // As ids, and in a stream, it is the same text.
  auto by_ids = call("/v1/completions", Json{{"prompt", ids}, {"max_tokens", 4}, {"temperature", 0}}.dump());
  EXPECT_EQ(by_ids.json()["choices"][0]["text"], text);
  std::string streamed;
  for (auto& event :
       events(call("/v1/completions", R"({"prompt":"Call me Ishmael.","max_tokens":4,"temperature":0,"stream":true})")
                  .text))
    streamed += event["choices"][0]["text"].get<std::string>();
  EXPECT_EQ(streamed, text);
}

TEST(Api, AnswersSeveralPromptsAndChoices) {
  auto got =
      call("/v1/completions", R"({"prompt":["The whale","A ship"],"n":2,"max_tokens":6,"seed":3,"echo":true})").json();
  ASSERT_EQ(got["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(got["choices"][i]["index"], i);
    EXPECT_TRUE(got["choices"][i]["text"].get<std::string>().starts_with(i < 2 ? "The whale" : "A ship"));
  }
  EXPECT_NE(got["choices"][0]["text"], got["choices"][1]["text"]);
  EXPECT_EQ(got["usage"]["completion_tokens"], 24);
  EXPECT_EQ(call("/v1/completions", R"({"prompt":["The whale","A ship"],"n":2,"max_tokens":6,"seed":3,"echo":true})")
                .json()["choices"],
            got["choices"]);
}

TEST(Api, ChatsByTheTemplate) {
  auto got = call(
      "/v1/chat/completions",
      R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Who"},
                  {"type":"text","text":" is it?"}]}],"max_completion_tokens":5,"temperature":0,"logprobs":true,"top_logprobs":2})");
  ASSERT_EQ(got.status, 200) << got.text;
  Json choice = got.json()["choices"][0];
  EXPECT_EQ(got.json()["object"], "chat.completion");
  EXPECT_EQ(choice["message"]["role"], "assistant");
  std::string joined;
  for (auto& token : choice["logprobs"]["content"]) {
    joined += token["token"].get<std::string>();
    ASSERT_EQ(token["top_logprobs"].size(), 2u);
    EXPECT_EQ(token["top_logprobs"][0]["token"], token["token"]);
    EXPECT_EQ(token["bytes"].size(), token["token"].get<std::string>().size());
  }
  EXPECT_EQ(joined, choice["message"]["content"]);
  auto by_hand = call("/v1/completions", Json{{"prompt", "system: Be brief.\nuser: Who is it?\nassistant:"},
                                              {"max_tokens", 5},
                                              {"temperature", 0},
                                              {"add_special_tokens", false}}
                                             .dump());
  EXPECT_EQ(by_hand.json()["choices"][0]["text"], choice["message"]["content"]);
}

TEST(Api, StreamsAChatEventByEvent) {
  auto got = events(call("/v1/chat/completions",
                         R"({"messages":[{"role":"user","content":"Hail"}],"max_tokens":3,"temperature":0,"stream":true,
                         "stream_options":{"include_usage":true}})")
                        .text);
  ASSERT_GE(got.size(), 4u);
  EXPECT_EQ(
      got[0].dump(),
      R"({"id":"chatcmpl-one","object":"chat.completion.chunk","created":0,"model":"whale","system_fingerprint":null,)"
      R"("choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null})");
  const Json& end = got[got.size() - 2]["choices"][0];
  EXPECT_EQ(end.dump(), R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length"})");
  EXPECT_EQ(got.back()["choices"].dump(), "[]");
  EXPECT_EQ(got.back()["usage"]["completion_tokens"], 3);
}

TEST(Api, EndsAtStopsAndHonoursSettings) {
  const std::string whole =
      call("/v1/completions", R"({"prompt":"The","max_tokens":20,"temperature":0})").json()["choices"][0]["text"];
  const std::string stop = whole.substr(4, 3);
  Json cut =
      call("/v1/completions", Json{{"prompt", "The"}, {"max_tokens", 20}, {"temperature", 0}, {"stop", stop}}.dump())
          .json();
  EXPECT_EQ(cut["choices"][0]["text"], whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "stop");
  Json forced = call("/v1/completions",
                     R"({"prompt":"The","max_tokens":3,"logit_bias":{"50":100},"temperature":0,"ignore_eos":true})")
                    .json();
  EXPECT_EQ(forced["choices"][0]["text"], chat_tokenizer().decode(std::vector<int64_t>(3, 50)));
  Json old =
      call("/v1/completions", R"({"prompt":"The","max_tokens":3,"temperature":0,"logprobs":2})").json()["choices"][0];
  EXPECT_EQ(old["logprobs"]["tokens"].size(), 3u);
  EXPECT_EQ(old["logprobs"]["top_logprobs"][0].size(), 2u);
  EXPECT_EQ(old["logprobs"]["text_offset"][0], 0);
}

TEST(Api, MakesTokensOfTextAndBack) {
  Json got = call("/tokenize", R"({"prompt":"Call me Ishmael."})").json();
  EXPECT_EQ(got["tokens"].get<std::vector<int64_t>>(), chat_tokenizer().encode("Call me Ishmael."));
  EXPECT_EQ(got["count"], got["tokens"].size());
  EXPECT_EQ(call("/detokenize", Json{{"tokens", chat_tokenizer().encode("Call me", false)}}.dump()).json()["prompt"],
            "Call me");
  Json chat = call("/tokenize", R"({"messages":[{"role":"user","content":"Hail"}]})").json();
  EXPECT_EQ(chat["tokens"].get<std::vector<int64_t>>(), chat_tokenizer().encode("user: Hail\nassistant:", false));
}

struct Wrong {
  const char *path, *body;
  int status;
  const char* param;  // null: none is told
};

TEST(Api, TellsWhatIsWrong) {
  const std::string deep = "{\"prompt\":" + std::string(100, '[') + std::string(100, ']') + "}";
  const Wrong wrong[] = {
      {"/v1/completions", "{", 400, nullptr},
      {"/v1/completions", "[]", 400, nullptr},
      {"/v1/completions", deep.c_str(), 400, nullptr},
      {"/v1/completions", "{}", 400, "prompt"},
      {"/v1/completions", R"({"prompt":""})", 400, "prompt"},
      {"/v1/completions", R"({"prompt":[5000]})", 400, "prompt"},
      {"/v1/completions", R"({"prompt":[[1],["a"]]})", 400, "prompt"},
      {"/v1/completions", R"({"prompt":"a","model":"shark"})", 404, "model"},
      {"/v1/completions", R"({"prompt":"a","max_tokens":0})", 400, "max_tokens"},
      {"/v1/completions", R"({"prompt":"a","max_tokens":1000})", 400, "messages"},
      {"/v1/completions", R"({"prompt":"a","temperature":"hot"})", 400, "temperature"},
      {"/v1/completions", R"({"prompt":"a","temperature":-1})", 400, "temperature"},
      {"/v1/completions", R"({"prompt":"a","n":0})", 400, "n"},
      {"/v1/completions", R"({"prompt":"a","seed":1.5})", 400, "seed"},
      {"/v1/completions", R"({"prompt":"a","seed":18446744073709551615})", 400, "seed"},
      {"/v1/completions", R"({"prompt":"a","logit_bias":{"x":1}})", 400, "logit_bias"},
      {"/v1/completions", R"({"prompt":"a","suffix":"b"})", 400, "suffix"},
      {"/v1/completions", R"({"prompt":"a","stream_options":{}})", 400, "stream_options"},
      {"/v1/chat/completions", R"({})", 400, "messages"},
      {"/v1/chat/completions", R"({"messages":[{"content":"a"}]})", 400, "messages"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})", 400, "messages"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"top_logprobs":3})", 400, "top_logprobs"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"xml"}})", 400,
       "response_format"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"a"}],"response_format":{"type":"json_schema","json_schema":
       {"name":"a","schema":{"type":"string","pattern":"a+"}}}})",
       400, "response_format"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}]})", 400,
       "tool_choice"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],
       "tool_choice":{"type":"function","function":{"name":"g"}}})",
       400, "tool_choice"},
      {"/v1/nothing", "{}", 404, nullptr},
  };
  for (auto& w : wrong) {
    auto got = call(w.path, w.body);
    EXPECT_EQ(got.status, w.status) << w.body << got.text;
    Json error = got.json()["error"];
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    EXPECT_EQ(error["param"], w.param ? Json(w.param) : Json()) << w.body;
  }
  EXPECT_EQ(call("/v1/completions", "", "GET").status, 405);
}

TEST(Api, KeepsToASchema) {
  Json got = call("/v1/chat/completions",
                  R"({"messages":[{"role":"user","content":"Who?"}],"max_tokens":100,"temperature":1,"seed":4,
      "response_format":{"type":"json_schema","json_schema":{"name":"person","strict":true,"schema":{"type":"object","properties":
      {"name":{"type":"string","maxLength":6},"age":{"type":"integer","minimum":7,"maximum":120},"tags":{"type":"array","items":
      {"enum":["sea","land"]},"minItems":1,"maxItems":2}},"required":["name","age","tags"],"additionalProperties":false}}}})")
                 .json();
  Json answer = Json::parse(got["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_LE(answer["name"].get<std::string>().size(), 24u);
  EXPECT_GE(answer["age"], 7);
  EXPECT_LE(answer["age"], 120);
  EXPECT_TRUE(answer["tags"][0] == "sea" || answer["tags"][0] == "land");
  EXPECT_EQ(got["choices"][0]["finish_reason"], "stop");
  Json chosen =
      call("/v1/completions", R"({"prompt":"Sea or land?","structured_outputs":{"choice":["sea","land"]}})").json();
  const std::string text = chosen["choices"][0]["text"];
  EXPECT_TRUE(text == "sea" || text == "land") << text;
}

TEST(Api, CallsTheFunctionThatItHasTo) {
  const std::string tools = R"("messages":[{"role":"user","content":"Weather?"}],"max_tokens":100,"seed":1,"tools":[
      {"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"place":{"$ref":"#/$defs/place"}},
      "required":["place"],"$defs":{"place":{"enum":["Nantucket"]}}}}},{"type":"function","function":{"name":"time"}}])";
  for (const char* choice : {R"("required")", R"({"type":"function","function":{"name":"weather"}})"}) {
    const bool is_named = *choice == '{';
    Json got = call("/v1/chat/completions", "{" + tools + ",\"tool_choice\":" + choice + "}").json()["choices"][0];
    ASSERT_EQ(got["finish_reason"], is_named ? "stop" : "tool_calls") << got;
    Json function = got["message"]["tool_calls"][0]["function"];
    Json arguments = Json::parse(function["arguments"].get<std::string>());
    EXPECT_EQ(arguments, function["name"] == "weather" ? Json::parse(R"({"place":"Nantucket"})") : Json::object());
    auto streamed =
        events(call("/v1/chat/completions", "{\"stream\":true," + tools + ",\"tool_choice\":" + choice + "}").text);
    EXPECT_EQ(streamed[1]["choices"][0]["delta"]["tool_calls"][0]["function"], function);
  }
}

// Whatever is sent, it is answered or refused; SINTER_FUZZ_PROGRAMS says how often.
TEST(Api, SurvivesAnyBody) {
  const std::string seeds[] = {
      R"({"model":"whale","prompt":["a",[1,2]],"max_tokens":2,"n":2,"stop":["x"],"logit_bias":{"5":-3.5},"seed":-1,"echo":true})",
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"\u00e9"}]}],"tools":[{"type":"function","function":{"name":"f",
      "parameters":{"type":"object","properties":{"a":{"enum":[1,null]}}}}}],"tool_choice":"required","top_p":0.5})",
      R"({"prompt":"a","response_format":{"type":"json_schema","json_schema":{"schema":{"anyOf":[{"$ref":"#/$defs/x"},{"type":
      ["integer","null"],"minimum":-1e3}],"$defs":{"x":{"type":"array","items":{},"minItems":2}}}}},"stream":true})"};
  const char* pieces[] = {"null", "[]", "{}", "1e999", "-1", "\"\"", "[[[[", "\xff\xfe", "18446744073709551616",
                          "true", ",",  ":",  "\\u"};
  const char* repeats = std::getenv("SINTER_FUZZ_PROGRAMS");
  std::mt19937_64 random(1);
  Api api(served_whale(), {.model_name = "whale"});
  int refused = 0, taken = 0;
  for (int i = 0, count = repeats ? std::atoi(repeats) : 3000; i < count; ++i) {
    std::string body = seeds[random() % std::size(seeds)];
    for (uint64_t change = random() % 4; change > 0; --change) {
      const size_t at = random() % body.size(), size = random() % 8;
      const auto kind = random() % 3;
      if (kind == 0) body.erase(at, size);
      if (kind == 1) body[at] = char(random());
      if (kind == 2) body.insert(at, pieces[random() % std::size(pieces)]);
      if (body.empty()) body = "{";
    }
    const char* path = random() % 2 ? "/v1/completions" : random() % 4 ? "/v1/chat/completions" : "/tokenize";
    Outcome outcome = api.call({.method = "POST", .path = path, .body = body, .id = "x"});
    if (outcome.generation) {
      ++taken;
      outcome.generation->cancel();
      continue;
    }
    EXPECT_TRUE(outcome.reply.status == 200 || outcome.reply.status == 400 || outcome.reply.status == 404 ||
                outcome.reply.status == 429)
        << outcome.reply.status << outcome.reply.body << body;
    refused += outcome.reply.status != 200;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(taken, 0);
}

TEST(Api, MetricsAreReadByPrometheus) {
  call("/v1/completions", R"({"prompt":"a","max_tokens":2})");
  const std::string text = call("/metrics", "", "GET").text;
  for (const char* name : {"sinter:num_requests_running", "sinter:kv_cache_usage_perc",
                           "sinter:generation_tokens_total", "sinter:time_to_first_token_seconds_bucket",
                           "sinter:request_success_total", "sinter:e2e_request_latency_seconds_sum"})
    EXPECT_NE(text.find(std::string(name) + "{model_name=\"whale\",engine=\"0\""), std::string::npos) << name << "\n"
                                                                                                      << text;
}

}  // namespace
}  // namespace sinter::serve
