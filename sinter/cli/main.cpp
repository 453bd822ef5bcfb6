// The command line: options in, exit code out.
#include <iostream>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"

namespace {

using namespace sinter;

constexpr int kRuntimeError = 1, kUsageError = 2;

void add_demo(CLI::App& app, cli::DemoOptions& options) {
  auto* demo = app.add_subcommand("demo", "Run a small MLP and a transformer block; show where the time goes");
  demo->add_flag("--json", options.json, "Print JSON instead of tables");
  demo->add_option("--threads", options.threads,
                   "Threads to compute with (default: SINTER_NUM_THREADS, else all cores)")
      ->check(CLI::Range(1, 1024));
  demo->add_option("--repeat", options.repeat, "Measured runs of each model, after one that is not")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  demo->footer(
      "Times are wall time inside the ops. The first run of a model compiles its kernels, or loads them from the\n"
      "cache on disk; it is shown apart. `MB moved` counts each operand read and each result written once.");
  demo->callback([&options] { cli::run_demo(options); });
}

void add_ops(CLI::App& app, std::string& name, bool& json) {
  auto* ops = app.add_subcommand("ops", "List every op, or describe one");
  ops->add_option("NAME", name, "Only this op: its operands, gradient, tolerance, body and test samples");
  ops->add_flag("--json", json, "Print JSON instead of a table");
  ops->footer(
      "Examples:\n"
      "  sinter ops            every op with its kind and whether it has a gradient\n"
      "  sinter ops gelu       one op\n"
      "Functions made of other ops (softmax, layer_norm, ...) have no entry: they are plain C++.");
  ops->callback([&] { name.empty() ? cli::list_ops(json) : cli::describe_op(name, json); });
}

void add_show(CLI::App& app, cli::ShowOptions& options, std::string& dtype) {
  auto* show = app.add_subcommand("show", "Print the way of one op: graph, loops, schedule, kernel text");
  show->add_option("OP", options.op, "Name of the op, as `sinter ops` lists it")->required();
  show->add_option("--on", options.operands, "Operands and attributes; default: the op's first test sample");
  show->add_option("--dtype", dtype, "Element type of the operands called x: f32, bf16, i64, ...")
      ->capture_default_str();
  show->add_option("--stage", options.stage, "Only this stage; `source` is the kernel with the prelude it stands on")
      ->check(CLI::IsMember({"all", "graph", "loops", "schedule", "code", "source"}))
      ->capture_default_str();
  show->add_flag("--fixed-sizes", options.fixed_sizes, "Put the sizes into the kernel as numbers");
  show->footer(
      "Examples:\n"
      "  sinter show gelu --dtype bf16\n"
      "  sinter show sum --on 'x[64, 1000] | dims=[1]'\n"
      "  sinter show index_select --on 'x[8, 3], i64[5]<8 | dim=0' --stage loops\n"
      "Operands are written as in the op's samples: x[2, 3] is of --dtype, i64[5]<8 holds integers below 8,\n"
      "bool[2] is a mask, a plain number is a number. Equal sizes become one symbol, as in an eager call.");
  show->callback([&] {
    auto parsed = parse_dtype(dtype);
    if (!parsed) throw CLI::ValidationError("--dtype", "no element type is called " + dtype);
    options.dtype = *parsed;
    cli::show_op(options);
  });
}

int run(int argc, char** argv) {
  CLI::App app("Sinter: tensors and a compiler for tensor programs, in C++", "sinter");
  app.set_version_flag("--version", "sinter " SINTER_VERSION);
  app.footer(
      "Examples:\n"
      "  sinter demo --repeat 50            where the time of two small models goes\n"
      "  sinter ops                         what there is to compute with\n"
      "  sinter show tanh --stage code      the kernel that runs when you call tanh(x)\n"
      "  SINTER_LOGS=code sinter demo       the loops, schedule and text of every kernel it uses\n"
      "Exit codes: 0 success, 1 an error while running, 2 a wrong command line.");
  cli::DemoOptions demo;
  cli::ShowOptions show;
  std::string op_name, dtype = "f32";
  bool ops_json = false, info_json = false;
  add_demo(app, demo);
  add_ops(app, op_name, ops_json);
  add_show(app, show, dtype);
  auto* info = app.add_subcommand("info", "Show instruction set, compilers, kernel cache and threads");
  info->add_flag("--json", info_json, "Print JSON instead of a table");
  info->callback([&] { cli::print_info(info_json); });
  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return 0;
    std::cerr << "sinter: which subcommand?\n" << app.help();
    return kUsageError;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    int code = run(argc, argv);
    std::cout.flush();
    if (!std::cout) throw sinter::Error("the standard output cannot be written");
    return code;
  } catch (const std::exception& error) {
    std::cerr << "sinter: " << error.what() << "\n";
    return kRuntimeError;
  }
}
