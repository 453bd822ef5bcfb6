// The commands about models, run as a user runs them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "tests/cli/command.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::run_command;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string fixture(const std::string& name) { return std::string(SINTER_TEST_DATA) + "/models/" + name; }

// A folder of this test alone, gone at its end.
struct Scratch {
  fs::path path = fs::path(::testing::TempDir()) / ("sinter_models_" + std::to_string(getpid()));
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  // A copy of a fixture to damage.
  fs::path model(const std::string& name) const {
    fs::copy(fixture(name), path / name, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    return path / name;
  }
};

std::string joined(const std::vector<int64_t>& ids) {
  std::string text;
  for (int64_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

std::vector<int64_t> recorded(const std::string& name) {
  return SafeTensorsFile(SINTER_TEST_DATA "/whale-5m/golden.safetensors").tensor(name).to_vector<int64_t>();
}

TEST(CliGenerate, TheBundledModelAsJson) {
  auto ids = recorded("greedy_0");
  for (std::string mode : {"eager", "default", "reduce-overhead"}) {
    auto result = run_command("generate --prompt-ids " + joined(recorded("prompt_0")) +
                              " --max-new-tokens 64 --dtype f32 --json --mode " + mode);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "") << "nothing but the object";
    auto report = json::parse(result.out);
    EXPECT_EQ(report["ids"], ids) << mode;
    EXPECT_FALSE(report["text"].get<std::string>().empty());
    for (auto key : {"tokens_per_s", "time_to_first_token_s", "compile_s"}) EXPECT_GT(report[key], 0.0) << key;
  }
}

TEST(CliGenerate, TextIdsAndTheLineOfSpeed) {
  auto text = run_command("generate --prompt 'Call me Ishmael.' --max-new-tokens 12 --dtype f32");
  ASSERT_EQ(text.code, 0) << text.err;
  for (auto part : {"12 tokens", "tokens/s", "first token", "compiled"})
    EXPECT_TRUE(contains(text.err, part)) << text.err;
  auto report =
      json::parse(run_command("generate --prompt 'Call me Ishmael.' --max-new-tokens 12 --dtype f32 --json").out);
  EXPECT_EQ(text.out, report["text"].get<std::string>() + "\n");
  auto ids = run_command("generate --prompt-ids " + joined(recorded("prompt_1")) +
                         " --max-new-tokens 10 --dtype f32 --print-ids");
  auto want = recorded("greedy_1");
  want.resize(10);
  EXPECT_EQ(ids.out, joined(want) + "\n") << ids.err;
}

TEST(CliGenerate, StopsSeedsAndTheCache) {
  std::string start = "generate --prompt 'Call me Ishmael.' --dtype f32 --json ";
  auto whole = json::parse(run_command(start + "--max-new-tokens 20").out);
  std::string text = whole["text"], stop = text.substr(6, 5);
  auto stopped = json::parse(run_command(start + "--max-new-tokens 20 --stop 'never there' --stop '" + stop + "'").out);
  EXPECT_EQ(stopped["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(stopped["finish"], "stop string");
  auto drawn = [&](const char* seed) {
    return json::parse(
        run_command(start + "--max-new-tokens 20 --temperature 0.9 --top-k 50 --seed " + seed).out)["ids"];
  };
  EXPECT_EQ(drawn("7"), drawn("7"));
  EXPECT_NE(drawn("7"), drawn("8"));
  auto full = json::parse(run_command(start + "--max-new-tokens 50 --cache-length 16").out);
  EXPECT_EQ(full["finish"], "cache full");
}

// The end token of generation_config.json, unless told otherwise.
TEST(CliGenerate, EndsAtTheEndTokenOfTheCheckpoint) {
  Scratch scratch;
  fs::path model = scratch.model("llama-gqa");
  SafeTensorsFile golden(fixture("llama-gqa") + "/golden.safetensors");
  auto prompt = golden.tensor("input_ids").to_vector<int64_t>(), want = golden.tensor("greedy").to_vector<int64_t>();
  prompt.resize(24);
  std::ofstream(model / "generation_config.json") << json{{"eos_token_id", want[5]}};
  std::string line =
      "generate --model '" + model.string() + "' --max-new-tokens 40 --json --prompt-ids " + joined(prompt);
  auto ended = run_command(line);
  ASSERT_EQ(ended.code, 0) << ended.err;
  auto ids = json::parse(ended.out)["ids"].get<std::vector<int64_t>>();
  EXPECT_EQ(ids.back(), want[5]);
  EXPECT_LE(ids.size(), 6u);
  EXPECT_EQ(json::parse(run_command(line + " --ignore-eos").out)["ids"], want);
}

TEST(CliChat, AnswersLinesOfAPipe) {
  auto result = run_command("chat --max-new-tokens 6 --dtype f32", "",
                            "Who is Ahab?\n/dance\n/reset\nWho is Ahab?\n/exit\nnot read\n");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "/dance")) << result.err;
  ASSERT_FALSE(result.out.empty());
  // After /reset the same question has the same answer, and nothing is read after /exit.
  std::string half = result.out.substr(0, result.out.size() / 2);
  EXPECT_EQ(half + half, result.out);
  EXPECT_FALSE(contains(result.out, ">")) << "a pipe is not asked";
}

TEST(CliChat, UsesTheTemplateOfTheCheckpoint) {
  Scratch scratch;
  fs::path model = scratch.path / "whale";
  fs::copy(SINTER_SOURCE_DIR "/assets/whale-5m", model, fs::copy_options::recursive);
  std::ofstream(model / "chat_template.jinja") << "{% for m in messages %}{{ m.content }}{% endfor %}";
  auto result =
      run_command("chat --dtype f32 --max-new-tokens 12 --model '" + model.string() + "'", "", "Call me Ishmael.");
  auto plain = run_command("generate --prompt 'Call me Ishmael.' --max-new-tokens 12 --dtype f32");
  EXPECT_EQ(result.out, plain.out) << result.err;
}

std::vector<int64_t> ids_of(const std::string& model, const std::string& name) {
  return SafeTensorsFile(fixture(model) + "/golden.safetensors").tensor(name).select(0, 0).to_vector<int64_t>();
}

TEST(CliGenerate, AnEncoderDecoderReadsThePrompt) {
  for (std::string model : {"t5", "bart"}) {
    auto result = run_command("generate --model " + fixture(model) + " --prompt-ids " +
                              joined(ids_of(model, "input_ids")) + " --max-new-tokens 40 --print-ids --ignore-eos");
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, joined(ids_of(model, "greedy")) + "\n") << model;
  }
  auto refused = run_command("generate --model " + fixture("t5") + " --prompt-ids 3 --warmup");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(contains(refused.err, "leave out --warmup")) << refused.err;
}

TEST(CliTranscribe, WritesWhatTransformersDoes) {
  for (std::string mode : {"eager", "default", "reduce-overhead"}) {
    auto result = run_command("transcribe --model " + fixture("whisper") + " " + fixture("whisper") +
                              "/tones.wav --max-new-tokens 40 --print-ids --mode " + mode);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, joined(ids_of("whisper", "greedy")) + "\n") << mode;
  }
}

