// `sinter show`: one op through every stage, each printed as it prints itself.
#include <algorithm>
#include <iostream>

#include "sinter/base/error.h"
#include "sinter/cli/commands.h"
#include "sinter/cli/op_lookup.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/graph/trace.h"
#include "sinter/loops/lower.h"
#include "sinter/loops/schedule.h"
#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter::cli {

namespace {

// Parts between commas outside brackets, without blanks.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '[') - (c == ']');
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

// Operands that fit a pointwise op: vectors, and numbers where it takes only those.
std::string pointwise_operands(const PointwiseBody& body) {
  if (body.typing == Typing::kRandom) return "i64[1000], 1, 2";
  std::string text;
  for (int i = 0; i < body.arity; ++i) {
    bool mask = body.typing == Typing::kSelect && i == 0;
    text += (i ? ", " : "") + std::string(i >= body.tensors ? "0.5" : mask ? "bool[1000]" : "x[1000]");
  }
  return text + (body.typing == Typing::kAttr ? " | dtype=bf16" : "");
}

// One application of an op as a graph under construction, with symbols for the sizes.
class Application {
 public:
  explicit Application(const ShowOptions& options) : op_(op_named(options.op)), options_(options) {
    std::string text = options.operands;
    if (text.empty() && op_.pointwise) text = pointwise_operands(*op_.pointwise);
    if (text.empty() && !op_.samples.empty()) text = op_.samples[0];
    size_t bar = text.find('|');
    for (auto& operand : split(std::string_view(text).substr(0, bar))) add_operand(operand);
    FieldTexts fields;
    if (bar != std::string::npos)
      for (auto& field : split(std::string_view(text).substr(bar + 1))) {
        size_t equals = field.find('=');
        check(equals != std::string::npos, "show: attributes are written name=value, not '{}'", field);
        fields.emplace_back(field.substr(0, equals), field.substr(equals + 1));
      }
    attrs_ = op_.parse(fields).map_dims([&](const Dim& d) { return symbol_of(d); });
    record();
  }

  const Op& op() const { return op_; }
  const Graph& graph() { return tracer_.graph(); }

  LoopNest loops() {
    TracerScope scope(&tracer_);
    std::vector<Layout> layouts;
    for (auto& type : types_)
      layouts.push_back(type.weak ? Layout{.scalar = true, .strides = {}} : contiguous_layout(type.shape));
    Type result = tracer_.graph().outputs()[0].type();
    layouts.push_back(contiguous_layout(result.shape));
    return lower(OpCall{op_, types_, attrs_}, result, layouts);
  }

 private:
  void add_operand(const std::string& text) {
    size_t bracket = text.find('['), close = text.find(']');
    if (bracket == std::string::npos) {
      Scalar number;
      parse_field(text, number);
      types_.push_back({number.dtype(), {}, {}, true});
      args_.emplace_back(number);
      return;
    }
    check(close != std::string::npos, "show: '{}' has no closing bracket", text);
    std::string name = text.substr(0, bracket);
    auto dtype = name == "x" ? options_.dtype : parse_dtype(name);
    check(dtype.has_value(), "show: an operand is x[...] or <dtype>[...], not '{}'", text);
    Type type{*dtype, {}, {}, false};
    parse_field(text.substr(bracket, close - bracket + 1), type.shape);
    for (auto& d : type.shape) d = symbol_of(d);
    types_.push_back(type);
    args_.emplace_back(tracer_.add_input(type));
  }

  // As in an eager call: a symbol for each distinct size above 1.
  Dim symbol_of(const Dim& size) {
    if (options_.fixed_sizes || !size.is_number() || size.number() <= 1) return size;
    auto it = std::find(sizes_.begin(), sizes_.end(), size.number());
    std::string name = "n" + std::to_string(it - sizes_.begin());
    if (it == sizes_.end()) sizes_.push_back(size.number());
    tracer_.set_hint(name, size.number());
    return Dim::symbol(name);
  }

  void record() {
    TracerScope scope(&tracer_);
    TensorList results =
        op_.kind == OpKind::kComposite ? op_.decompose(args_, attrs_) : tracer_.record(op_, args_, attrs_);
    std::vector<Value> outputs;
    for (auto& tensor : results) outputs.push_back(tracer_.value_of(tensor));
    tracer_.graph().set_outputs(outputs);
  }

  const Op& op_;
  const ShowOptions& options_;
  GraphTracer tracer_;
  std::vector<int64_t> sizes_;
  std::vector<Type> types_;
  std::vector<TensorArg> args_;
  Attrs attrs_;
};

// Why there is nothing after the graph; empty when there is.
std::string no_loops_because(const Op& op) {
  if (op.kind == OpKind::kComposite) return "it is a body of other ops, shown above; `sinter show` prints each of them";
  if (op.kind == OpKind::kOpaque) return "it has a hand-written kernel per device";
  return "";
}

}  // namespace

void show_op(const ShowOptions& options) {
  Application application(options);
  bool all = options.stage == "all";
  auto print = [&](const char* stage, const std::string& text) {
    if (all) std::cout << "--- " << stage << "\n";
    if (all || options.stage == stage) std::cout << text << (text.ends_with("\n") ? "" : "\n");
  };
  print("graph", application.graph().text());
  if (options.stage == "graph") return;
  if (auto reason = no_loops_because(application.op()); !reason.empty()) {
    check(all, "{} has no loops: {}", options.op, reason);
    std::cout << "--- no loops: " << reason << "\n";
    return;
  }
  LoopNest nest = application.loops();
  Schedule plan = schedule(nest);
  auto kernel = codegen::emit_cpu(nest, plan, "k_" + options.op);
  print("loops", nest.text());
  print("schedule", to_string(plan));
  print("code", kernel.text);
  if (options.stage == "source")
    std::cout << codegen::cpu_prelude(runtime::host_target().vector_bytes / 4) << kernel.text;
}

}  // namespace sinter::cli
