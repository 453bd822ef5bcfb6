#include "sinter/interop/onnx/translate.h"

#include <map>
#include <set>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/interop/onnx/stored.h"

namespace sinter::interop::onnx {

namespace {

// Functions may call functions: what a small file makes of itself has an end.
constexpr int64_t kMostNodes = 1'000'000;
constexpr size_t kMostCalls = 32;

using Entry = StoredTensors::Entry;
using Known = std::variant<Slot, Entry*, Value>;  // a value of the graph, a tensor of the file, a small constant
using Names = std::unordered_map<std::string_view, Known>;
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

// A function that is being called: what its attributes are.
struct Call {
  const Function* function = nullptr;
  std::vector<Attribute> attributes = {};
};

// A graph that is being written, and the names that its nodes may read.
struct Frame {
  ProgramGraph graph;
  size_t define(std::string_view name) {
    graph.names.emplace_back(name);
    return graph.names.size() - 1;
  }
};

struct Scope {
  Frame& frame;
  Names names = {};
  Opsets opsets = {};
  const Call* call = nullptr;
};

// The names that a graph reads from around it, each once.
void find_free(const Graph& graph, std::vector<std::string_view>& free, std::set<std::string_view>& seen) {
  std::set<std::string_view> own;
  for (auto& input : graph.inputs) own.insert(input.name);
  for (auto& tensor : graph.initializers) own.insert(tensor.name);
  auto read = [&](std::string_view name) {
    if (!name.empty() && !own.contains(name) && seen.insert(name).second) free.push_back(name);
  };
  for (auto& node : graph.nodes) {
    for (auto& input : node.inputs) read(input);
    for (auto& attribute : node.attributes) {
      if (!attribute.graph) continue;
      std::vector<std::string_view> inner;
      std::set<std::string_view> inner_seen;
      find_free(*attribute.graph, inner, inner_seen);
      for (auto& name : inner) read(name);
    }
    own.insert(node.outputs.begin(), node.outputs.end());
  }
  for (auto& output : graph.outputs) read(output.name);
}

TensorInfo info_of(const ValueInfo& value, int64_t& unknown) {
  const ElementType type = element_type(value.dtype);
  TensorInfo out{.dtype = type.dtype, .dtype_text = std::string(type.name), .has_rank = value.sizes.has_value()};
  if (!value.sizes) return out;
  for (auto& size : *value.sizes) {
    Expression expression{.number = size.number.value_or(0)};
    if (!size.number) {
      expression.kind = Expression::Kind::kSymbol;
      expression.symbol = size.name.empty() ? format("?{}", unknown++) : std::string(size.name);
    }
    out.sizes.push_back(expression);
    out.seen.push_back(size.number.value_or(1));
  }
  return out;
}

class Translator {
 public:
  Translator(const Model& model, const TensorFiles& files, FindSchema find, const std::string& name)
      : model_(model), find_(find), name_(name), stored_(files) {
    for (auto& function : model.functions)
      check(functions_.emplace(FunctionKey{function.domain, function.name, function.overload}, &function).second,
            "two functions are named '{}'", function.name);
  }
  Translation run();

 private:
  void read_initializers(const Graph& graph, Scope& scope);
  void translate_nodes(const std::vector<Node>& nodes, Scope& scope);
  void translate_node(const Node& node, Scope& scope);
  void translate_operator(const Node& node, Scope& scope);
  void translate_call(const Node& node, const Function& function, Scope& scope);
  void translate_constant(const Node& node, Scope& scope);
  void translate_if(const Node& node, Scope& scope);
  void translate_loop(const Node& node, Scope& scope);
  void translate_scan(const Node& node, Scope& scope);
  OperandList outputs_of(const Graph& graph, Scope& scope);

