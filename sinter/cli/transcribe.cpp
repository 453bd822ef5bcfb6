// `sinter transcribe`: a sound in, what was said out.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/cli/text_stream.h"
#include "sinter/data/audio.h"
#include "sinter/generate/source_reader.h"
#include "sinter/ops/view.h"

namespace sinter::cli {

namespace {

struct Flags : ModelOptions {
  std::string file, language, task = "transcribe";
  std::optional<int64_t> max_new_tokens;
  bool print_ids = false, json = false;
};

// A model that hears, and how its checkpoint wants it to be asked.
class Listener {
 public:
  explicit Listener(const Flags& flags)
      : flags_(flags),
        files_(flags.folder()),
        config_(GenerationConfig::read(files_)),
        features_(data::LogMelOptions::read(files_)) {
    if (files_.read("tokenizer.json")) tokenizer_ = Tokenizer::from_pretrained(files_);
    check(tokenizer_.has_value() || flags.print_ids, "'{}' has no tokenizer.json; --print-ids prints tokens as numbers",
          files_.name());
    check(config_.decoder_start_token_id.has_value(), "'{}' does not say with which token a text begins",
          files_.name());
    auto model = models::encoder_decoder(flags.load());
    GeneratorOptions how{.mode = flags.compile_mode(), .eager = flags.eager()};
    reader_.emplace(model, how);
    generator_.emplace(model, how);
    if (auto text = files_.read("generation_config.json"))
      asked_ = ConfigFile::parse(*text, files_.path("generation_config.json"));
  }

  Tensor samples_of(const std::string& file) const {
    data::Audio audio = data::read_wav(file);
    check(audio.rate == features_.options().rate,
          "transcribe: '{}' has {} samples a second, the model hears {}; convert it first: ffmpeg -i {} -ar {} -ac 1 "
          "out.wav",
          file, audio.rate, features_.options().rate, file, features_.options().rate);
    check(audio.samples.numel() > 0, "transcribe: '{}' is empty", file);
    return audio.mono();
  }
  int64_t piece() const { return features_.options().samples; }

  // What was said in no more than a piece.
  Generation hear(const Tensor& samples, const std::function<void(const std::string&)>& on_text) {
    GenerateOptions options;
    options.source = reader_->read_features(features_(samples));
    options.max_new_tokens = flags_.max_new_tokens.value_or(generator_->cache_length());
    options.stop_ids = config_.eos_token_ids;
    options.sampling.suppress_ids = known(config_.suppress_tokens);
    options.sampling.suppress_first_ids = known(config_.begin_suppress_tokens);
    if (tokenizer_) options.tokenizer = &*tokenizer_;
    if (on_text && tokenizer_) options.on_text = [&](int64_t, const std::string& text) { on_text(text); };
    return generator_->generate(prompt(options.source), options);
  }

 private:
  // Checkpoints write -1 for none, and the defaults of a larger vocabulary.
  std::vector<int64_t> known(std::vector<int64_t> ids) const {
    int64_t vocab = generator_->model()->config().vocab_size;
    std::erase_if(ids, [&](int64_t id) { return id < 0 || id >= vocab; });
    return ids;
  }

  // What a text begins with: the language and the task where the model knows several.
  std::vector<int64_t> prompt(const models::Source& source) {
    std::vector<int64_t> out = {*config_.decoder_start_token_id};
    bool several = asked_ && asked_->boolean("is_multilingual", false);
    check(several || flags_.language.empty(), "'{}' knows one language alone; leave out --language", files_.name());
    check(several || flags_.task == "transcribe", "'{}' does not translate; leave out --task", files_.name());
    if (several) {
      auto languages = asked_->object("lang_to_id"), tasks = asked_->object("task_to_id");
      check(languages && tasks && tasks->contains(flags_.task), "'{}' does not say its languages and tasks",
            asked_->name());
      out.push_back(flags_.language.empty() ? detected(out, *languages, source) : named(*languages));
      out.push_back(tasks->integer(flags_.task));
    }
    if (asked_ && asked_->contains("no_timestamps_token_id")) out.push_back(asked_->integer("no_timestamps_token_id"));
    return out;
  }
  int64_t named(const ConfigFile& languages) const {
    std::string known, token = "<|" + flags_.language + "|>";
    for (auto& key : languages.keys()) known += (known.empty() ? "" : ", ") + key;
    check(languages.contains(token), "transcribe: '{}' knows no language '{}'; it knows {}", files_.name(),
          flags_.language, known);
    return languages.integer(token);
  }
  // The likeliest of the languages.
  int64_t detected(const std::vector<int64_t>& begin, const ConfigFile& languages, const models::Source& source) {
    std::vector<int64_t> known;
    for (auto& key : languages.keys()) known.push_back(languages.integer(key));
    GenerateOptions options{.max_new_tokens = 1, .source = source};
    for (int64_t id = 0; id < generator_->model()->config().vocab_size; ++id)
      if (std::find(known.begin(), known.end(), id) == known.end()) options.sampling.suppress_ids.push_back(id);
    return generator_->generate(begin, options).ids.at(0);
  }

  const Flags& flags_;
  CheckpointFiles files_;
  GenerationConfig config_;
  data::LogMel features_;
  std::optional<ConfigFile> asked_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<SourceReader> reader_;
  std::optional<TextGenerator> generator_;
};

void run_transcribe(const Flags& flags) {
  check(!flags.model.empty() && !flags.is_package(),
        "transcribe: --model names the folder of a Whisper model, or a hub id");
  Listener listener(flags);
  Tensor samples = listener.samples_of(flags.file);
  std::vector<int64_t> ids;
  std::string text;
  TextStream stream;
  bool streams = !flags.json && !flags.print_ids;
  for (int64_t at = 0, end = samples.numel(); at < end; at += listener.piece()) {
    auto heard =
        listener.hear(samples.slice(0, at, std::min(at + listener.piece(), end)), [&](const std::string& piece) {
          if (streams) stream.write(piece);
        });
    ids.insert(ids.end(), heard.ids.begin(), heard.ids.end());
    text += heard.text;
  }
  if (flags.json) {
    nlohmann::json report = {{"ids", ids}, {"text", text}};
    std::cout << report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  if (flags.print_ids)
    for (size_t i = 0; i < ids.size(); ++i) stream.write((i ? "," : "") + std::to_string(ids[i]));
  stream.finish();
}

}  // namespace

void add_transcribe(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("transcribe", "Write down what is said in a sound");
  flags->add_to(*command);
  command->add_option("FILE", flags->file, "A WAV file of the rate that the model hears, 16000 samples a second")
      ->required();
  command->add_option("--language", flags->language, "What is spoken: en, de, ... (default: the model tells)");
  command->add_option("--task", flags->task, "translate: into English")
      ->check(CLI::IsMember({"transcribe", "translate"}))
      ->capture_default_str();
  command
      ->add_option("--max-new-tokens", flags->max_new_tokens,
                   "Tokens of each piece at most (default: what the model allows)")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--print-ids", flags->print_ids, "Print tokens as numbers instead of text");
  command->add_flag("--json", flags->json, "Print one JSON object at the end and nothing else");
  command->footer(
      "Examples:\n"
      "  sinter transcribe --model openai/whisper-tiny speech.wav\n"
      "  sinter transcribe --model ~/models/whisper-small --language de --task translate speech.wav\n"
      "Sounds longer than the model hears at once (30 seconds) are cut into pieces of that length, each by itself; a "
      "word at a\n"
      "cut may be lost. Tokens are the likeliest ones, without timestamps.");
  command->callback([flags] { run_transcribe(*flags); });
}

}  // namespace sinter::cli
