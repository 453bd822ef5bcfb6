// Programs as C++ text.
#include <algorithm>
#include <sstream>

#include "sinter/base/format.h"
#include "sinter/graph/text_scan.h"
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
std::string layer(int k) { return "layer" + std::to_string(std::max(k, 0)); }

std::string dtype_text(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "kFloat64";
    case DType::kFloat16:
      return "kFloat16";
    case DType::kBFloat16:
      return "kBFloat16";
    case DType::kInt64:
      return "kInt64";
    case DType::kInt32:
      return "kInt32";
    case DType::kUInt8:
      return "kUInt8";
    case DType::kBool:
      return "kBool";
    default:
      return "kFloat32";
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string operand_text(const Operand& operand) {
  const Fit& fit = operand.fit;
  auto size = [&](int64_t code) {
    return code >= 0 ? std::to_string(code) : format("{}.size({})", variable(fit.like), -1 - code);
  };
  std::string out = variable(operand.variable);
  if (fit.sizes) {
    std::vector<std::string> sizes;
    for (int64_t code : *fit.sizes) sizes.push_back(size(code));
    out = "fit(" + out + ", {" + joined(sizes) + "})";
  }
  if (fit.below) out = format("{}({}, {})", fit.by_place ? "places" : "indices", out, size(*fit.below));
  if (fit.dtype) out = *fit.dtype == kBool ? format("({} > 0)", out) : format("{}.to({})", out, dtype_text(*fit.dtype));
  if (fit.domain) out = format("into({}, {}, {})", out, number(fit.domain->low), number(fit.domain->high));
  if (fit.contiguous) out += ".contiguous()";
  return out;
}

// The expression with its operands in place of their names.
std::string expression(std::string_view text, const Choice& choice) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    char name = text[at];
    size_t tensor = kTensorNames.find(name);
    if (find_operand(text, name, at) != at)
      out += name;
    else if (tensor != std::string_view::npos)
      out += operand_text(choice.tensors[tensor]);
    else if (name == 'i' || name == 'j')
      out += std::to_string(name == 'i' ? choice.i : choice.j);
    else if (name == 'l')
      out += layer(choice.layer);
    else
      out += name == 'n' ? number(choice.n) : std::string(1, name);
  }
  return out;
}

std::string expression(const Call& call) {
  if (!call.use.op) return expression(forms()[size_t(call.form)].text, call.choice);
  std::vector<std::string> operands;
  for (auto& argument : call.use.arguments)
    operands.push_back(argument.number ? format("Scalar({})", *argument.number) : operand_text(argument.tensor));
  return format("op(\"{}\", {}, {}).at({})", call.use.op->name, "{" + joined(operands) + "}",
                quote(call.use.attributes), call.use.result);
}

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
  std::string out =
      is_floating(input.dtype) ? "(rand({" + joined(around) + "}) * 4 - 2)" : "randint(0, 2, {" + joined(around) + "})";
  if (input.dtype != kFloat32 && input.dtype != kInt64) out += ".to(" + dtype_text(input.dtype) + ")";
  if (input.layout == Input::Layout::kTransposed) out += ".transpose(0, -1)";
  if (input.layout == Input::Layout::kSpread) out += ".slice(-1, {}, {}, 2)";
  if (input.layout == Input::Layout::kExpanded) out += ".expand({" + joined(sizes) + "})";
  if (input.requires_grad) out += input.leaf ? ".requires_grad_()" : ".requires_grad_() * 1.5";
  return out;
}

bool calls(const std::string& text, const std::string& name_and_parenthesis) {
  for (size_t at = text.find(name_and_parenthesis); at != std::string::npos;
       at = text.find(name_and_parenthesis, at + 1))
    if (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '{' || text[at - 1] == '(')) return true;
  return false;
}

// The helpers that the text calls, on lines of their own.
std::string helpers_of(const std::string& body) {
  std::string all, one;
  int parentheses = 0, braces = 0;
  for (char c : helper_text()) {
    if ((one.empty() || one.ends_with('\n')) && c == ' ') continue;
    parentheses += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == '}') --braces;
    if (one.ends_with('\n')) one += std::string(size_t(braces) * 2, ' ');
    one += c;
    if (c == '{') ++braces;
    if (parentheses == 0 && (c == ';' || (c == '{' && braces == 1) || c == '}')) one += '\n';
    if (c != '}' || braces > 0) continue;
    size_t open = one.find('('), name = one.rfind(' ', open) + 1;
    if (calls(body, one.substr(name, open + 1 - name))) all += one + "\n";
    one.clear();
  }
  return all;
}

class Printer {
 public:
  Printer(const Program& program, const std::string& options, const std::vector<Round>& rounds)
      : program_(program), options_(options), rounds_(rounds) {
    for (int v = 0; v < int(program.arguments.size()); ++v) {
      parameters_ += "const Tensor& " + variable(v) + ", ";
      arguments_ += variable(v) + ", ";
    }
  }

  std::string text() {
    if (program_.as_module) module();
    out_ << "void run(bool compiled) {\n";
    state();
    function();
    call();
    for (auto& round : rounds_)
      out_ << format("  call({}, {}, {}, {}, {});\n", round.rows, round.columns, round.values,
                     make_number(round).to_double(), round.training);
    out_ << "}\n\nint main() {\n  run(false);\n  run(true);\n}\n";
    std::string body = out_.str(), helpers = helpers_of(body), includes;
    if (helpers.starts_with("TensorList op("))
      includes =
          "#include <sinter/graph/text_scan.h>\n#include <sinter/ops/define.h>\n#include <sinter/ops/sample.h>\n";
    return "#include <iostream>\n" + includes + "#include <sinter/sinter.h>\nusing namespace sinter;\n\n" + helpers +
           body;
  }