  void define(std::string_view name, Known known, Scope& scope) const;
  void define_results(const Node& node, ProgramNode& out, Scope& scope) const;
  static const Known* look_up(std::string_view name, const Scope& scope);
  Known use(std::string_view name, const Scope& scope) const;
  Operand operand_of(const Known& known, Wanted wanted) const;
  Operand input_operand(std::string_view name, Wanted wanted, const Scope& scope) const;
  OperandList input_list(const Node& node, size_t from, size_t to, const Scope& scope) const;
  const Attribute* find_attribute(const Node& node, std::string_view name, const Scope& scope) const;
  std::vector<Attribute> resolved(const Node& node, const Scope& scope) const;
  Operand attribute_operand(const Attribute& attribute, const Parameter* parameter, const Node& node);
  std::shared_ptr<const ProgramGraph> translate_inner(const Graph& graph, const std::vector<std::string_view>& captures,
                                                      const Scope& scope);
  std::vector<std::string_view> captures_of(const std::vector<const Graph*>& graphs, const Scope& scope) const;
  OperandList capture_operands(const std::vector<std::string_view>& captures, const Scope& scope) const;
  const Graph& graph_attribute(const Node& node, std::string_view name, const Scope& scope) const;

  const Model& model_;
  FindSchema find_;
  const std::string& name_;
  StoredTensors stored_;
  std::map<FunctionKey, const Function*> functions_;
  std::vector<const Function*> calls_;
  int64_t node_count_ = 0;
};

// --- names

void Translator::define(std::string_view name, Known known, Scope& scope) const {
  check(scope.names.emplace(name, known).second, "two values are named '{}'", name);
}

const Known* Translator::look_up(std::string_view name, const Scope& scope) {
  auto found = scope.names.find(name);
  return found == scope.names.end() ? nullptr : &found->second;
}

Known Translator::use(std::string_view name, const Scope& scope) const {
  const Known* known = look_up(name, scope);
  check(known != nullptr, "the value '{}' is used before it is there", name);
  return *known;
}

Operand Translator::operand_of(const Known& known, Wanted wanted) const {
  if (auto* slot = std::get_if<Slot>(&known)) return {*slot};
  if (auto* value = std::get_if<Value>(&known)) return {*value};
  return {stored_.value(*std::get<Entry*>(known), wanted)};
}

Operand Translator::input_operand(std::string_view name, Wanted wanted, const Scope& scope) const {
  return operand_of(use(name, scope), wanted);
}

OperandList Translator::input_list(const Node& node, size_t from, size_t to, const Scope& scope) const {
  OperandList out;
  for (size_t i = from; i < to; ++i)
    out.push_back(node.inputs[i].empty() ? Operand{Value{}} : input_operand(node.inputs[i], Wanted::kTensor, scope));
  return out;
}

void Translator::define_results(const Node& node, ProgramNode& out, Scope& scope) const {
  size_t count = node.outputs.size();
  while (count > 0 && node.outputs[count - 1].empty()) --count;
  for (size_t i = 0; i < count; ++i) {
    NodeResult result{.slots = {std::nullopt}};
    if (!node.outputs[i].empty()) {
      result.slots = {Slot{scope.frame.define(node.outputs[i])}};
      define(node.outputs[i], *result.slots[0], scope);
    }
    out.results.push_back(result);
  }
}

// --- attributes

std::vector<Attribute> Translator::resolved(const Node& node, const Scope& scope) const {
  std::vector<Attribute> out;
  for (auto& attribute : node.attributes) {
    if (attribute.reference.empty()) {
      out.push_back(attribute);
      continue;
    }
    check(scope.call != nullptr, "the attribute '{}' stands for that of a function outside of one", attribute.name);
    for (auto& given : scope.call->attributes) {
      if (given.name != attribute.reference) continue;
      out.push_back(given);
      out.back().name = attribute.name;
    }
  }
  return out;
}

Operand Translator::attribute_operand(const Attribute& attribute, const Parameter* parameter, const Node& node) {
  auto list = [](const auto& from, auto make) {
    ValueList out;
    for (auto& each : from) out.push_back(make(each));
    return Operand{Value{std::move(out)}};
  };
  const bool is_type = parameter && parameter->type.starts_with("ScalarType");
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      return {Value{Scalar(double(attribute.real))}};
    case AttributeKind::kInt: {
      if (!is_type) return {Value{Dim(attribute.integer)}};
      const ElementType type = element_type(attribute.integer);
      check(type.dtype.has_value(), "node '{}' ({}) wants the type {}, which Sinter has not", node.name, node.op,
            type.name);
      return {Value{*type.dtype}};
    }
    case AttributeKind::kText:
      return {Value{std::string(attribute.text)}};
    case AttributeKind::kTensor: {
      const std::string_view of = node.outputs.empty() ? node.name : node.outputs[0];
      TensorBytes bytes{.name = of, .bytes = attribute.text};
      return {stored_.value(stored_.add(bytes, of, /*is_weight=*/false),
                            parameter ? wanted_of(parameter->type) : Wanted::kTensor)};
    }
    case AttributeKind::kFloats:
      return list(attribute.reals, [](float f) { return Value{Scalar(double(f))}; });
    case AttributeKind::kInts:
      return list(attribute.integers, [](int64_t i) { return Value{Dim(i)}; });
    case AttributeKind::kTexts:
      return list(attribute.texts, [](auto t) { return Value{std::string(t)}; });
    default:
      throw_error(format("node '{}' ({}): the attribute '{}' is of a kind that is not supported", node.name, node.op,
                         attribute.name));
  }
}

// --- nodes

void Translator::read_initializers(const Graph& graph, Scope& scope) {
  check(!graph.has_sparse, "sparse initialisers are not supported");
  for (auto& tensor : graph.initializers) {
    check(!tensor.name.empty(), "an initialiser has no name");
    define(tensor.name, &stored_.add(tensor, tensor.name, /*is_weight=*/true), scope);
  }
}

void Translator::translate_nodes(const std::vector<Node>& nodes, Scope& scope) {
  for (auto& node : nodes) translate_node(node, scope);
}

void Translator::translate_node(const Node& node, Scope& scope) {
  check(++node_count_ <= kMostNodes, "its functions come to more than {} nodes", kMostNodes);
  if (auto function = functions_.find({node.domain, node.op, node.overload}); function != functions_.end())
    return translate_call(node, *function->second, scope);
  if (node.domain.empty()) {
    if (node.op == "Constant") return translate_constant(node, scope);
    if (node.op == "If") return translate_if(node, scope);
    if (node.op == "Loop") return translate_loop(node, scope);
    if (node.op == "Scan") return translate_scan(node, scope);
  }
  translate_operator(node, scope);
}

std::string name_of(const Node& node) {
  if (!node.name.empty() || node.outputs.empty()) return std::string(node.name);
  return std::string(node.outputs[0]);
}

ProgramNode node_of(const Node& node, std::string target) {
  ProgramNode out;
  out.name = name_of(node);
  out.target = std::move(target);
  return out;
}

void Translator::translate_operator(const Node& node, Scope& scope) {
  auto opset = scope.opsets.find(node.domain);
  check(opset != scope.opsets.end(), "node '{}' ({}): the model names no version of the operators '{}'", node.name,
        node.op, node.domain);
  const Schema* schema = find_(node.domain, node.op, opset->second);
  ProgramNode out = node_of(node, schema ? schema->name : format("{}.{}", node.domain.empty() ? "onnx" : node.domain, node.op));
  const size_t known = schema ? schema->parameters.size() : 0;
  auto parameter_named = [&](std::string_view name) -> const Parameter* {
    for (size_t i = 0; i < known; ++i)
      if (schema->parameters[i].name == name) return &schema->parameters[i];
    return nullptr;
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Parameter* parameter = i < known ? &schema->parameters[i] : nullptr;
    if (parameter && parameter->type == "Tensor[]") {
      out.inputs.push_back({parameter->name, {input_list(node, i, node.inputs.size(), scope)}});
      break;
    }
    if (node.inputs[i].empty()) continue;
    const Wanted wanted = parameter ? wanted_of(parameter->type) : Wanted::kTensor;
    out.inputs.push_back(
        {parameter ? parameter->name : std::to_string(i), input_operand(node.inputs[i], wanted, scope)});
  }
  for (auto& attribute : resolved(node, scope)) {
    const Parameter* parameter = parameter_named(attribute.name);
    if (!schema) continue;
    out.inputs.push_back({std::string(attribute.name), attribute_operand(attribute, parameter, node)});
  }
  define_results(node, out, scope);
  if (parameter_named("output_count"))
    out.inputs.push_back({"output_count", {Value{Dim(int64_t(out.results.size()))}}});
  scope.frame.graph.nodes.push_back(std::move(out));
}

void Translator::translate_constant(const Node& node, Scope& scope) {
  check(node.outputs.size() == 1, "node '{}' (Constant) has not one result", node.name);
  const std::vector<Attribute> attributes = resolved(node, scope);
  check(attributes.size() == 1, "node '{}' (Constant) has not one value", node.name);
  const Attribute& value = attributes[0];
  if (value.kind == AttributeKind::kTensor)
    return define(node.outputs[0], &stored_.add({node.outputs[0], value.text}, node.outputs[0], /*is_weight=*/false),
                  scope);
  // Numbers as a small tensor.
  HostTensor host;
  if (value.kind == AttributeKind::kInts || value.kind == AttributeKind::kFloats)
    host.sizes = {int64_t(std::max(value.integers.size(), value.reals.size()))};
  if (value.kind == AttributeKind::kInt) host.whole = {value.integer};
  for (int64_t each : value.integers) host.whole.push_back(each);
  if (value.kind == AttributeKind::kFloat || value.kind == AttributeKind::kFloats) {
    host.dtype = kFloat32;
    host.real.assign(value.reals.begin(), value.reals.end());
    if (value.kind == AttributeKind::kFloat) host.real = {double(value.real)};
  }
  check(host.count() == checked_numel("sizes", host.sizes),
        "node '{}' (Constant): '{}' is of a kind that is not supported", node.name, value.name);
  define(node.outputs[0], host_value(std::move(host)), scope);
}

void Translator::translate_call(const Node& node, const Function& function, Scope& scope) {
  for (auto* calling : calls_) check(calling != &function, "the function '{}' calls itself", function.name);
  check(calls_.size() < kMostCalls, "functions call functions too deeply");
  check(node.inputs.size() <= function.inputs.size() && node.outputs.size() <= function.outputs.size(),
        "node '{}' gives or wants more than the function '{}' does", node.name, function.name);
  Call call{.function = &function, .attributes = resolved(node, scope)};
  for (auto& standard : function.defaults) {
    bool is_given = false;
    for (auto& given : call.attributes) is_given |= given.name == standard.name;
    if (!is_given) call.attributes.push_back(standard);
  }
  Scope body{.frame = scope.frame, .opsets = function.opsets.empty() ? scope.opsets : function.opsets, .call = &call};
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!node.inputs[i].empty()) define(function.inputs[i], use(node.inputs[i], scope), body);
  calls_.push_back(&function);
  translate_nodes(function.nodes, body);
  calls_.pop_back();
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (!node.outputs[i].empty()) define(node.outputs[i], use(function.outputs[i], body), scope);
}

