// `sinter bisect` and `sinter run`: who is at fault where a compiled model is wrong, and the small graph that shows it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/format.h"
#include "sinter/capture/bisect.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/model_options.h"
#include "sinter/cli/sample_inputs.h"
#include "sinter/engine/bisect/trial.h"
#include "sinter/ops/creation.h"

namespace sinter::cli {

namespace {

struct BisectFlags : ModelOptions {
  int64_t prompt_length = 16, batch = 1;
  uint64_t seed = 0;
  bool json = false, slower_than_eager = false;
  double seconds = 60;
  std::string output = ".";
};

// One line on a terminal that is written over; nothing in a pipe.
class StatusLine {
 public:
  void operator()(const std::string& text) {
    if (!terminal_) return;
    std::cerr << "\r\033[K" << text.substr(0, kWidth) << std::flush;
    drawn_ = true;
  }
  ~StatusLine() {
    if (drawn_) std::cerr << "\r\033[K" << std::flush;
  }

 private:
  static constexpr size_t kWidth = 100;
  const bool terminal_ = ::isatty(STDERR_FILENO);
  bool drawn_ = false;
};

// Every program that running the model compiles, with its operands.
std::vector<bisection::WitnessedCall> witness(const std::shared_ptr<models::Model>& model, const BisectFlags& flags) {
  NoGradGuard no_grad;
  manual_seed(flags.seed);
  bisection::Witness witness;
  if (auto causal = std::dynamic_pointer_cast<models::CausalLM>(model)) {
    TextGenerator generator(causal, {.mode = flags.compile_mode()});
    std::vector<std::vector<int64_t>> prompts;
    for (int64_t i = 0; i < flags.batch; ++i)
      prompts.push_back(sample_inputs(*model, flags.folder(), 1, flags.prompt_length, true).at(0).second.to_vector<int64_t>());
    generator.generate(prompts, {.max_new_tokens = 2});
  } else {
    NamedTensors inputs = sample_inputs(*model, flags.folder(), flags.batch, flags.prompt_length, true);
    auto run = compile([model](const NamedTensors& in) { return model->run(in); }, {.mode = flags.compile_mode(), .name = "forward"});
    run(inputs);
  }
  return witness.calls();
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  check(bool(file.flush()), "'{}' cannot be written", path.string());
}

void run_bisect(const BisectFlags& flags) {
  auto model = flags.load();
  StatusLine status;
  BisectOptions options{.slower_than_eager = flags.slower_than_eager, .seconds = flags.seconds, .on_progress = {}};
  options.on_progress = [&](const std::string& text) { status(text); };
  status("running the model op by op");
  auto calls = witness(model, flags);
  Bisection found = bisection::bisect(calls, options);
  status("");
  std::string source, graph;
  if (!found.source.empty()) {
    std::filesystem::create_directories(flags.output);
    source = (std::filesystem::path(flags.output) / "bisect.cpp").string();
    graph = (std::filesystem::path(flags.output) / "bisect.ir").string();
    write_file(source, found.source);
    write_file(graph, found.graph);
  }
  if (flags.json) {
    auto object = nlohmann::json::parse(found.json());
    object["programs"] = calls.size();
    object["files"] = source.empty() ? nlohmann::json::array() : nlohmann::json{source, graph};
    std::cout << object.dump(2) << "\n";
    return;
  }
  std::cout << found.text();
  if (!source.empty()) std::cout << "written: " << source << " and " << graph << " (sinter run " << graph << ")\n";
}

struct RunFlags {
  std::string file;
  uint64_t seed = 1;
};

// Draws for the inputs of a graph: small whole numbers where they may be positions.
std::vector<TensorArg> drawn_inputs(const Graph& graph) {
  std::vector<TensorArg> out;
  for (auto& v : graph.inputs()) {
    auto& type = v.type();
    check(type.shape.is_static(), "the graph has an input of type {}: sizes must be numbers", type);
    if (type.weak)
      out.push_back(is_floating(type.dtype) ? TensorArg(0.5) : TensorArg(int64_t(1)));
    else if (is_floating(type.dtype))
      out.emplace_back(randn(type.shape).to(type.dtype).to(type.device));
    else
      out.emplace_back(randint(2, type.shape).to(type.dtype).to(type.device));
  }
  return out;
}

void run_graph_file(const RunFlags& flags) {
  std::ifstream file(flags.file);
  check(bool(file), "'{}' cannot be read", flags.file);
  std::stringstream text;
  text << file.rdbuf();
  NoGradGuard no_grad;
  manual_seed(flags.seed);
  bisection::Trial trial{std::make_shared<const Graph>(Graph::parse(text.str())), {}};
  for (auto& input : drawn_inputs(*trial.graph)) trial.inputs.push_back({input});
  auto verdict = bisection::judge(trial);
  using Kind = bisection::Verdict::Kind;
  if (verdict.kind == Kind::kRight || verdict.kind == Kind::kWrong) {
    auto got = bisection::run(*bisection::compile_trial(trial), trial);
    auto want = bisection::expected(trial).results;
    for (size_t r = 0; r < got.size(); ++r)
      std::cout << "result " << r << ", compiled:\n" << got[r] << "\nby the referee:\n" << to_tensor(want[r]) << "\n";
  }
  check(verdict.kind == Kind::kRight, "compiled it is not what the referee has: {}", verdict.text);
  std::cout << "they agree\n";
}

}  // namespace

void add_bisect(CLI::App& app) {
  auto flags = std::make_shared<BisectFlags>();
  auto* command = app.add_subcommand("bisect", "Find the pass or kernel that makes a compiled model wrong, crash or slow");
  flags->add_to(*command);
  command->add_option("--prompt-length", flags->prompt_length, "Tokens of the prompt it is run on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--batch", flags->batch, "Sequences or images at once")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--seed", flags->seed, "Of the drawn inputs")->capture_default_str();
  command->add_option("--seconds", flags->seconds, "To spend on making what is found smaller")->capture_default_str();
  command->add_option("--output", flags->output, "Folder for bisect.cpp and bisect.ir")->capture_default_str();
  command->add_flag("--slower-than-eager", flags->slower_than_eager, "Look for kernels slower than their ops one by one");
  command->add_flag("--json", flags->json, "Print a JSON object");
  command->footer(
      "Examples:\n"
      "  sinter bisect --model ~/models/gpt2\n"
      "  sinter bisect --model ~/models/gpt2 --slower-than-eager --json\n"
      "The model runs op by op on drawn inputs; then each of its programs goes the way of the compiler, and the graph after\n"
      "each pass and every kernel are compared with a slow evaluation in double precision. What differs is made smaller\n"
      "until a few ops are left, and written as a C++ program and as a graph for `sinter run`.");
  command->callback([flags] {
    if (flags->eager()) throw CLI::ValidationError("--mode", "nothing is compiled in eager mode");
    run_bisect(*flags);
  });
}

void add_run(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  auto* command = app.add_subcommand("run", "Run a graph from a file, compiled and by the referee");
  command->add_option("FILE", flags->file, "A graph as text, as `sinter bisect` writes it")->required();
  command->add_option("--seed", flags->seed, "Of the drawn inputs")->capture_default_str();
  command->footer(
      "Examples:\n"
      "  sinter run bisect.ir\n"
      "Inputs are drawn: normal numbers, and 0 or 1 for integers. Exit code 1 when the two differ.");
  command->callback([flags] { run_graph_file(*flags); });
}

}  // namespace sinter::cli
