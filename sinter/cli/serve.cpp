// `sinter serve`: a model behind the OpenAI API.
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/io/config.h"
#include "sinter/serve/http.h"

namespace sinter::cli {

namespace {

struct Flags : ModelOptions {
  std::string name, key_file, chat_template;
  serve::HttpOptions http;
  serve::EngineOptions engine;
  std::vector<std::string> arms;
  int64_t cache_mb = 0;
  bool no_prefix_cache = false, quiet = false;
};

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  check(bool(file), "serve: '{}' cannot be read", path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) out.push_back(line);
  return out;
}

// The checkpoint's tokenizer, with another template where one is given.
Tokenizer tokenizer_of(const Flags& flags) {
  if (flags.chat_template.empty()) return Tokenizer::from_pretrained(flags.folder());
  CheckpointFiles files = CheckpointFiles(flags.folder()).in_memory();
  auto all = files.files();
  std::ifstream file(flags.chat_template);
  check(bool(file), "serve: '{}' cannot be read", flags.chat_template);
  all["chat_template.jinja"] = std::string(std::istreambuf_iterator<char>(file), {});
  return Tokenizer::from_pretrained(CheckpointFiles(std::move(all), files.name()));
}

// Where a request does not say, as the checkpoint recommends, else as OpenAI has it.
SamplingOptions sampling_of(const GenerationConfig& config) {
  SamplingOptions out{.temperature = 1};
  out.repetition_penalty = config.repetition_penalty.value_or(1);
  if (!config.do_sample) return out;
  out.temperature = config.temperature.value_or(1);
  out.top_k = config.top_k.value_or(0);
  out.top_p = config.top_p.value_or(1);
  out.min_p = config.min_p.value_or(0);
  return out;
}

// A connection is a descriptor, and the usual limit is there for old programs' sake.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// How an arm is run: by the name of a mode, of an element type or of smaller weights.
ModelOptions options_of_arm(const Flags& flags, const std::string& name) {
  ModelOptions out = flags;
  const auto modes = mode_names();
  if (name == "compiled")
    out.mode = "default";
  else if (std::find(modes.begin(), modes.end(), name) != modes.end())
    out.mode = name;
  else if (name == "bf16" || name == "f16" || name == "f32")
    out.dtype = name;
  else if (name == "int8" || name == "int4")
    out.quantize = name;
  else
    throw_error(format(
        "serve: there is no arm '{}'; there are compiled, the modes of --mode, bf16, f16, f32, int8 and int4", name));
  return out;
}

// Listens at once; what is asked before all is made ready is told to wait.
void serve_until_told(Flags& flags, serve::Api& api, const std::function<void()>& make_ready) {
  if (!flags.key_file.empty())
    for (auto& key : lines_of(flags.key_file)) flags.http.keys.push_back(key);
  if (!flags.quiet) flags.http.log = [](const std::string& line) { std::cerr << line + "\n" << std::flush; };
  serve::HttpServer server(api, flags.http);
  std::exception_ptr failed;
  std::thread start([&] {
    try {
      make_ready();
      std::cout << format("sinter: {} is ready at http://{}:{}/v1", flags.name, flags.http.host, server.port())
                << std::endl;
    } catch (...) {
      failed = std::current_exception();
      server.stop();
    }
  });
  server.run();
  start.join();
  if (failed) std::rethrow_exception(failed);
}

// As sentence-transformers lays out what embeds.
bool embeds(const Flags& flags) { return CheckpointFiles(flags.folder()).read("modules.json").has_value(); }

void run_embedder(Flags& flags, Tokenizer tokenizer) {
  check(flags.arms.empty(), "serve: a model that embeds is not compared; leave out --ab");
  flags.set_threads();
  models::FromOptions from;
  if (!flags.dtype.empty()) from.dtype = parse_dtype(flags.dtype);
  from.device = parse_device(flags.device);
  serve::Embedder embedder(models::sentence_encoder(flags.folder(), from), std::move(tokenizer),
                           {.mode = flags.compile_mode(), .eager = flags.eager(), .model_name = flags.name});
  serve::Api api(embedder,
                 {.model_name = flags.name, .version = SINTER_VERSION, .created = int64_t(std::time(nullptr))});
  serve_until_told(flags, api, [&] { embedder.start(); });
}

void run_serve(Flags flags) {
  allow_many_descriptors();
  check(!flags.is_package(), "serve: '{}' is a package; the server takes a checkpoint's folder", flags.model);
  const std::string folder = flags.folder();
  Tokenizer tokenizer = tokenizer_of(flags);
  if (flags.name.empty()) {
    const std::string plain = folder.substr(0, folder.find_last_not_of('/') + 1);
    flags.name = plain.substr(plain.find_last_of('/') + 1);
  }
  if (embeds(flags)) return run_embedder(flags, std::move(tokenizer));
  const auto config = GenerationConfig::read(folder);
  serve::EngineOptions& options = flags.engine;
  options.prefix_cache = !flags.no_prefix_cache;
  options.model_name = flags.name;
  options.end_ids = config.eos_token_ids;
  if (options.end_ids.empty() && tokenizer.eos_id()) options.end_ids.push_back(*tokenizer.eos_id());

  // Arms with the same weights share them; each has a cache of its own.
  std::vector<std::pair<std::string, std::shared_ptr<models::CausalLM>>> models;
  std::vector<std::unique_ptr<serve::Engine>> engines;
  std::vector<serve::Arm> arms;
  auto add_arm = [&](const std::string& name, double share, const ModelOptions& how) {
    const std::string weights = how.dtype + " " + how.quantize;
    auto known = std::ranges::find(models, weights, [](auto& each) { return each.first; });
    if (known == models.end()) known = models.insert(known, {weights, models::causal_lm(how.load())});
    const auto& model = known->second;
    const models::ModelConfig& sizes = model->config();
    serve::EngineOptions own = options;
    own.decoder.mode = how.compile_mode();
    own.decoder.eager = how.eager();
    own.arm = flags.arms.empty() ? "" : name;
    if (flags.cache_mb > 0) {
      const int64_t row =
          2 * sizes.layers * sizes.kv_heads * sizes.head_dim * item_size(model->parameters().at(0).dtype());
      own.decoder.pages = (flags.cache_mb << 20) / (row * own.decoder.page);
    }
    engines.push_back(std::make_unique<serve::Engine>(model, &tokenizer, own));
    arms.push_back({name, share, engines.back().get()});
  };
  if (flags.arms.size() > 1) options.turns = std::make_shared<serve::Turns>();
  for (auto& text : flags.arms) {
    auto [name, share] = serve::parse_arm(text);
    add_arm(name, share, options_of_arm(flags, name));
  }
  if (flags.arms.empty()) add_arm("all", 1, flags);
  serve::Api api(serve::Arms(std::move(arms)), {.model_name = flags.name,
                                                .version = SINTER_VERSION,
                                                .sampling = sampling_of(config),
                                                .created = int64_t(std::time(nullptr))});
  serve_until_told(flags, api, [&] {
    for (auto& engine : engines) engine->start();
  });
}

}  // namespace