// --- graphs inside of nodes

const Graph& Translator::graph_attribute(const Node& node, std::string_view name, const Scope& scope) const {
  for (auto& attribute : resolved(node, scope))
    if (attribute.name == name && attribute.graph) return *attribute.graph;
  throw_error(format("node '{}' ({}) has no graph '{}'", node.name, node.op, name));
}

std::vector<std::string_view> Translator::captures_of(const std::vector<const Graph*>& graphs,
                                                      const Scope& scope) const {
  std::vector<std::string_view> all, out;
  std::set<std::string_view> seen;
  for (auto* graph : graphs) {
    std::vector<std::string_view> free;
    std::set<std::string_view> its_own;
    find_free(*graph, free, its_own);
    for (auto& name : free)
      if (seen.insert(name).second) all.push_back(name);
  }
  // Tensors of the file are known everywhere.
  for (auto& name : all)
    if (std::holds_alternative<Slot>(use(name, scope))) out.push_back(name);
  return out;
}

OperandList Translator::capture_operands(const std::vector<std::string_view>& captures, const Scope& scope) const {
  OperandList out;
  for (auto& name : captures) out.push_back(input_operand(name, Wanted::kTensor, scope));
  return out;
}

std::shared_ptr<const ProgramGraph> Translator::translate_inner(const Graph& graph,
                                                                const std::vector<std::string_view>& captures,
                                                                const Scope& scope) {
  Frame frame;
  Scope inner{.frame = frame, .opsets = scope.opsets, .call = scope.call};
  for (auto& input : graph.inputs) define(input.name, Slot{frame.define(input.name)}, inner);
  for (auto& name : captures) {
    const Slot slot{frame.define(name)};
    inner.names.emplace(name, slot);  // what the graph's own input hides is not read
  }
  for (auto& [name, known] : scope.names)
    if (!std::holds_alternative<Slot>(known)) inner.names.emplace(name, known);
  frame.graph.input_count = frame.graph.names.size();
  frame.graph.tensors.resize(frame.graph.input_count);
  for (auto& tensor : graph.initializers) {
    check(!graph.has_sparse, "sparse initialisers are not supported");
    inner.names[tensor.name] = &stored_.add(tensor, tensor.name, /*is_weight=*/true);
  }
  translate_nodes(graph.nodes, inner);
  frame.graph.outputs = outputs_of(graph, inner);
  return std::make_shared<const ProgramGraph>(std::move(frame.graph));
}

