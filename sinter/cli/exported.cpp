// `sinter info FILE.pt2` and FILE.onnx: an exported program, also one that calls what Sinter has not.
#include "sinter/cli/exported.h"

#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/base/table.h"
#include "sinter/engine/report.h"
#include "sinter/interop/imported.h"
#include "sinter/interop/runner.h"

namespace sinter::cli {

using interop::ProgramInput;

bool is_exported(const std::string& model) { return model.ends_with(".pt2") || model.ends_with(".onnx"); }

ExportedModel load_exported_model(const std::string& path, Device device) {
  ExportedModel model(std::make_shared<ExportedModelImpl>(interop::read_program_file(path)));
  if (!device.is_cpu()) model->to(device);
  return model;
}

void print_exported_info(const std::string& path, bool json) {
  const interop::ImportedProgram imported = interop::read_program_file(path);
  const interop::ExportedProgram& program = imported.program;
  int64_t parameters = 0, bytes = 0;
  const size_t tensors = imported.tensors.size();
  for (auto& [kind, name, persistent, requires_grad, tensor] : imported.tensors) {
    if (kind == ProgramInput::Kind::kParameter) parameters += tensor.numel().to_int();
    bytes += tensor.nbytes().to_int();
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
