// `sinter info FILE.pt2`: an exported program, also one that calls what Sinter has not.
#include "sinter/cli/exported.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/table.h"
#include "sinter/engine/report.h"
#include "sinter/interop/archive.h"
#include "sinter/interop/runner.h"

namespace sinter::cli {

using interop::ProgramInput;

bool is_exported(const std::string& model) { return model.ends_with(".pt2"); }

void print_exported_info(const std::string& path, bool json) {
  interop::Archive archive(path);
  const interop::ExportedProgram program = archive.program();
  int64_t parameters = 0, tensors = 0, bytes = 0;
  for (auto& input : program.inputs) {
    if (input.kind == ProgramInput::Kind::kUser || input.kind == ProgramInput::Kind::kPlain) continue;
    const Tensor tensor = archive.tensor(input.name).tensor;
    if (input.kind == ProgramInput::Kind::kParameter) parameters += tensor.numel().to_int();
    bytes += tensor.nbytes().to_int();
    ++tensors;
  }
  const std::vector<std::string> inputs = interop::describe_inputs(program);
  const auto functions = interop::called_functions(program.graph);
  if (json) {
    auto counts = nlohmann::json::object(), missing = nlohmann::json::object();
    for (auto& function : functions) (function.is_known ? counts : missing)[function.name] = function.count;
    nlohmann::json report = {{"file", path},
                             {"exporter", program.exporter},
                             {"parameters", parameters},
                             {"tensors", tensors},
                             {"stored_bytes", bytes},
                             {"inputs", inputs},
                             {"nodes", program.graph.nodes.size()},
                             {"functions", counts},
                             {"missing_functions", missing}};
    std::cout << report.dump(2) << "\n";
    return;
  }
  std::cout << format("exported by    {}\nparameters     {}\nstored         {} tensors, {}\n",
                      program.exporter, parameters, tensors, bytes_text(double(bytes)));
  for (auto& input : inputs) std::cout << format("input          {}\n", input);
  Table table({"function", "calls", ""});
  for (auto& function : functions)
    table.row(function.name, function.count, function.is_known ? "" : "missing in Sinter");
  std::cout << "\n" << table.text();
}

}  // namespace sinter::cli