OperandList Translator::outputs_of(const Graph& graph, Scope& scope) {
  OperandList out;
  for (auto& output : graph.outputs) out.push_back(input_operand(output.name, Wanted::kTensor, scope));
  return out;
}

void Translator::translate_if(const Node& node, Scope& scope) {
  check(node.inputs.size() == 1, "node '{}' (If) has not one input", node.name);
  const Graph& yes = graph_attribute(node, "then_branch", scope);
  const Graph& no = graph_attribute(node, "else_branch", scope);
  check(yes.inputs.empty() && no.inputs.empty(), "node '{}' (If): a branch has inputs", node.name);
  check(yes.outputs.size() == node.outputs.size() && no.outputs.size() == node.outputs.size(),
        "node '{}' (If): the branches have not as many results as the node", node.name);
  const auto captures = captures_of({&yes, &no}, scope);
  ProgramNode out = node_of(node, "onnx.If");
  out.inputs.push_back({"", input_operand(node.inputs[0], Wanted::kNumber, scope)});
  out.inputs.push_back({"", {translate_inner(yes, captures, scope)}});
  out.inputs.push_back({"", {translate_inner(no, captures, scope)}});
  out.inputs.push_back({"", {capture_operands(captures, scope)}});
  define_results(node, out, scope);
  scope.frame.graph.nodes.push_back(std::move(out));
}

