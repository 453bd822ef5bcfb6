// `sinter train`: a model from a text.
#include <iostream>
#include <optional>

#include <CLI/CLI.hpp>

#include "sinter/base/format.h"
#include "sinter/base/progress.h"
#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/cli/commands.h"
#include "sinter/train/trainer.h"

namespace sinter::cli {

namespace {

struct Flags {
  train::TrainOptions options;
  bool resume = false, json = false;
  int threads = 0;
};

// A bar on a terminal; lines on the standard output, of JSON where they are asked for.
class Report final : public train::Observer {
 public:
  Report(bool json, std::string unit) : json_(json), unit_(std::move(unit)) {}

  void on_start(const std::string& summary, int64_t first, int64_t steps) override {
    if (!json_) std::cout << summary << (first > 0 ? format(", from step {}", first) : "") << std::endl;
    if (!json_ && steps > first) bar_.emplace("train", steps - first, " steps");
  }
  void on_step(const train::StepRecord& record, const std::string& line) override {
    if (json_) std::cout << line << std::endl;
    if (!bar_) return;
    bar_->note(format("loss {}  {} {}/s", fixed(record.loss, 3), fixed(record.units_per_s, 0), unit_));
    bar_->advance();
  }
  void on_held_out(const train::StepRecord& record, const std::string& line) override {
    if (json_)
      std::cout << line << std::endl;
    else
      std::cout << format("step {}  loss {}  held out {}", record.step, fixed(record.loss, 4),
                          fixed(*record.held_out_loss, 4))
                << std::endl;
  }
  void finish() { bar_.reset(); }

 private:
  bool json_;
  std::string unit_;
  std::optional<Progress> bar_;
};

void run_train(const Flags& flags, const std::set<std::string>& given) {
  if (flags.threads) set_num_threads(flags.threads);
  train::Trainer trainer(flags.options, flags.resume, given);
  Report report(flags.json, trainer.unit());
  auto result = trainer.run(report);
  report.finish();
  if (!flags.json) std::cout << format("{} steps; the model is in {}\n", result.steps, result.checkpoint);
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("train", "Train a model, from random weights or from a checkpoint");
  command->add_option("--out", flags->options.out, "Folder for checkpoints and losses")->required();
  std::vector<std::pair<std::string, CLI::Option*>> all;
  train::for_each_option(flags->options, [&](const train::OptionText& text, auto& field) {
    all.emplace_back(text.name, command->add_option(format("--{}", text.name), field, text.help)->capture_default_str());
  });
  command->add_option("--threads", flags->threads, "Threads to compute with (default: SINTER_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--resume", flags->resume, "Go on from the newest checkpoint in --out; options it was begun with hold");
  command->add_flag("--json", flags->json, "Print a line of JSON for each step and nothing else");
  command->footer(
      "Examples:\n"
      "  sinter train --config config.json --tokenizer ~/models/llama --data book.txt --out run --steps 2000\n"
      "  sinter train --model ~/models/llama --data notes.txt --out tuned --lr 1e-5 --autocast bf16\n"
      "  sinter train --resume --out run\n"
      "  sinter generate --model run/latest --prompt 'Once'\n");
  command->callback([flags, all] {
    std::set<std::string> given;
    for (auto& [name, option] : all)
      if (option->count() > 0) given.insert(name);
    run_train(*flags, given);
  });
}

}  // namespace sinter::cli
