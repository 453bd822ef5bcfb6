#pragma once
// The subcommands of `sinter`. Each writes its report to the standard output and throws sinter::Error when it cannot.
#include <string>

#include "sinter/tensor/dtype.h"

namespace CLI {
class App;
}

namespace sinter::cli {

// Commands about models, each with its options and help.
void add_generate(CLI::App& app);
void add_chat(CLI::App& app);
void add_embed(CLI::App& app);
void add_transcribe(CLI::App& app);
void add_forward(CLI::App& app);
void add_evaluate(CLI::App& app);
void add_quantize(CLI::App& app);
void add_train(CLI::App& app);
void add_serve(CLI::App& app);
void add_export(CLI::App& app);
void add_explain(CLI::App& app);
void add_bisect(CLI::App& app);
void add_demo(CLI::App& app);

// A graph in a file.
void add_run(CLI::App& app);

// The store of compiled code.
void add_cache(CLI::App& app);

// Every op, or all that is known of one.
void list_ops(bool json);
void describe_op(const std::string& name, bool json);

struct ShowOptions {
  std::string op;
  std::string operands;           // as a sample of the op: "x[4, 5] | dims=[1]"; empty: the op's first sample
  DType dtype = DType::kFloat32;  // of the operands called x
  std::string stage = "all";      // graph, loops, schedule, code, source
  bool fixed_sizes = false;       // numbers in the kernel instead of symbols
  std::string device = "cpu";     // whose kernel: cpu, cuda or hip; it need not be there
};
// The way of one op from graph to kernel text.
void show_op(const ShowOptions& options);

// The machine as Sinter sees it: instruction set, compilers, cache, threads.
void print_info(bool json);
// A checkpoint: architecture, parameters, memory needed. Reads config.json and the headers of the weights alone.
void print_model_info(const std::string& folder_or_id, bool json);

}  // namespace sinter::cli
