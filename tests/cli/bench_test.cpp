// `sinter bench` on tiny checkpoints, and the checks it makes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/bench_check.h"
#include "sinter/cli/chart.h"
#include "sinter/models/models.h"
#include "sinter/ops/creation.h"
#include "tests/cli/command.h"

namespace sinter {
namespace {

using nlohmann::json;
using testing::run_command;

std::string folder_of(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/models/" + name; }

json rows_of(const std::string& arguments) {
  auto result = run_command("bench --json " + arguments);
  EXPECT_EQ(result.code, 0) << arguments << "\n" << result.err;
  return result.code == 0 ? json::parse(result.out) : json::array();
}

// Whether every element is closed, in order, and no reserved character stands outside of markup.
bool is_well_formed(const std::string& text) {
  std::vector<std::string> open;
  bool any = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      size_t end = text.find(';', i);
      if (end == std::string::npos ||
          !std::set<std::string>{"&amp", "&lt", "&gt", "&#34", "&#39"}.count(text.substr(i, end - i)))
        return false;
    }
    if (text[i] == '>') return false;
    if (text[i] != '<') continue;
    size_t end = text.find('>', i);
    if (end == std::string::npos) return false;
    std::string tag = text.substr(i + 1, end - i - 1);
    i = end;
    if (tag[0] == '?') continue;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0 || tag.find('<') != std::string::npos) return false;
    std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      if (open.empty() && any) return false;
      any = true;
      open.push_back(name);
    }
  }
  return any && open.empty();
}

TEST(Bench, ARowForEachModeBatchAndPrompt) {
  std::string svg = ::testing::TempDir() + "/bench_" + std::to_string(getpid()) + ".svg";
  json rows = rows_of("--model " + folder_of("llama-gqa") +
                      " --modes default,eager --batch 1,2 --prompt 8,12 --new 4 --repeats 3 --svg " + svg);
  ASSERT_EQ(rows.size(), 8u);
  std::set<std::string> seen;
  for (auto& row : rows) {
    seen.insert(row["mode"].get<std::string>() + " " + row["batch"].dump() + " " + row["prompt"].dump());
    for (auto key :
         {"first_call_s", "compile_s", "warmup_s", "tokens_per_s", "peak_bytes", "bandwidth_fraction", "speedup"})
      EXPECT_TRUE(row.at(key).is_number()) << key << " in " << row;
    for (auto part : {"prefill_ms", "decode_ms"})
      for (auto key : {"mean", "std", "p50", "p90", "p99", "count", "tokens_per_s"})
        EXPECT_TRUE(row.at(part).at(key).is_number()) << part << " " << key;
    EXPECT_EQ(row["repeats"], 3);
    EXPECT_EQ(row["prefill_ms"]["count"], 3);
    EXPECT_EQ(row["decode_ms"]["count"], 9);
    EXPECT_LE(row["decode_ms"]["p50"], row["decode_ms"]["p99"]);
    EXPECT_GT(row["first_call_s"], 0);
    EXPECT_GT(row["peak_bytes"], 0);
    if (row["mode"] == "eager") {
      EXPECT_EQ(row["speedup"], 1.0);
    }
  }
  EXPECT_EQ(seen.size(), 8u);
  // All 170432 parameters but 320 x 64 of the embedding, of which a step reads one row; keys and values of three
  // layers, two heads of 16, for the prompt and half of what follows.
  EXPECT_EQ(rows[0]["floor_bytes"], 4 * (170432 - 319 * 64 + 2 * 3 * 2 * 16 * (8 + 3 / 2 + 1)));

  std::ifstream file(svg);
  std::stringstream text;
  text << file.rdbuf();
  std::remove(svg.c_str());
  EXPECT_TRUE(is_well_formed(text.str())) << text.str();
  for (auto part : {"<svg", "prefers-color-scheme: dark", "decode step, ms", "batch 2, prompt 12", "default"})
    EXPECT_NE(text.str().find(part), std::string::npos) << part;
}

