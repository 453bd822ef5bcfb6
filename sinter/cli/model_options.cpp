#include "sinter/cli/model_options.h"

#include <filesystem>

#include <CLI/CLI.hpp>

#include "sinter/base/dynamic_library.h"
#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/io/checkpoint.h"
#include "sinter/models/lora.h"
#include "sinter/package/package_file.h"
#include "sinter/runtime/cpu/memory.h"

namespace sinter::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kBundledModel = "whale-5m";

// Beside the command: <prefix>/bin and <prefix>/share, in the build tree as where it is installed.
std::string bundled_folder() {
  fs::path folder = fs::path(program_path()).parent_path() / SINTER_MODELS_DIR / kBundledModel;
  check(fs::exists(folder / "config.json"), "the bundled model is not at '{}'; name another with --model",
        folder.lexically_normal().string());
  return folder.lexically_normal().string();
}

// An Error of ours as a wrong command line.
CLI::Validator device_validator() {
  return CLI::Validator(
      [](std::string& text) {
        try {
          parse_device(text);
          return std::string();
        } catch (const Error& error) {
          return error.message();
        }
      },
      "cpu|cuda[:N]|hip[:N]");
}

}  // namespace

std::vector<std::string> mode_names() {
  std::vector<std::string> names = {"eager"};
  for (Mode mode : {Mode::kDefault, Mode::kReduceOverhead, Mode::kMaxAutotune, Mode::kMaxAutotuneNoCudagraphs})
    names.push_back(to_string(mode));
  return names;
}

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("--model", model,
                     "Folder with config.json and safetensors, a hub id in the local Hugging Face cache, a GGUF file, or a "
                     "package; "
                     "forward and explain also take a file of torch.export.save (.pt2) "
                     "(default: the bundled whale-5m)");
  command.add_option("--device", device, "Where it runs")->check(device_validator())->capture_default_str();
  command.add_option("--dtype", dtype, "Element type of the weights (default: the checkpoint's)")
      ->check(CLI::IsMember({"bf16", "f16", "f32"}));
  command
      .add_option("--quantize", quantize, "What the weights of linear layers become: int8, fp8, or int4 in groups (default: they stay)")
      ->check(CLI::IsMember({"int8", "int4", "fp8"}));
  command.add_option("--mode", mode, "eager: op by op; the others are the modes of compile()")
      ->check(CLI::IsMember(mode_names()))
      ->capture_default_str();
  command.add_option("--threads", threads, "Threads to compute with (default: SINTER_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 1024));
}

std::string ModelOptions::folder() const { return model.empty() ? bundled_folder() : find_checkpoint(model); }

bool ModelOptions::is_package() const {
  if (model.empty() || !PackageFile::is_package(model)) return false;
  check(device == "cpu" && dtype.empty() && quantize.empty() && mode == "default" && adapter.empty(),
        "'{}' is a package, which has its device, element type, mode and weights; leave out --device, --dtype, --quantize, "
        "--mode and --adapter",
        model);
  return true;
}

void ModelOptions::set_threads() const {
  if (threads) set_num_threads(threads);
}

std::shared_ptr<models::Model> ModelOptions::load() const {
  set_threads();
  std::optional<Progress> bar;
  models::FromOptions from;
  if (!dtype.empty()) from.dtype = parse_dtype(dtype);
  from.device = parse_device(device);
  from.progress = [&](int64_t done, int64_t total) {
    if (!bar) bar.emplace("load", total, "B");
    bar->advance(done - bar->done());
  };
  // An adapter is merged into the weights before they are quantised.
  if (adapter.empty()) from.quantize = quantize;
  auto out = models::from_pretrained(folder(), from);
  if (!adapter.empty()) models::Lora(out, adapter).merge();
  if (!adapter.empty() && !quantize.empty()) models::quantize_(*out, quantize);
  // What weights were before.
  if (!quantize.empty()) empty_cpu_cache();
  return out;
}

void TextOptions::add_to(CLI::App& command) {
  ModelOptions::add_to(command);
  command.add_option("--adapter", adapter, "Folder of a LoRA adapter, as `sinter train` or PEFT writes it");
  command.add_option("--max-new-tokens", max_new_tokens, "Tokens to generate at most (default: 128)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--temperature", temperature, "0: always the likeliest token (the default); 1: as the model has it")
      ->check(CLI::Range(0.0, 1e6));
  command.add_option("--top-k", top_k, "Draw among the likeliest K tokens")->check(CLI::NonNegativeNumber);
  command.add_option("--top-p", top_p, "Draw among the likeliest tokens that together have this probability")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--min-p", min_p, "Draw among tokens with at least this fraction of the likeliest one's probability")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--repetition-penalty", repetition_penalty, "Above 1: tokens that have occurred become less likely")
      ->check(CLI::Range(1e-6, 1e6));
  command.add_option("--seed", seed, "The same seed draws the same tokens")->capture_default_str();
  command.add_option("--stop", stops, "End before this text; may be given several times")->allow_extra_args(false);
  command.add_flag("--ignore-eos", ignore_eos, "Do not end at the model's end token");
  command.add_flag("--warmup", warmup, "Compile for prompts of every length before the first one");
  command
      .add_option("--cache-length", cache_length,
                  "Tokens that prompt and answer may have together (default: what the model allows, at most 2048)")
      ->check(CLI::PositiveNumber);
  add_cache_dtype(command, cache_dtype);
}