TEST(CliTranscribe, SaysWhatItCannotHear) {
  auto error = [](const std::string& arguments) {
    auto result = run_command("transcribe --model " + fixture("whisper") + " " + arguments);
    EXPECT_EQ(result.code, 1);
    return result.err;
  };
  EXPECT_TRUE(contains(error(fixture("whisper") + "/tones.wav"), "no tokenizer.json"));
  EXPECT_TRUE(contains(error("--print-ids " + fixture("whisper") + "/config.json"), "is no WAV file"));
  EXPECT_TRUE(
      contains(error("--print-ids --language de " + fixture("whisper") + "/tones.wav"), "leave out --language"));
  auto other = run_command("transcribe --model " + fixture("t5") + " --print-ids " + fixture("whisper") + "/tones.wav");
  EXPECT_TRUE(contains(other.err, "no preprocessor_config.json")) << other.err;
}

TEST(CliEmbed, GivesTheRecordedVectors) {
  Scratch scratch;
  const std::string folder = SINTER_TEST_DATA "/sentence", out = (scratch.path / "out.safetensors").string();
  Tensor want = SafeTensorsFile(folder + "/golden.safetensors").tensor("embeddings");
  for (std::string mode : {"eager", "default", "reduce-overhead"}) {
    auto result = run_command("embed --model " + folder + " --inputs " + folder + "/texts.txt --batch 3 --outputs '" +
                              out + "' --mode " + mode);
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out, "embeddings f32[4, 8]\n");
    EXPECT_LT((SafeTensorsFile(out).tensor("embeddings") - want).abs().max().item<double>(), 1e-5) << mode;
  }
  auto result = run_command("embed --model " + folder + " 'a ship'");
  ASSERT_EQ(result.code, 0) << result.err;
  auto vector = json::parse(result.out).get<std::vector<double>>();
  ASSERT_EQ(vector.size(), 8u);
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(vector[size_t(i)], want[1][i].item<double>(), 1e-5);
  EXPECT_TRUE(contains(run_command("embed --model " + fixture("llama-gqa") + " x").err, "no encoder of texts"));
}

