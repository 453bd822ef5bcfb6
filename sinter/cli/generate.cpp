// `sinter generate`: a prompt in, text out as it comes.
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/cli/text_stream.h"

namespace sinter::cli {

namespace {

struct Flags : TextOptions {
  std::string prompt;
  std::vector<int64_t> prompt_ids;
  bool print_ids = false, json = false;
};

void print_json(const Generation& result, const GenerateTimes& times, size_t prompt_tokens) {
  nlohmann::json report = {{"ids", result.ids},
                           {"text", result.text},
                           {"tokens_per_s", times.tokens_per_s()},
                           {"time_to_first_token_s", times.prefill_s},
                           {"compile_s", times.compile_s()},
                           {"prompt_tokens", prompt_tokens},
                           {"finish", to_string(result.finish)}};
  std::cout << report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void run_generate(const Flags& flags) {
  TextModel model(flags);
  auto prompt = flags.prompt_ids.empty() ? model.text_tokenizer().encode(flags.prompt) : flags.prompt_ids;
  const size_t prompt_tokens = prompt.size();
  prompt = model.begin(prompt);
  GenerateOptions options = model.options;
  if (flags.json) {
    auto result = model.generator->generate(prompt, options);
    print_json(result, model.generator->times(), prompt_tokens);
    return;
  }
  TextStream stream;
  // Without a tokenizer ids are all there is.
  if (flags.print_ids || !model.tokenizer)
    options.on_token = [&, first = true](int64_t, int64_t id) mutable {
      stream.write((first ? "" : ",") + std::to_string(id));
      first = false;
      return true;
    };
  else
    options.on_text = [&](int64_t, const std::string& text) { stream.write(text); };
  auto result = model.generator->generate(prompt, options);
  stream.finish();
  std::cerr << speed_line(int64_t(result.ids.size()), model.generator->times()) << "\n";
}

}  // namespace

void add_generate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command =
      app.add_subcommand("generate", "Continue a text with a language model, or answer it with an encoder-decoder");
  auto* prompt = command->add_option_group("prompt", "What to continue");
  prompt->add_option("--prompt", flags->prompt, "Text, which the checkpoint's tokenizer turns into tokens");
  prompt->add_option("--prompt-ids", flags->prompt_ids, "Tokens as numbers: 1,2,3")->delimiter(',');
  prompt->require_option(1);
  flags->add_to(*command);
  command->add_flag("--print-ids", flags->print_ids, "Print the new tokens as numbers instead of text");
  command->add_flag("--json", flags->json, "Print one JSON object at the end and nothing else");
  command->footer(
      "Examples:\n"
      "  sinter generate --prompt 'Call me Ishmael.'\n"
      "  sinter generate --prompt 'The whale' --temperature 0.8 --top-p 0.95 --seed 7 --stop Ahab\n"
      "  sinter generate --model ~/models/llama --dtype bf16 --mode reduce-overhead --prompt 'Once' --json\n"
      "The text goes to the standard output as it comes; the last line, on the standard error, tells the speed:\n"
      "tokens/s of the steps that compiled nothing, the time to the first token (compiling included), and how long\n"
      "kernels were compiled or loaded. Text ends before a --stop string; the ids include the token that completed "
      "it.\n"
      "Where the checkpoint's generation_config.json asks for sampling, its settings are the defaults.");
  command->callback([flags] { run_generate(*flags); });
}

}  // namespace sinter::cli