void add_serve(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("serve", "Answer over HTTP, as OpenAI's API does");
  flags->add_to(*command);
  command->add_option("--host", flags->http.host, "Address to listen at; 0.0.0.0: reachable from other machines")
      ->capture_default_str();
  command->add_option("--port", flags->http.port, "Port to listen at; 0: any that is free")->capture_default_str();
  command->add_option("--name", flags->name, "What clients call the model (default: the folder's name)");
  command->add_option("--api-key", flags->http.keys, "A key that calls need; may be given several times")
      ->allow_extra_args(false);
  command->add_option("--api-key-file", flags->key_file, "A file with a key a line");
  command->add_option("--cors-origins", flags->http.origins, "Whose pages in a browser may call; *: all");
  command->add_option("--chat-template", flags->chat_template, "A file with the Jinja template of conversations");
  command
      ->add_option("--max-length", flags->engine.decoder.max_length,
                   "Tokens that prompt and answer may have together (default: what the model allows, at most 2048)")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--rows", flags->engine.decoder.rows,
                   "Sizes of batches; the largest is how many texts are under way at once")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("--chunks", flags->engine.decoder.chunks, "Sizes of the pieces in which prompts are computed")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--step-tokens", flags->engine.step_tokens,
                   "Tokens computed between two tokens of a text, its own and prompts'")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--cache-mb", flags->cache_mb, "Memory for keys and values (default: all texts at their longest)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--no-prefix-cache", flags->no_prefix_cache, "Compute every prompt from its beginning");
  command->add_option("--max-queued", flags->engine.most_queued, "Texts that may wait; beyond that the answer is 429")
      ->capture_default_str();
  command->add_option("--max-queued-tokens", flags->engine.most_queued_tokens, "Tokens of prompts that may wait")
      ->capture_default_str();
  command->add_option("--shutdown-timeout", flags->http.drain_s, "Seconds that answers have to end after SIGTERM")
      ->capture_default_str();
  command
      ->add_option(
          "--ab", flags->arms,
          "Compare ways to run the model under the same traffic: names with shares, compiled:90,eager:10; of compiled, "
          "the modes of --mode, bf16, f16, f32, int8, int4")
      ->delimiter(',');
  command->add_flag("--quiet", flags->quiet, "No line for each call on the standard error");
  command->footer(
      "Examples:\n"
      "  sinter serve --port 8000\n"
      "  sinter serve --model ~/models/llama --dtype bf16 --api-key-file keys --host 0.0.0.0\n"
      "  curl localhost:8000/v1/completions -H 'Content-Type: application/json' -d '{\"prompt\": \"Call me\"}'\n"
      "  sinter serve --ab compiled:90,eager:10      then: curl localhost:8000/ab\n"
      "Everything is compiled before /health says 200. SIGTERM lets answers end, a second one does not.\n"
      "There is no TLS: put a proxy in front of what other machines can reach.");
  command->callback([flags] { run_serve(*flags); });
}

}  // namespace sinter::cli