TEST(CliForward, GivesTheRecordedOutputs) {
  Scratch scratch;
  struct Case {
    const char *model, *output;
  };
  for (auto& c :
       {Case{"bert", "last_hidden_state"}, Case{"vit", "logits"}, Case{"llama-gqa", "logits"}, Case{"t5", "logits"}})
    for (std::string mode : {"eager", "default", "reduce-overhead"}) {
      std::string out = (scratch.path / "out.safetensors").string();
      auto result = run_command("forward --model " + fixture(c.model) + " --inputs " + fixture(c.model) +
                                "/golden.safetensors --outputs '" + out + "' --mode " + mode);
      ASSERT_EQ(result.code, 0) << result.err;
      SafeTensorsFile golden(fixture(c.model) + "/golden.safetensors");
      Tensor got = SafeTensorsFile(out).tensor(c.output), want = golden.tensor(c.output);
      if (std::string(c.output) == "last_hidden_state") {
        Tensor seen = ne(golden.tensor("attention_mask"), 0).unsqueeze(-1).to(kFloat32);
        got = got * seen;
        want = want * seen;
      }
      auto norm = [](const Tensor& t) { return std::sqrt((t * t).sum().item<double>()); };
      EXPECT_LT(norm(got - want) / norm(want), 1e-4) << c.model << " " << mode;
    }
}

TEST(CliExplain, NamesGraphsAndKernels) {
  auto result = run_command("explain --model " + fixture("llama-gqa") + " --prompt-length 10");
  ASSERT_EQ(result.code, 0) << result.err;
  for (auto part : {"prefill", "decode", "guard", "scaled_dot_product_attention", "memory:"})
    EXPECT_TRUE(contains(result.out, part)) << part;
  auto report = json::parse(run_command("explain --model " + fixture("vit") + " --json").out);
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0]["name"], "forward");
  EXPECT_EQ(report[0]["programs"].size(), 1u);
}

TEST(CliExplain, WritesAPage) {
  Scratch scratch;
  std::string page = (scratch.path / "page.html").string();
  auto result = run_command("explain --model " + fixture("llama-gqa") + " --prompt-length 10 --html '" + page + "'");
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "wrote " + page)) << result.out;
  EXPECT_FALSE(contains(result.out, "guard"));
  std::ifstream file(page);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (auto part : {"<!doctype html>", "prefill", "decode", "scaled_dot_product_attention", "</html>"})
    EXPECT_TRUE(contains(text, part)) << part;
  auto wrong = run_command("explain --html '" + (scratch.path / "no" / "page.html").string() + "'");
  EXPECT_EQ(wrong.code, 1);
  EXPECT_TRUE(contains(wrong.err, "page.html' cannot be written")) << wrong.err;
}

TEST(CliExplain, PrintsEveryKernelAtEveryStage) {
  const std::string command = "explain --model " + fixture("llama-gqa") + " --prompt-length 10 --stage ";
  auto all = run_command(command + "all");
  ASSERT_EQ(all.code, 0) << all.err;
  for (auto part : {"=== k_", "--- loops\nkernel ", "--- schedule\n", "--- code\nextern \"C\" void k_"})
    EXPECT_TRUE(contains(all.out, part)) << part;
  auto loops = run_command(command + "loops");
  EXPECT_TRUE(contains(loops.out, "row value 0 = sum")) << loops.out;
  EXPECT_FALSE(contains(loops.out, "extern"));
}