TEST(Bench, WithoutEagerThereIsNoSpeedup) {
  json rows = rows_of("--model " + folder_of("gpt2") + " --modes reduce-overhead --prompt 8 --new 1 --repeats 2");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows[0]["speedup"].is_null());
  EXPECT_TRUE(rows[0]["decode_ms"].is_null());  // one token is the prefill's
}

TEST(Bench, EncodersAndImagesHaveAForwardPassAlone) {
  json text = rows_of("--model " + folder_of("bert") + " --modes eager,default --prompt 8 --repeats 2");
  ASSERT_EQ(text.size(), 2u);
  EXPECT_TRUE(text[1]["decode_ms"].is_null());
  EXPECT_TRUE(text[1]["speedup"].is_number());
  EXPECT_TRUE(text[1]["tokens_per_s"].is_number());
  json images = rows_of("--model " + folder_of("vit") + " --modes eager,default --prompt 8,16 --batch 2 --repeats 2");
  ASSERT_EQ(images.size(), 2u);
  EXPECT_TRUE(images[1]["prompt"].is_null());
  EXPECT_TRUE(images[1]["tokens_per_s"].is_null());
  EXPECT_GT(images[1]["items_per_s"], 0);
}

TEST(Bench, AttentionIsChosenForAllModes) {
  json rows = rows_of("--model " + folder_of("llama-gqa") +
                      " --attention decomposed --modes eager,default --prompt 8 --new 3 --repeats 1");
  ASSERT_EQ(rows.size(), 2u);
  for (auto& row : rows) EXPECT_EQ(row["attention"], "decomposed");
}

TEST(Bench, TimeIsBounded) {
  // A million repeats would take hours.
  json rows = rows_of("--model " + folder_of("llama-gqa") +
                      " --modes eager --prompt 8 --new 200 --repeats 1000000 --max-seconds 0.2");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_LT(rows[0]["repeats"], 1000000);
  EXPECT_GE(rows[0]["repeats"], 1);
}

TEST(Bench, AVariedWorkloadMarksRecompilations) {
  json rows = rows_of("--model " + folder_of("llama-gqa") +
                      " --workload varied --modes eager,default --prompt 4,60 --new 4 --requests 9 --concurrency 2");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["recompilations"], 0);
  EXPECT_GT(rows[1]["recompilations"], 0);
  for (auto& row : rows) {
    ASSERT_EQ(row["requests"].size(), 9u);
    EXPECT_GE(row["latency_ms"]["p99"], row["latency_ms"]["p50"]);
    for (size_t i = 0; i < 9; ++i)
      EXPECT_EQ(row["requests"][i]["prompt"], rows[0]["requests"][i]["prompt"]) << "modes see the same requests";
  }
  EXPECT_GT(rows[1]["requests"][0]["recompilations"], 0);
  bool quiet = false;
  for (auto& request : rows[1]["requests"]) quiet = quiet || request["recompilations"] == 0;
  EXPECT_TRUE(quiet) << "programs are kept";
}

TEST(Bench, WrongCommandLines) {
  for (auto arguments : {"", "--config llama-125m --model x", "--config llama-125m --modes fast",
                         "--config llama-125m --batch 0", "--config llama-125m --attention flashy"}) {
    auto result = run_command(std::string("bench ") + arguments);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
  }
  auto unknown = run_command("bench --config llama-3b");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("llama-125m"), std::string::npos) << unknown.err;
  auto encoder = run_command("bench --workload varied --model " + folder_of("bert"));
  EXPECT_EQ(encoder.code, 1);
  EXPECT_NE(encoder.err.find("generates"), std::string::npos) << encoder.err;
}

