// `sinter train`: a model from a text or from pictures.
#include <csignal>
#include <iostream>
#include <optional>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/base/progress.h"
#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/cli/chart.h"
#include "sinter/cli/commands.h"
#include "sinter/io/file.h"
#include "sinter/runtime/device_runtime.h"
#include "sinter/train/trainer.h"

namespace sinter::cli {

namespace {

struct Flags {
  train::TrainOptions options;
  bool resume = false, json = false;
  int threads = 0;
};

// What the products of a step could reach at best on this machine; nothing where it was measured for another type
// than they have.
double peak_of(const train::TrainOptions& options) {
  Device device = parse_device(options.device);
  bool known = device.is_cpu() ? options.autocast == "none" : options.autocast != "none";
  return known ? runtime::ceilings_of(device).flops : 0;
}

// Means over as many steps each as leave few enough points to draw.
std::vector<std::pair<double, double>> thinned(const std::vector<train::StepRecord>& steps) {
  constexpr size_t kMost = 400;
  const size_t width = (steps.size() + kMost - 1) / kMost;
  std::vector<std::pair<double, double>> points;
  for (size_t begin = 0; begin < steps.size(); begin += width) {
    const size_t end = std::min(begin + width, steps.size());
    double step = 0, loss = 0;
    for (size_t i = begin; i < end; ++i) step += double(steps[i].step), loss += steps[i].loss;
    points.emplace_back(step / double(end - begin), loss / double(end - begin));
  }
  return points;
}

std::string curve_svg(const train::LossLog& log, const std::string& heading) {
  std::vector<LineSeries> series = {{"training", thinned(log.steps())}, {"held out", {}}};
  for (auto& step : log.steps())
    if (step.held_out) series[1].points.emplace_back(double(step.step), step.held_out->loss);
  if (series[1].points.empty()) series.pop_back();
  auto& last = log.steps().back();
  std::string caption = format("loss {} at step {}", fixed(last.loss, 4), last.step);
  if (last.held_out) caption += format(", {} on what is held out", fixed(last.held_out->loss, 4));
  return line_chart_svg(heading, caption, "step", series);
}

volatile std::sig_atomic_t stop_asked_for = 0;

// Ctrl-C, or the end of a machine's time, ends a run after its step and a checkpoint; asked twice, at once.
void stop_when_asked() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_asked_for = 1; };
  action.sa_flags = int(SA_RESETHAND) | SA_RESTART;
  for (int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

// A bar on a terminal; lines on the standard output, of JSON where they are asked for; the curve beside the
// checkpoints.
class Report final : public train::Observer {
 public:
  Report(const train::Trainer& trainer, bool json) : trainer_(trainer), json_(json) {}

  void on_start(const std::string& summary, int64_t first, int64_t steps) override {
    if (!json_) std::cout << summary << (first > 0 ? format(", from step {}", first) : "") << std::endl;
    if (!json_ && steps > first) bar_.emplace("train", steps - first, " steps");
  }
  void on_step(const train::StepRecord& record, const std::string& line) override {
    if (json_) std::cout << line << std::endl;
    ++taken_;
    // The first steps compile.
    if (taken_ == kCompiling && !json_) flops_ = peak_of(trainer_.options()) > 0 ? trainer_.flops() : 0;
    if (taken_ > kCompiling) seconds_ += record.seconds, units_ += record.units_per_s * record.seconds;
    if (!bar_) return;
    if (record.skipped) {
      bar_->clear();
      std::cout << format("step {} is left out: gradients are not finite with the loss times {}", record.step,
                          record.loss_scale)
                << std::endl;
    }
    bar_->note(format("loss {}  {}", fixed(record.loss, 3), speed()));
    bar_->advance();
  }
  void on_held_out(const train::StepRecord& record, const std::string& line) override {
    if (bar_) bar_->clear();
    if (json_)
      std::cout << line << std::endl;
    else
      std::cout << format("step {}  loss {}  held out {}, {} % right", record.step, fixed(record.loss, 4),
                          fixed(record.held_out->loss, 4), fixed(100 * record.held_out->accuracy, 1))
                << std::endl;
  }
  bool wants_to_stop() override { return stop_asked_for != 0; }
  void on_saved(int64_t, const std::string&) override {
    PendingFile file("train", trainer_.options().out + "/loss.svg");
    file.write(curve_svg(trainer_.log(), trainer_.options().out));
    file.commit();
  }
  void finish(const train::TrainResult& result) {
    bar_.reset();
    check(!result.stopped, "train: stopped after a checkpoint, {}; --resume goes on from there", result.checkpoint);
    if (json_) return;
    if (taken_ > kCompiling) std::cout << speed() << "\n";
    if (result.steps == 0)
      std::cout << format("all {} steps are taken; --steps asks for more\n", trainer_.options().steps);
    std::cout << "the model is in " << result.checkpoint << "\n";
  }

 private:
  static constexpr int64_t kCompiling = 2;

  // "1234 tokens/s, 41 % of the peak of 110 GFLOP/s".
  std::string speed() const {
    if (seconds_ <= 0) return "compiling";
    std::string text = format("{} {}/s", fixed(units_ / seconds_, 0), trainer_.unit());
    if (flops_ <= 0) return text;
    const double peak = peak_of(trainer_.options()), reached = flops_ * double(taken_ - kCompiling) / seconds_;
    return text + format(", {} % of {} GFLOP/s", fixed(100 * reached / peak, 0), fixed(peak * 1e-9, 0));
  }

  const train::Trainer& trainer_;
  const bool json_;
  std::optional<Progress> bar_;
  int64_t taken_ = 0;
  double seconds_ = 0, units_ = 0, flops_ = 0;
};

void run_train(const Flags& flags, const std::set<std::string>& given) {
  if (flags.threads) set_num_threads(flags.threads);
  train::Trainer trainer(flags.options, flags.resume, given);
  Report report(trainer, flags.json);
  stop_when_asked();
  report.finish(trainer.run(report));
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("train", "Train a model, from random weights or from a checkpoint");
  command->add_option("--out", flags->options.out, "Folder for checkpoints and losses")->required();
  std::vector<std::pair<std::string, CLI::Option*>> all;
  train::for_each_option(flags->options, [&](const train::OptionText& text, auto& field) {
    std::string name = format("--{}", text.name);
    CLI::Option* option = nullptr;
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(field)>, bool>)
      option = command->add_flag(name, field, text.help);
    else
      option = command->add_option(name, field, text.help)->capture_default_str();
    all.emplace_back(text.name, option->group(text.group));
  });
  command
      ->add_option("--threads", flags->threads, "Threads to compute with (default: SINTER_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--resume", flags->resume,
                    "Go on from the newest checkpoint in --out; options it was begun with hold");
  command->add_flag("--json", flags->json, "Print a line of JSON for each step and nothing else");
  command->footer(
      "Examples:\n"
      "  sinter train --config config.json --tokenizer ~/models/llama --data book.txt --out run --steps 2000\n"
      "  sinter train --model ~/models/llama --data notes.txt --out tuned --lr 1e-5 --autocast bf16\n"
      "  sinter train --model ~/models/llama --data notes.txt --out adapter --lora-rank 16 --lr 2e-4\n"
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