TEST(CliInfo, TellsWhatACheckpointNeeds) {
  auto report = json::parse(run_command("info " SINTER_SOURCE_DIR "/assets/whale-5m --json").out);
  EXPECT_EQ(report["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(report["parameters"], 5246208);
  EXPECT_EQ(report["memory"]["bf16"]["weights_bytes"], 2 * 5246208);
  // Six layers with four heads of 32, keys and values.
  EXPECT_EQ(report["memory"]["f32"]["cache_bytes"]["512"], 4 * 512 * 6 * 2 * 4 * 32);
  EXPECT_FALSE(json::parse(run_command("info --json " + fixture("bert")).out).contains("max_positions"));
  // As transformers counts them; Falcon has names of its own for its two key heads.
  for (auto& [name, parameters] : {std::pair{"falcon-grouped", 18752}, {"mixtral", 9424}, {"t5", 10976}})
    EXPECT_EQ(json::parse(run_command("info --json " + fixture(name)).out)["parameters"], parameters) << name;
  report = json::parse(run_command("info --json " + fixture("falcon-grouped")).out);
  EXPECT_EQ(report["memory"]["f32"]["cache_bytes"]["128"], 4 * 128 * 2 * 2 * 2 * 8);
  auto text = run_command("info " + fixture("gpt2"));
  for (auto part : {"GPT2LMHeadModel", "parameters", "186944", "f16"})
    EXPECT_TRUE(contains(text.out, part)) << text.out;
}

TEST(CliDemo, ComparesEveryMode) {
  auto result = run_command("demo --max-new-tokens 8 --repeat 1 --threads 1");
  ASSERT_EQ(result.code, 0) << result.err;
  for (auto part : {"--- eager", "--- reduce-overhead", "--- max-autotune-no-cudagraphs", "tokens/s", "first token",
                    "compile", "5 of 5 modes gave the same 8 tokens", "1 threads"})
    EXPECT_TRUE(contains(result.out, part)) << part << " is missing in\n" << result.out;
  EXPECT_EQ(result.err, "") << "progress belongs on a terminal only";
}

TEST(CliModels, WrongCommandLinesEndWithTwo) {
  struct Case {
    const char *arguments, *message;
  };
  for (auto& c :
       {Case{"generate", "--prompt"}, Case{"generate --prompt a --prompt-ids 1", "--prompt"},
        Case{"generate --prompt a --mode fast", "reduce-overhead"}, Case{"generate --prompt a --device tpu", "tpu"},
        Case{"generate --prompt a --dtype f8", "--dtype"}, Case{"generate --prompt-ids 1,x", "--prompt-ids"},
        Case{"generate --prompt a --top-p 1.5", "--top-p"},
        Case{"generate --prompt a --max-new-tokens -1", "--max-new-tokens"}, Case{"forward --inputs x", "--outputs"},
        Case{"explain --mode eager", "eager"}, Case{"chat --threads 0", "--threads"}}) {
    auto result = run_command(c.arguments);
    EXPECT_EQ(result.code, 2) << c.arguments << ": " << result.err;
    EXPECT_TRUE(contains(result.err, c.message)) << c.arguments << ": " << result.err;
    EXPECT_EQ(result.out, "") << c.arguments;
  }
}

TEST(CliModels, WrongInputsEndWithOneAndAMessage) {
  Scratch scratch;
  fs::path unknown = scratch.path / "unknown", truncated = scratch.model("llama-gqa"), damaged = scratch.model("gpt2");
  fs::create_directories(unknown);
  std::ofstream(unknown / "config.json") << R"({"architectures": ["MambaForCausalLM"], "model_type": "mamba"})";
  fs::resize_file(truncated / "model.safetensors", fs::file_size(truncated / "model.safetensors") / 2);
  std::ofstream(damaged / "config.json") << "{\"architectures\": ";
  save_safetensors((scratch.path / "empty.safetensors").string(), {{"nothing", zeros({1})}});
  struct Case {
    std::string arguments;
    const char* message;
  };
  std::string in = " --inputs '" + (scratch.path / "empty.safetensors").string() + "' --outputs /dev/null";
  for (auto& c :
       {Case{"generate --prompt a --model /no/such/folder", "/no/such/folder"},
        Case{"generate --prompt-ids 1 --model " + unknown.string(), "LlamaForCausalLM"},
        Case{"info " + unknown.string(), "MambaForCausalLM"},
        Case{"generate --prompt-ids 1 --model " + truncated.string(), "model.safetensors"},
        Case{"info " + truncated.string(), "model.safetensors"},
        Case{"generate --prompt-ids 1 --model " + damaged.string(), "config.json"},
        Case{"generate --prompt a --model " + fixture("llama-gqa"), "tokenizer.json"},
        Case{"generate --prompt-ids 1 --model " + fixture("bert"), "does not generate"},
        Case{"chat --model " + fixture("llama-gqa"), "tokenizer.json"}, Case{"generate --prompt-ids 2048", "2048"},
        Case{"generate --prompt ''", "empty"}, Case{"generate --prompt a --cache-length 4096", "4096"},
        Case{"generate --prompt a --device cuda:63", "cuda:63"},
        Case{"forward --model " + fixture("bert") + in, "input_ids"},
        Case{"forward --model " + fixture("bert") + " --inputs /none --outputs /dev/null", "/none"}}) {
    auto result = run_command(c.arguments);
    EXPECT_EQ(result.code, 1) << c.arguments << ": " << result.err;
    EXPECT_EQ(result.err.rfind("sinter: ", 0), 0u) << c.arguments << ": " << result.err;
    EXPECT_TRUE(contains(result.err, c.message)) << c.arguments << ": " << result.err;
    EXPECT_EQ(result.out, "") << c.arguments;
  }
}

TEST(CliModels, HelpShowsExamples) {
  for (std::string command : {"generate", "chat", "embed", "transcribe", "forward", "explain", "info", "demo"}) {
    auto help = run_command(command + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(contains(help.out, "Example")) << help.out;
    EXPECT_TRUE(contains(help.out, "sinter " + command)) << help.out;
  }
}

}  // namespace
}  // namespace sinter