 private:
  void module() {
    out_ << "struct NetImpl : nn::Module {\n  std::function<TensorList(" << parameters_ << "const Scalar&)> f;\n"
         << "  NetImpl(decltype(f) f, const std::vector<nn::AnyModule>& layers) : f(f) {\n"
         << "    for (auto& layer : layers) register_module(\"layer\" + std::to_string(children().size()), layer);\n  "
            "}\n"
         << "  TensorList forward(" << parameters_ << "const Scalar& s) { return f(" << arguments_
         << "s); }\n};\nSINTER_MODULE(Net);\n\n";
  }

  void state() {
    auto& spec = program_.state;
    int captured = int(program_.arguments.size());
    if (!program_.captured.empty()) out_ << "  manual_seed(1);\n";
    for (size_t k = 0; k < program_.captured.size(); ++k)
      out_ << "  Tensor " << variable(captured + int(k)) << " = " << input_text(program_.captured[k], captured)
           << ";\n";
    if (spec.layers.empty()) return;
    out_ << "  manual_seed(" << kStateSeed << ");\n  TensorList p;\n  std::vector<nn::AnyModule> layers;\n";
    for (size_t k = 0; k < spec.layers.size(); ++k)
      out_ << "  nn::AnyModule " << layer(int(k)) << " = " << layer_forms()[size_t(spec.layers[k])].text
           << ";\n  layers.push_back(" << layer(int(k))
           << ");\n  for (auto& t : layers.back().ptr()->parameters()) p.push_back(t);\n";
    if (spec.optimizer < 0) return;
    auto& optimizer = optimizer_forms()[size_t(spec.optimizer)];
    out_ << "  " << optimizer.type << " o(p, " << optimizer.options << ");\n";
    if (spec.schedule < 0) return;
    auto& schedule = schedule_forms()[size_t(spec.schedule)];
    out_ << "  " << schedule.type << " r(o, " << schedule.options << ");\n";
  }

  void function() {
    std::string held = program_.state.optimizer < 0 ? "" : program_.state.schedule < 0 ? ", &o" : ", &o, &r";
    out_ << "  auto f = [=" << held << "](" << parameters_ << "const Scalar& s) {\n";
    for (size_t k = 0; k < program_.statements.size(); ++k) {
      auto& statement = program_.statements[k];
      out_ << "    Tensor " << variable(program_.inputs() + int(k)) << " = ";
      if (statement.condition >= 0)
        out_ << expression(conditions()[size_t(statement.condition)].text, statement.asked) << " ? "
             << expression(statement.call) << " : " << expression(statement.otherwise) << ";\n";
      else
        out_ << expression(statement.call) << ";\n";
    }
    std::vector<std::string> results;
    for (int result : program_.results) results.push_back(variable(result));
    out_ << "    return TensorList{" << joined(results) << "};\n  };\n  std::function<TensorList(" << parameters_
         << "const Scalar&)> g = f;\n";
    out_ << "  if (compiled) g = compile(" << (program_.as_module ? "Net(f, layers)" : "f") << ", {" << options_
         << "});\n";
  }

  void call() {
    auto& spec = program_.state;
    out_ << "  auto call = [&](int rows, int columns, int values, Scalar s, bool training) {\n";
    if (!spec.layers.empty()) out_ << "    for (auto& layer : layers) layer.ptr()->train(training);\n";
    if (!spec.layers.empty() && spec.before != StateSpec::Before::kNothing)
      out_ << "    for (auto& layer : layers) layer.ptr()->zero_grad(" << (spec.before == StateSpec::Before::kSetToNone)
           << ");\n";
    out_ << "    manual_seed(values * 2);\n";
    for (size_t v = 0; v < program_.arguments.size(); ++v)
      out_ << "    Tensor " << variable(int(v)) << " = " << input_text(program_.arguments[v], 0) << ";\n";
    out_ << "    manual_seed(1);\n    TensorList results = g(" << arguments_ << "s);\n"
         << "    for (auto& t : results) std::cout << t << \"\\n\";\n"
         << (has_gradients() ? "    if (Tensor loss = weighted_sum(results); loss.defined()) loss.backward();\n" : "");
    if (spec.steps_around && spec.clips) out_ << "    nn::utils::clip_grad_norm_(p, 1.0);\n";
    if (spec.steps_around) out_ << "    o.step();\n";
    if (spec.steps_around && spec.schedule >= 0) out_ << "    r.step();\n";
    for (size_t v = 0; v < program_.arguments.size(); ++v) {
      out_ << "    std::cout << " << variable(int(v)) << " << \"\\n\";\n";
      if (program_.arguments[v].requires_grad)
        out_ << "    if (v" << v << ".grad().defined()) std::cout << v" << v << ".grad() << \"\\n\";\n";
    }
    if (!spec.layers.empty()) out_ << "    for (auto& t : p) std::cout << t << \"\\n\";\n";
    out_ << "  };\n";
  }

  bool has_gradients() const {
    auto asks = [](const Input& input) { return input.requires_grad; };
    return !program_.state.layers.empty() || std::any_of(program_.arguments.begin(), program_.arguments.end(), asks) ||
           std::any_of(program_.captured.begin(), program_.captured.end(), asks);
  }

  const Program& program_;
  const std::string& options_;
  const std::vector<Round>& rounds_;
  std::string parameters_, arguments_;
  std::ostringstream out_;
};

}  // namespace

std::string print(const Program& program, const std::string& options, const std::vector<Round>& rounds) {
  return Printer(program, options, rounds).text();
}

}  // namespace sinter::fuzz