TEST(Bench, DifferentResultsAreAnError) {
  // No two ways to compute in bf16 agree to the last bit.
  auto result = run_command("bench --model " + folder_of("bert") +
                            " --dtype bf16 --modes eager,default --prompt 16 --repeats 2 --tolerance 0 --json");
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("wrong result: mode default"), std::string::npos) << result.err;
}

TEST(BenchCheck, TokensThatNoRoundingExplains) {
  auto model = models::causal_lm(models::from_pretrained(folder_of("llama-gqa")));
  cli::TokenCheck check(model, 1e-4);
  std::vector<int64_t> prompt = {5, 9, 200}, tokens;
  for (int i = 0; i < 3; ++i) {
    std::vector<int64_t> ids(prompt);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    Tensor logits = model->forward(tensor(ids).unsqueeze(0));
    const float* last = logits.data_ptr<float>() + int64_t(ids.size() - 1) * 320;
    tokens.push_back(std::max_element(last, last + 320) - last);
  }
  auto wrong = tokens;
  wrong[1] = (wrong[1] + 1) % 320;
  check("eager", "a", {prompt}, {tokens});
  check("default", "a", {prompt}, {tokens});
  EXPECT_THROW(check("default", "a", {prompt}, {wrong}), Error);
  // Without an eager reference the first mode is judged as well.
  EXPECT_THROW(check("default", "b", {prompt}, {wrong}), Error);
  check("default", "c", {prompt}, {tokens});
  // A tie within the tolerance is no error.
  cli::TokenCheck lenient(model, 10);
  lenient("eager", "a", {prompt}, {tokens});
  lenient("default", "a", {prompt}, {wrong});
}

TEST(BenchCheck, Tensors) {
  Tensor a = tensor(std::vector<float>{1, 2, 3}), b = tensor(std::vector<float>{1, 2, 3.3f});
  cli::check_close("default", a, a, 0);
  cli::check_close("default", b, a, 0.1);
  EXPECT_THROW(cli::check_close("default", b, a, 0.01), Error);
  EXPECT_THROW(cli::check_close("default", tensor(std::vector<float>{1, 2, NAN}), a, 0.1), Error);
  EXPECT_THROW(cli::check_close("default", tensor(std::vector<float>{1, 2}), a, 0.1), Error);
}

TEST(BenchChart, IsXmlWhateverTheNames) {
  cli::BarPanel panel{
      .title = "a < b & \"c\"", .groups = {"g>1", "g2"}, .series = {{"x", {1, -1}, {0.5, 0}}, {"<y>", {0, 3e-5}}}};
  std::string svg = cli::bar_chart_svg("head & tail", "caption <1>", {panel, panel});
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_NE(svg.find("a &lt; b &amp; &#34;c&#34;"), std::string::npos);
  EXPECT_FALSE(is_well_formed("<svg><text></svg>"));
  EXPECT_FALSE(is_well_formed("<svg>a & b</svg>"));
}

TEST(LineChart, IsXmlWhateverIsDrawn) {
  for (auto& points : {std::vector<std::pair<double, double>>{}, {{1, 2}}, {{1, 7.5}, {2, 7.25}, {700, 4.4}}}) {
    std::string svg = cli::line_chart_svg("a < b", "c & d", "step", {{"<training>", points}, {"held out", {{350, 5.5}}}});
    EXPECT_TRUE(is_well_formed(svg)) << svg;
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << svg;
  }
}

// A mode alone is compared with an eager pass, which takes memory that is none of the mode's.
TEST(Bench, ThePeakIsTheModels) {
  const std::string model = std::string("--model ") + SINTER_TEST_DATA + "/../../assets/whale-5m --prompt 400 --new 4 --repeats 1 ";
  json alone = rows_of(model + "--modes default"), second = rows_of(model + "--modes eager default");
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_NEAR(alone[0]["peak_bytes"].get<double>() / second[1]["peak_bytes"].get<double>(), 1, 0.02);
  EXPECT_GT(second[1]["floor_ms"], 0);
}

}  // namespace
}  // namespace sinter
