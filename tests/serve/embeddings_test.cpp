#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/io/safetensors.h"
#include "sinter/serve/api.h"

namespace sinter::serve {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFolder = SINTER_TEST_DATA "/sentence";

Embedder& embedder() {
  static Embedder* embedder = [] {
    auto* made = new Embedder(models::sentence_encoder(kFolder), Tokenizer::from_pretrained(kFolder),
                              {.rows = {1, 4}, .lengths = {8}, .model_name = "tiny"});
    made->start();
    return made;
  }();
  return *embedder;
}

Json ask(const Json& body, int status = 200) {
  Api api(embedder(), {.model_name = "tiny"});
  Reply reply = api.call({.method = "POST", .path = "/v1/embeddings", .body = body.dump()}).reply;
  EXPECT_EQ(reply.status, status) << reply.body;
  return Json::parse(reply.body);
}

std::vector<std::string> texts() {
  std::ifstream file(kFolder + "/texts.txt");
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

void expect_close(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
}

// As sentence-transformers has them, in the order of the question however they are batched.
TEST(Embeddings, AreThoseRecorded) {
  const Tensor want = SafeTensorsFile(kFolder + "/golden.safetensors").tensor("embeddings");
  const Json got = ask({{"model", "tiny"}, {"input", texts()}});
  ASSERT_EQ(got["data"].size(), texts().size());
  int64_t tokens = 0;
  for (size_t i = 0; i < texts().size(); ++i) {
    EXPECT_EQ(got["data"][i]["index"], i);
    const auto row = want.select(0, int64_t(i)).to_vector<float>();
    expect_close(got["data"][i]["embedding"].get<std::vector<float>>(), row);
    const Json alone = ask({{"input", texts()[i]}});
    expect_close(alone["data"][0]["embedding"].get<std::vector<float>>(), row);
    const auto ids = embedder().ids_of(texts()[i]);
    expect_close(ask({{"input", ids}})["data"][0]["embedding"].get<std::vector<float>>(), row);
    tokens += int64_t(ids.size());
  }
  EXPECT_EQ(got["usage"]["prompt_tokens"], tokens);
}

TEST(Embeddings, AsBytesAreLittleEndianFloats) {
  const auto want = ask({{"input", "a"}})["data"][0]["embedding"].get<std::vector<float>>();
  const std::string text = ask({{"input", "a"}, {"encoding_format", "base64"}})["data"][0]["embedding"];
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t word = 0, bits = 0;
  for (char c : text) {
    if (c == '=') break;
    word = word << 6 | uint32_t(digits.find(c));
    if ((bits += 6) < 8) continue;
    bits -= 8;
    bytes += char(word >> bits & 255);
  }
  std::vector<float> got(want.size());
  ASSERT_EQ(bytes.size(), got.size() * sizeof(float));
  std::memcpy(got.data(), bytes.data(), bytes.size());
  EXPECT_EQ(got, want);
}

TEST(Embeddings, TellWhatIsWrong) {
  for (const Json& body :
       {Json{{"input", Json::array()}}, Json{{"input", 5}}, Json{{"input", {{1, "a"}}}}, Json{{"input", {100000}}},
        Json{{"input", std::vector<int64_t>(50, 3)}}, Json{{"input", "a"}, {"dimensions", 3}},
        Json{{"input", "a"}, {"encoding_format", "hex"}}, Json::object()})
    EXPECT_FALSE(ask(body, 400)["error"]["message"].get<std::string>().empty());
  EXPECT_EQ(ask({{"input", "a"}, {"model", "other"}}, 404)["error"]["code"], "model_not_found");
  Api api(embedder(), {.model_name = "tiny"});
  EXPECT_EQ(api.call({.method = "POST", .path = "/v1/completions", .body = R"({"prompt":"a"})"}).reply.status, 400);
  EXPECT_EQ(Json::parse(api.call({.method = "GET", .path = "/v1/models"}).reply.body)["data"][0]["max_model_len"], 12);
  EXPECT_NE(api.call({.method = "GET", .path = "/metrics"}).reply.body.find("sinter:embedded_texts_total"),
            std::string::npos);
}

}  // namespace
}  // namespace sinter::serve