void add_cache_dtype(CLI::App& command, std::string& dtype) {
  command.add_option("--cache-dtype", dtype, "Element type of keys and values; int8: codes with a scale a row (default: the weights')")
      ->check(CLI::IsMember({"int8", "bf16", "f16", "f32"}));
}

std::optional<DType> parse_cache_dtype(const std::string& dtype) {
  if (dtype.empty()) return {};
  return dtype == "int8" ? kInt8 : parse_dtype(dtype);
}

GenerateOptions TextOptions::generate_options(const GenerationConfig& config) const {
  GenerateOptions out;
  out.max_new_tokens = max_new_tokens.value_or(config.max_new_tokens.value_or(out.max_new_tokens));
  SamplingOptions& sampling = out.sampling;
  sampling.repetition_penalty = repetition_penalty.value_or(config.repetition_penalty.value_or(1));
  sampling.seed = seed;
  // A filter alone says that tokens shall be drawn.
  bool draws = config.do_sample || top_k || top_p || min_p;
  sampling.temperature = temperature.value_or(draws ? config.temperature.value_or(1) : 0);
  if (sampling.samples()) {
    auto choose = [&](auto given, auto in_config, auto otherwise) {
      return given ? *given : config.do_sample && in_config ? *in_config : otherwise;
    };
    sampling.top_k = choose(top_k, config.top_k, int64_t(0));
    sampling.top_p = choose(top_p, config.top_p, 1.0);
    sampling.min_p = choose(min_p, config.min_p, 0.0);
  }
  if (!ignore_eos) out.stop_ids = config.eos_token_ids;
  out.stop_strings = stops;
  return out;
}

TextModel::TextModel(const TextOptions& flags) {
  if (flags.is_package()) {
    check(flags.cache_length == 0 && flags.cache_dtype.empty(),
          "'{}' is a package, which has its cache; leave out --cache-length and --cache-dtype", flags.model);
    flags.set_threads();
    package = Package::load(flags.model);
  }
  folder = package ? flags.model : flags.folder();
  CheckpointFiles files = package ? package->files() : CheckpointFiles(folder).in_memory();
  auto config = GenerationConfig::read(files);
  options = flags.generate_options(config);
  if (package ? package->has_tokenizer() : files.read("tokenizer.json").has_value()) {
    tokenizer = package ? package->tokenizer() : Tokenizer::from_pretrained(files);
    options.tokenizer = &*tokenizer;
    if (!flags.ignore_eos && options.stop_ids.empty() && tokenizer->eos_id())
      options.stop_ids.push_back(*tokenizer->eos_id());
  }
  if (package) {
    generator = package->shared_generator();
    return;
  }
  GeneratorOptions how;
  how.mode = flags.compile_mode();
  how.eager = flags.eager();
  how.cache_length = flags.cache_length;
  how.cache_dtype = parse_cache_dtype(flags.cache_dtype);
  auto model = flags.load();
  if (auto reads = std::dynamic_pointer_cast<models::EncoderDecoder>(model)) {
    check(!flags.warmup, "{} compiles for what it has read; leave out --warmup", model->config().architecture);
    check(config.decoder_start_token_id.has_value(), "'{}' does not say with which token a text begins", folder);
    first_ids = {*config.decoder_start_token_id};
    if (config.forced_bos_token_id) first_ids.push_back(*config.forced_bos_token_id);
    reader.emplace(reads, how);
    generator = std::make_shared<TextGenerator>(reads, how);
    return;
  }
  generator = std::make_shared<TextGenerator>(models::causal_lm(model), how);
  if (flags.warmup) generator->warmup({.sampling = options.sampling});
}

const Tokenizer& TextModel::text_tokenizer() const {
  check(tokenizer.has_value(), "'{}' has no tokenizer.json; `sinter generate --prompt-ids` takes ids instead of text",
        folder);
  return *tokenizer;
}

std::vector<int64_t> TextModel::begin(const std::vector<int64_t>& prompt) {
  if (!reader) return prompt;
  options.source = reader->read({prompt});
  return first_ids;
}

std::string speed_line(int64_t tokens, const GenerateTimes& times) {
  return format("{} tokens, {} tokens/s, first token after {} s, compiled for {} s", tokens,
                fixed(times.tokens_per_s(), 1), fixed(times.prefill_s, 3), fixed(times.compile_s(), 3));
}

}  // namespace sinter::cli
