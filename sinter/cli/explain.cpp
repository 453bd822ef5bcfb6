// `sinter explain`: what compile() makes of a model.
#include <algorithm>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/capture/explain_html.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/exported.h"
#include "sinter/cli/model_options.h"
#include "sinter/cli/sample_inputs.h"
#include "sinter/cli/stages.h"
#include "sinter/engine/profile.h"
#include "sinter/engine/report.h"

namespace sinter::cli {

namespace {

struct Flags : ModelOptions {
  int64_t prompt_length = 32, batch = 1;
  bool json = false, time = false;
  std::string html;
  std::string stage;  // of the kernels; empty: the report
};

// What its kernels take, once everything is compiled.
void print_times(const Flags& flags, const std::function<void()>& run) {
  if (!flags.time || flags.json) return;
  constexpr int kRuns = 5;
  run();
  Profile profile([&] {
    for (int i = 0; i < kRuns; ++i) run();
  });
  std::cout << "measured, " << kRuns << " runs:\n" << profile.table() << "\n";
}

// Prefill and decode step, as generation runs them.
std::vector<Explanation> explain_generation(const std::shared_ptr<models::CausalLM>& model, const Flags& flags) {
  TextGenerator generator(model, {.mode = flags.compile_mode()});
  std::vector<std::vector<int64_t>> prompts(size_t(flags.batch), std::vector<int64_t>(size_t(flags.prompt_length), 0));
  generator.generate(prompts, {.max_new_tokens = 2});
  print_times(flags, [&] { generator.generate(prompts, {.max_new_tokens = 4}); });
  return generator.explanations();
}

Explanation explain_forward(const std::shared_ptr<models::Model>& model, const Flags& flags) {
  NoGradGuard no_grad;
  NamedTensors inputs = sample_inputs(*model, flags.folder(), flags.batch, flags.prompt_length, false);
  auto run = compile([model](const NamedTensors& in) { return model->run(in); },
                     {.mode = flags.compile_mode(), .name = "forward"});
  print_times(flags, [&] { run(inputs); });
  return compiler::explain(run, inputs);
}

Explanation explain_exported(const Flags& flags) {
  flags.set_threads();
  const Device device = parse_device(flags.device);
  ExportedModel model = load_exported_model(flags.model, device);
  TensorList inputs = model->example_inputs();
  for (auto& input : inputs) input = input.to(device);
  NoGradGuard no_grad;
  auto run = compile(model, {.mode = flags.compile_mode(), .name = "forward"});
  print_times(flags, [&] { run(inputs); });
  return compiler::explain(run, inputs);
}

std::vector<Explanation> explain_model(const Flags& flags) {
  if (is_exported(flags.model)) return {explain_exported(flags)};
  auto model = flags.load();
  if (auto causal = std::dynamic_pointer_cast<models::CausalLM>(model)) return explain_generation(causal, flags);
  return {explain_forward(model, flags)};
}

// Each kernel once, at one stage or all.
void print_kernels(const std::vector<Explanation>& explanations, const std::string& stage) {
  std::vector<KernelStages> printed;
  auto print = [&](const std::vector<std::shared_ptr<const PlanReport>>& reports) {
    for (auto& report : reports)
      for (auto& kernel : report ? report->texts : std::vector<KernelStages>()) {
        if (std::find(printed.begin(), printed.end(), kernel) != printed.end()) continue;
        printed.push_back(kernel);
        std::cout << "=== " << kernel.name << "\n";
        print_stages(stage, kernel);
      }
  };
  for (auto& explanation : explanations)
    for (auto& program : explanation.programs) {
      print(program.reports);
      print(program.backward_reports);
    }
}

void run_explain(const Flags& flags) {
  std::ofstream page;
  if (!flags.html.empty()) {
    page.open(flags.html);
    check(bool(page), "explain: '{}' cannot be written", flags.html);
  }
  const auto explanations = explain_model(flags);
  if (!flags.html.empty()) {
    std::string text = capture::explanation_page(explanations);
    page << text;
    check(bool(page.flush()), "explain: '{}' cannot be written", flags.html);
    if (!flags.json) std::cout << "wrote " << flags.html << ", " << bytes_text(double(text.size())) << "\n";
  }
  if (!flags.stage.empty()) return print_kernels(explanations, flags.stage);
  if (flags.json) {
    auto list = nlohmann::json::array();
    for (auto& explanation : explanations) list.push_back(nlohmann::json::parse(explanation.json()));
    std::cout << list.dump(2) << "\n";
    return;
  }
  if (flags.html.empty())
    for (auto& explanation : explanations) std::cout << explanation << "\n";
}

}  // namespace

void add_explain(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command =
      app.add_subcommand("explain", "Show what compile() makes of a model: graphs, guards, breaks, kernels");
  flags->add_to(*command);
  command->add_option("--prompt-length", flags->prompt_length, "Tokens of the prompt it is compiled for")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--batch", flags->batch, "Sequences or images at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--time", flags->time, "Run it too, and show what each kernel takes, and of which ceiling");
  command->add_flag("--json", flags->json, "Print a JSON list, one object a compiled function");
  command->add_option("--html", flags->html, "Write it as one page to look at in a browser, and print none of it")
      ->type_name("FILE");
  command->add_option("--stage", flags->stage, "Print this stage of every generated kernel instead")
      ->check(CLI::IsMember({"all", "loops", "schedule", "code"}))
      ->excludes("--json")
      ->excludes("--time");
  command->footer(
      "Examples:\n"
      "  sinter explain --prompt-length 100\n"
      "  sinter explain --device cuda --time\n"
      "  sinter explain --stage loops\n"
      "  sinter explain --model ~/models/bert --json\n"
      "  sinter explain --html explain.html\n"
      "A language model is compiled as `sinter generate` does it, the prompt padded to its bucket: prefill and decode\n"
      "step. Other models are compiled as `sinter forward` does it. For each: the graph with the lines it comes from, "
      "what\n"
      "is guarded, where and why it breaks, then its kernels with the bytes they move and the least time for that.");
  command->callback([flags] {
    if (flags->eager()) throw CLI::ValidationError("--mode", "nothing is compiled in eager mode");
    run_explain(*flags);
  });
}

}  // namespace sinter::cli
