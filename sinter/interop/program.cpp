#include "sinter/interop/program.h"

#include "sinter/base/format.h"

namespace sinter::interop {

std::string describe(const TensorInfo& info) {
  std::string out;
  for (auto& size : info.sizes) out += (out.empty() ? "" : ", ") + to_string(size);
  return format("{}[{}]", info.dtype_text, info.has_rank ? out : "...");
}

std::vector<std::string> describe_inputs(const ExportedProgram& program) {
  std::vector<std::string> out;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].kind != ProgramInput::Kind::kUser) continue;
    const TensorInfo& info = *program.graph.tensors[i];
    std::string text = program.inputs[i].name + ": " + describe(info);
    for (auto& size : info.sizes) {
      auto range = size.is_symbol() ? program.ranges.find(size.symbol) : program.ranges.end();
      if (range == program.ranges.end()) continue;
      text += format(", {} from {}", size.symbol, range->second.low.value_or(0));
      if (range->second.high) text += format(" to {}", *range->second.high);
    }
    out.push_back(text);
  }
  return out;
}

}  // namespace sinter::interop
