// `sinter demo`: the bundled model in every mode, and what compile() is worth.
#include <algorithm>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/cli/text_stream.h"
#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::cli {

namespace {

constexpr const char* kPrompt = "Call me Ishmael.";

struct Flags : ModelOptions {
  std::string prompt = kPrompt;
  int64_t max_new_tokens = 64;
  int repeat = 3;
  bool json = false;
};

struct Run {
  std::string mode, text;
  std::vector<int64_t> ids;
  double first_call_s = 0, compile_s = 0;              // the first call's prefill, and compiling in all of it
  double tokens_per_s = 0, time_to_first_token_s = 0;  // the best of the later calls
};

Run measure(const std::string& mode, const std::shared_ptr<models::CausalLM>& model, const Tokenizer& tokenizer,
            const Flags& flags) {
  TextGenerator generator(model,
                          {.mode = mode == "eager" ? Mode::kDefault : parse_mode(mode), .eager = mode == "eager"});
  GenerateOptions options{.max_new_tokens = flags.max_new_tokens, .tokenizer = &tokenizer};
  auto prompt = tokenizer.encode(flags.prompt);
  TextStream stream(flags.prompt);
  if (!flags.json) {
    std::cout << "--- " << mode << std::endl;
    options.on_text = [&](int64_t, const std::string& text) { stream.write(text); };
  }
  Generation first = generator.generate(prompt, options);
  if (!flags.json) {
    stream.finish();
    std::cout << "\n";
  }
  Run run{mode, first.text, first.ids, generator.times().prefill_s, generator.times().compile_s()};
  options.on_text = {};
  for (int i = 0; i < flags.repeat; ++i) {
    generator.generate(prompt, options);
    auto& times = generator.times();
    run.tokens_per_s = std::max(run.tokens_per_s, times.tokens_per_s());
    run.time_to_first_token_s = i == 0 ? times.prefill_s : std::min(run.time_to_first_token_s, times.prefill_s);
  }
  return run;
}

void print_json(const std::vector<Run>& runs) {
  auto list = nlohmann::json::array();
  for (auto& run : runs)
    list.push_back({{"mode", run.mode},
                    {"ids", run.ids},
                    {"text", run.text},
                    {"tokens_per_s", run.tokens_per_s},
                    {"time_to_first_token_s", run.time_to_first_token_s},
                    {"first_call_s", run.first_call_s},
                    {"compile_s", run.compile_s},
                    {"speedup", run.tokens_per_s / runs[0].tokens_per_s}});
  std::cout << list.dump(2) << "\n";
}

void print_table(const std::vector<Run>& runs, const Flags& flags) {
  Table table({"mode", "tokens/s", "against eager", "first token", "first call", "compile"});
  size_t same = 0;
  for (auto& run : runs) {
    table.row(run.mode, fixed(run.tokens_per_s, 0), fixed(run.tokens_per_s / runs[0].tokens_per_s, 2) + "x",
              fixed(run.time_to_first_token_s * 1e3, 2) + " ms", fixed(run.first_call_s * 1e3, 0) + " ms",
              fixed(run.compile_s * 1e3, 0) + " ms");
    same += run.ids == runs[0].ids;
  }
  std::cout
      << table.text()
      << format(
             "{} of {} modes gave the same {} tokens; {} threads, {}.\n"
             "tokens/s, first token: the best of {} calls that compiled nothing. first call: to the first token,\n"
             "compiling or loading kernels included. compile: of prefill and decode step together.\n",
             same, runs.size(), runs[0].ids.size(), num_threads(), runtime::host_target().name, flags.repeat);
}

}  // namespace

void add_demo(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  flags->dtype = "f32";
  auto* command = app.add_subcommand("demo", "Generate with the bundled model in every mode, and compare their speed");
  command->add_option("--prompt", flags->prompt, "What to continue")->capture_default_str();
  command->add_option("--max-new-tokens", flags->max_new_tokens, "Tokens in each mode")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  command
      ->add_option("--repeat", flags->repeat, "Measured calls in each mode, after one that is shown and not measured")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--threads", flags->threads, "Threads to compute with (default: SINTER_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", flags->json, "Print a JSON list of rows instead of text and table");
  command->footer(
      "Example:\n"
      "  sinter demo --prompt 'The white whale' --max-new-tokens 100\n"
      "The likeliest token is taken at each step, in f32, so that every mode should write the same text.");
  command->callback([flags] {
    auto tokenizer = Tokenizer::from_pretrained(flags->folder());
    auto model = models::causal_lm(flags->load());
    std::vector<Run> runs;
    for (auto& mode : mode_names()) runs.push_back(measure(mode, model, tokenizer, *flags));
    flags->json ? print_json(runs) : print_table(runs, *flags);
  });
}

}  // namespace sinter::cli
