#include "sinter/engine/bisect/print.h"

#include "sinter/engine/bisect/plain_data.h"

namespace sinter::bisection {

namespace {

// Each line behind `//`.
std::string comment(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    out += "// " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string program_text(const Trial& trial, const std::string& about, bool times) {
  std::string operands;
  bool random = false, laid = false;
  for (auto& input : trial.inputs) {
    std::string text = input.value.is_scalar() ? format("{}", input.value.scalar()) : input_text(input);
    random = random || text.find("random(") != std::string::npos;
    laid = laid || text.find("laid(") != std::string::npos;
    operands += (operands.empty() ? "" : ",\n                                ") + text;
  }
  std::string out = comment(about);
  out += "#include <cmath>\n#include <iostream>\n#include <sinter/sinter.h>\nusing namespace sinter;\n\n";
  out += "const char* kGraph = R\"(\n" + trial.graph->text() + ")\";\n\nint main() {\n";
  if (random) out += "  auto random = [](int seed, Shape shape) { return manual_seed(seed), randn(shape); };\n";
  if (laid) out += "  auto laid = [](Tensor t, IntList strides) { return empty_strided(t.sizes(), strides, t.options()).copy_(t); };\n";
  out += "  std::vector<TensorArg> inputs{" + operands + "};\n";
  if (times) {
    out += "  auto [compiled, eager] = compiler::time_text(kGraph, inputs);\n";
    return out + "  std::cout << \"compiled \" << compiled << \" s, op by op \" << eager << \" s\\n\";\n}\n";
  }
  out += "  auto got = compiler::run_text(kGraph, inputs), want = compiler::run_text(kGraph, inputs, \"interpreter\");\n";
  out += "  for (size_t i = 0; i < got.size(); ++i)\n";
  out += "    std::cout << \"compiled\\n\" << got[i] << \"\\nthe referee\\n\" << want[i] << \"\\n\";\n}\n";
  return out;
}

std::string graph_file(const Trial& trial, const std::string& about) {
  std::string out = comment(about);
  for (size_t i = 0; i < trial.inputs.size(); ++i)
    if (!trial.inputs[i].value.is_scalar()) out += format("// input {}: {}\n", i, input_text(trial.inputs[i]));
  return out + trial.graph->text(true);
}

}  // namespace sinter::bisection
