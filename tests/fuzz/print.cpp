// Programs as C++ text.
#include <sstream>

#include "tests/fuzz/program.h"

namespace sinter::fuzz {

size_t find_operand(std::string_view text, char name, size_t from);

namespace {

std::string number(double n) {
  std::ostringstream out;
  out << n;
  std::string text = out.str();
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string variable(int v) { return "v" + std::to_string(v); }

// The expression with its operands in place of their names.
std::string expression(std::string_view text, const Choice& choice) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    char name = text[at];
    size_t tensor = kTensorNames.find(name);
    if (find_operand(text, name, at) != at)
      out += name;
    else if (tensor != std::string_view::npos)
      out += variable(choice.variables[tensor]);
    else if (name == 'i' || name == 'j')
      out += std::to_string(name == 'i' ? choice.i : choice.j);
    else
      out += name == 'n' ? number(choice.n) : std::string(1, name);
  }
  return out;
}

std::string expression(const Call& call) { return expression(forms()[size_t(call.form)].text, call.choice); }

std::string input_text(const Input& input, int first) {
  if (input.layout == Input::Layout::kSame) return variable(first + input.of);
  if (input.layout == Input::Layout::kRow) return variable(first + input.of) + ".select(0, -1)";
  std::vector<std::string> sizes, around;
  for (int size : input.sizes)
    sizes.push_back(size == kRows ? "rows" : size == kColumns ? "columns" : std::to_string(size));
  around = sizes;
  if (input.layout == Input::Layout::kTransposed) std::reverse(around.begin(), around.end());
  if (input.layout == Input::Layout::kSpread) around.back() += " * 2";
  if (input.layout == Input::Layout::kExpanded) around[0] = "1";
  auto list = [](const std::vector<std::string>& words) {
    std::string out;
    for (auto& word : words) out += (out.empty() ? "" : ", ") + word;
    return "{" + out + "}";
  };
  std::string out = input.dtype == kInt64  ? "randint(0, 2, " + list(around) + ")"
                    : input.dtype == kBool ? "randint(0, 2, " + list(around) + ").to(kBool)"
                                           : "(rand(" + list(around) + ") * 4 - 2)";
  if (input.layout == Input::Layout::kTransposed) out += ".transpose(0, -1)";
  if (input.layout == Input::Layout::kSpread) out += ".slice(-1, {}, {}, 2)";
  if (input.layout == Input::Layout::kExpanded) out += ".expand(" + list(sizes) + ")";
  if (input.requires_grad) out += input.leaf ? ".requires_grad_()" : ".requires_grad_() * 1.5";
  return out;
}

}  // namespace

std::string print(const Program& program, const std::string& options, const std::vector<Round>& rounds) {
  std::ostringstream out;
  std::string parameters, arguments;
  int captured = int(program.arguments.size());
  for (int v = 0; v < captured; ++v) {
    parameters += "const Tensor& " + variable(v) + ", ";
    arguments += variable(v) + ", ";
  }
  out << "#include <iostream>\n#include <sinter/sinter.h>\nusing namespace sinter;\n\nint main() {\n";
  if (!program.captured.empty()) out << "  manual_seed(" << rounds[0].values * 2 + 1 << ");\n";
  for (size_t k = 0; k < program.captured.size(); ++k)
    out << "  Tensor " << variable(captured + int(k)) << " = " << input_text(program.captured[k], captured) << ";\n";
  out << "  auto f = [=](" << parameters << "const Scalar& s) {\n";
  for (size_t k = 0; k < program.statements.size(); ++k) {
    auto& statement = program.statements[k];
    out << "    Tensor " << variable(program.inputs() + int(k)) << " = ";
    if (statement.condition >= 0)
      out << expression(conditions()[size_t(statement.condition)].text, statement.asked) << " ? "
          << expression(statement.call) << " : " << expression(statement.otherwise) << ";\n";
    else
      out << expression(statement.call) << ";\n";
  }
  out << "    return TensorList{";
  for (size_t k = 0; k < program.results.size(); ++k) out << (k ? ", " : "") << variable(program.results[k]);
  out << "};\n  };\n  auto compiled = compile(f, {" << options << "});\n";
  out << "  auto call = [&](auto& g, int rows, int columns, int values, Scalar s) {\n";
  out << "    manual_seed(values * 2);\n";
  for (int v = 0; v < captured; ++v)
    out << "    Tensor " << variable(v) << " = " << input_text(program.arguments[size_t(v)], 0) << ";\n";
  out << "    manual_seed(1);\n    for (auto& t : g(" << arguments << "s)) std::cout << t << \"\\n\";\n";
  for (int v = 0; v < captured; ++v) out << "    std::cout << " << variable(v) << " << \"\\n\";\n";
  out << "  };\n";
  for (auto& round : rounds)
    for (const char* which : {"f", "compiled"})
      out << "  call(" << which << ", " << round.rows << ", " << round.columns << ", " << round.values << ", "
          << make_number(round).to_double() << ");\n";
  out << "}\n";
  return out.str();
}

}  // namespace sinter::fuzz