void Translator::translate_loop(const Node& node, Scope& scope) {
  const Graph& body = graph_attribute(node, "body", scope);
  check(node.inputs.size() >= 2, "node '{}' (Loop) has less than two inputs", node.name);
  const size_t state = node.inputs.size() - 2;
  check(
      body.inputs.size() == state + 2 && body.outputs.size() == node.outputs.size() + 1 && node.outputs.size() >= state,
      "node '{}' (Loop): its body takes {} values and gives {}", node.name, body.inputs.size(), body.outputs.size());
  const auto captures = captures_of({&body}, scope);
  ProgramNode out = node_of(node, "onnx.Loop");
  for (size_t i : {0, 1})
    out.inputs.push_back(
        {"", node.inputs[i].empty() ? Operand{Value{}} : input_operand(node.inputs[i], Wanted::kNumber, scope)});
  out.inputs.push_back({"", {input_list(node, 2, node.inputs.size(), scope)}});
  out.inputs.push_back({"", {capture_operands(captures, scope)}});
  out.inputs.push_back({"", {translate_inner(body, captures, scope)}});
  define_results(node, out, scope);
  scope.frame.graph.nodes.push_back(std::move(out));
}

void Translator::translate_scan(const Node& node, Scope& scope) {
  const Graph& body = graph_attribute(node, "body", scope);
  const std::vector<Attribute> attributes = resolved(node, scope);
  int64_t scanned = -1;
  for (auto& attribute : attributes)
    if (attribute.name == "num_scan_inputs") scanned = attribute.integer;
  check(scanned > 0 && scanned <= std::ssize(node.inputs), "node '{}' (Scan) walks along {} of its {} inputs",
        node.name, scanned, node.inputs.size());
  const size_t state = node.inputs.size() - size_t(scanned);
  check(body.inputs.size() == node.inputs.size() && body.outputs.size() == node.outputs.size() &&
            state <= node.outputs.size(),
        "node '{}' (Scan): its body takes {} values and gives {}", node.name, body.inputs.size(), body.outputs.size());
  const auto captures = captures_of({&body}, scope);
  ProgramNode out = node_of(node, "onnx.Scan");
  out.inputs.push_back({"", {input_list(node, 0, state, scope)}});
  out.inputs.push_back({"", {input_list(node, state, node.inputs.size(), scope)}});
  out.inputs.push_back({"", {capture_operands(captures, scope)}});
  for (const char* name : {"scan_input_directions", "scan_input_axes", "scan_output_directions", "scan_output_axes"}) {
    Operand given{Value{ValueList()}};
    for (auto& attribute : attributes)
      if (attribute.name == name) given = attribute_operand(attribute, nullptr, node);
    out.inputs.push_back({"", given});
  }
  out.inputs.push_back({"", {translate_inner(body, captures, scope)}});
  define_results(node, out, scope);
  scope.frame.graph.nodes.push_back(std::move(out));
}

