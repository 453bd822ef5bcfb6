// The command line: options in, exit code out.
#include <iostream>

#include <CLI/CLI.hpp>

#include "sinter/base/error.h"
#include "sinter/cli/bench.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/exported.h"
#include "sinter/cli/functions.h"

namespace {

using namespace sinter;

constexpr int kRuntimeError = 1, kUsageError = 2;

struct OpsOptions {
  std::string name, reference;
  bool json = false;
};

void add_ops(CLI::App& app, OpsOptions& options) {
  auto* ops = app.add_subcommand("ops", "List every op, or describe one, or a function");
  ops->add_option("NAME", options.name,
                  "Only this op: its operands, gradient, tolerance, body and test samples; and functions of this name");
  ops->add_flag("--json", options.json, "Print JSON instead of a table");
  ops->add_option("--reference", options.reference, "Write the reference of all functions, a page for each header, into a folder");
  ops->footer(
      "Examples:\n"
      "  sinter ops            every op with its kind and whether it has a gradient\n"
      "  sinter ops gelu       one op, and the declarations of its functions\n"
      "  sinter ops hstack     a function that is made of other ops");
  ops->callback([&] {
    if (!options.reference.empty())
      cli::write_reference(options.reference);
    else
      options.name.empty() ? cli::list_ops(options.json) : cli::describe_op(options.name, options.json);
  });
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
  show->add_option("--device", options.device, "Whose kernel; the device need not be there")
      ->check(CLI::IsMember({"cpu", "cuda", "hip"}))
      ->capture_default_str();
  show->add_flag("--fixed-sizes", options.fixed_sizes, "Put the sizes into the kernel as numbers");
  show->footer(
      "Examples:\n"
      "  sinter show gelu --dtype bf16\n"
      "  sinter show sum --on 'x[64, 1000] | dims=[1]'\n"
      "  sinter show index_select --on 'x[8, 3], i64[5]<8 | dim=0' --stage loops\n"
      "  sinter show argmax --device cuda --stage schedule\n"
      "Operands are written as in the op's samples: x[2, 3] is of --dtype, i64[5]<8 holds integers below 8,\n"
      "bool[2] is a mask, a plain number is a number. Equal sizes become one symbol, as in an eager call.");
  show->callback([&] {
    auto parsed = parse_dtype(dtype);
    if (!parsed) throw CLI::ValidationError("--dtype", "no element type is called " + dtype);
    options.dtype = *parsed;
    cli::show_op(options);
  });
}

void add_info(CLI::App& app, std::string& model, bool& json) {
  auto* info = app.add_subcommand("info", "Show the machine as Sinter sees it, or what a checkpoint needs");
  info->add_option("DIR", model, "A checkpoint's folder, a hub id in the local Hugging Face cache, or a file of torch.export.save (.pt2) or ONNX (.onnx)");
  info->add_flag("--json", json, "Print JSON instead of a table");
  info->footer(
      "Examples:\n"
      "  sinter info                   instruction set, compilers, kernel cache and threads\n"
      "  sinter info ~/models/llama    architecture, parameters, memory by element type and cache length\n"
      "Of a checkpoint, config.json and the headers of the weights are read, and nothing else.");
  info->callback([&] {
    if (model.empty()) return cli::print_info(json);
    cli::is_exported(model) ? cli::print_exported_info(model, json) : cli::print_model_info(model, json);
  });
}

int run(int argc, char** argv) {
  CLI::App app("Sinter: tensors and a compiler for tensor programs, in C++", "sinter");
  app.set_version_flag("--version", "sinter " SINTER_VERSION);
  app.footer(
      "Examples:\n"
      "  sinter demo                                 the bundled model in every mode, eager against compiled\n"
      "  sinter generate --prompt 'Call me Ishmael.' text as it comes\n"
      "  sinter train --model ~/models/llama --data notes.txt --out tuned\n"
      "  sinter info ~/models/llama                  what a checkpoint needs\n"
      "  sinter show tanh --stage code               the kernel that runs when you call tanh(x)\n"
      "`sinter COMMAND --help` shows more. Exit codes: 0 success, 1 an error while running, 2 a wrong command line.");
  cli::BenchOptions bench;
  cli::ShowOptions show;
  OpsOptions ops;
  std::string dtype = "f32", info_model;
  bool info_json = false;
  cli::add_generate(app);
  cli::add_chat(app);
  cli::add_embed(app);
  cli::add_transcribe(app);
  cli::add_forward(app);
#ifndef SINTER_NO_TRAIN
  cli::add_train(app);
  cli::add_evaluate(app);
  cli::add_quantize(app);
#endif
#ifndef SINTER_NO_SERVE
  cli::add_serve(app);
#endif
  cli::add_export(app);
  cli::add_explain(app);
  cli::add_bisect(app);
  cli::add_run(app);
  cli::add_demo(app);
  add_info(app, info_model, info_json);
  cli::add_cache(app);
  add_ops(app, ops);
  add_show(app, show, dtype);
  cli::add_bench(app, bench);
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