// --- the model

Translation Translator::run() {
  Translation out;
  Frame frame;
  Scope scope{.frame = frame, .opsets = model_.opsets};
  read_initializers(model_.graph, scope);
  int64_t unknown = 0;
  for (auto& input : model_.graph.inputs) {
    if (look_up(input.name, scope)) continue;  // a tensor of the file, which callers may replace elsewhere
    check(!input.name.empty(), "an input has no name");
    check(input.is_tensor, "the input '{}' is no tensor: sequences, maps and optional values are not supported",
          input.name);
    define(input.name, Slot{frame.define(input.name)}, scope);
    frame.graph.tensors.push_back(info_of(input, unknown));
    out.program.inputs.push_back({.kind = ProgramInput::Kind::kUser, .name = std::string(input.name)});
  }
  frame.graph.input_count = frame.graph.names.size();
  check(!model_.graph.outputs.empty(), "it gives no results");
  translate_nodes(model_.graph.nodes, scope);
  frame.graph.outputs = outputs_of(model_.graph, scope);
  out.program.outputs.resize(frame.graph.outputs.size());
  out.program.graph = std::move(frame.graph);
  out.program.exporter =
      format("{} {}", model_.producer.empty() ? "unknown" : model_.producer, model_.producer_version);
  out.tensors = stored_.take();
  return out;
}

}  // namespace

Translation translate(const Model& model, const TensorFiles& files, FindSchema find, const std::string& name) {
  try {
    return Translator(model, files, find, name).run();
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    if (error.message().starts_with("load_onnx")) throw;
    throw_error(format("load_onnx: {}: {}", name, error.message()));
  }
}

}  // namespace sinter::interop::onnx
