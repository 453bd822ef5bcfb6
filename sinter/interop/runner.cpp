#include "sinter/interop/runner.h"

#include <map>
#include <utility>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/interop/onnx/control.h"
#include "sinter/interop/onnx/table.h"
#include "sinter/ops/control.h"

namespace sinter::interop {

namespace {

// Functions of functions, which take graphs.
enum class Control : uint8_t { kNone, kCond, kWhile, kGradMode, kAutocast, kOnnxIf, kOnnxLoop, kOnnxScan };
constexpr struct {
  std::string_view name;
  Control control;
} kControls[] = {{"higher_order.cond", Control::kCond},
                 {"higher_order.while_loop", Control::kWhile},
                 {"higher_order.wrap_with_set_grad_enabled", Control::kGradMode},
                 {"higher_order.wrap_with_autocast", Control::kAutocast},
                 {"onnx.If", Control::kOnnxIf},
                 {"onnx.Loop", Control::kOnnxLoop},
                 {"onnx.Scan", Control::kOnnxScan}};

Control control_named(std::string_view name) {
  for (auto& entry : kControls)
    if (entry.name == name) return entry.control;
  return Control::kNone;
}

std::optional<Callee> callee_named(std::string_view name) {
  return name.starts_with("onnx.") ? onnx::find_operator(name) : find_callee(name);
}

using GraphPointer = std::shared_ptr<const ProgramGraph>;

void count_calls(const ProgramGraph& graph, std::map<std::string, int64_t>& counts) {
  for (auto& node : graph.nodes) {
    ++counts[node.target];
    for (auto& input : node.inputs)
      if (auto* nested = std::get_if<GraphPointer>(&input.operand.held)) count_calls(**nested, counts);
  }
}

void check_functions(const ProgramGraph& graph, const std::string& file, const char* reader) {
  std::string missing;
  int64_t count = 0;
  for (auto& function : called_functions(graph)) {
    if (function.is_known) continue;
    missing += format("\n  {} ({} {})", function.name, function.count, function.count == 1 ? "time" : "times");
    ++count;
  }
  check(count == 0, "{}: {} calls {} {} that Sinter has not:{}", reader, file, count,
        count == 1 ? "function" : "functions", missing);
}

// Whether any node, nested ones included, writes to memory.
bool has_writes(const ProgramGraph& graph) {
  for (auto& node : graph.nodes) {
    if (control_named(node.target) == Control::kNone) {
      const Callee callee = *callee_named(node.target);
      if (callee.in_place || (callee.function && callee.function->schema().find("(a!") != std::string_view::npos))
        return true;
    }
    for (auto& input : node.inputs)
      if (auto* nested = std::get_if<GraphPointer>(&input.operand.held); nested && has_writes(**nested)) return true;
  }
  return false;
}

// What nodes give, in a list of values that is theirs alone to read.
void for_slots(const Operand& operand, const std::function<void(size_t)>& visit) {
  if (auto* slot = std::get_if<Slot>(&operand.held)) visit(slot->number);
  if (auto* list = std::get_if<OperandList>(&operand.held))
    for (auto& entry : *list) for_slots(entry, visit);
}

}  // namespace

std::vector<CalledFunction> called_functions(const ProgramGraph& graph) {
  std::map<std::string, int64_t> counts;
  count_calls(graph, counts);
  std::vector<CalledFunction> out;
  for (auto& [name, count] : counts)
    out.push_back({name, count, control_named(name) != Control::kNone || callee_named(name).has_value()});
  return out;
}

struct GraphRunner::Prepared {
  struct Node {
    std::string name, target;
    Control control = Control::kNone;
    Callee callee = {};
    OperandList arguments = {};  // one for each parameter; of control flow those that are no graphs
    std::vector<std::shared_ptr<const Prepared>> graphs = {};  // of control flow
    std::vector<NodeResult> results = {};
    std::vector<size_t> last_uses = {};  // values that nothing reads behind this node
  };
  std::vector<Node> nodes;
  OperandList outputs;
  size_t input_count = 0, value_count = 0;

  Prepared(const ProgramGraph& graph, const char* reader, bool writes);
  ValueList run(ValueList inputs, Device device) const;

 private:
  static void bind(const ProgramNode& node, Node& out, const char* reader, bool writes);
  void find_last_uses();
  static Value value_of(const Operand& operand, const ValueList& values, Device device);
  static ValueList call(const Node& node, ValueList arguments, Device device);
  static ValueList call_onnx(const Node& node, const ValueList& arguments, Device device);
  TensorList run_on_tensors(const ValueList& operands, const TensorList& tensors, Device device) const;
  static void store(const Node& node, ValueList results, ValueList& values);
};

GraphRunner::Prepared::Prepared(const ProgramGraph& graph, const char* reader, bool writes)
    : outputs(graph.outputs), input_count(graph.input_count), value_count(graph.names.size()) {
  for (auto& node : graph.nodes) {
    Node prepared{
        .name = node.name, .target = node.target, .control = control_named(node.target), .results = node.results};
    if (prepared.control == Control::kNone) {
      bind(node, prepared, reader, writes);
    } else {
      for (auto& input : node.inputs) {
        if (auto* nested = std::get_if<GraphPointer>(&input.operand.held))
          prepared.graphs.push_back(std::make_shared<const Prepared>(**nested, reader, writes));
        else
          prepared.arguments.push_back(input.operand);
      }
    }
    nodes.push_back(std::move(prepared));
  }
  find_last_uses();
}

// Inputs by their names, and the schema's defaults for what is left out.
void GraphRunner::Prepared::bind(const ProgramNode& node, Node& out, const char* reader, bool writes) {
  out.callee = *callee_named(node.target);
  // PyTorch's tensors may lie in another order than those here. Where nothing is written a copy is as good as a view.
  if (!writes && node.target == "aten.view.default")
    out.callee.function = find_callee("aten.reshape.default")->function;
  std::vector<bool> used(node.inputs.size());
  for (auto& parameter : out.callee.schema->parameters) {
    const Operand* given = nullptr;
    const bool is_target = out.callee.in_place && out.arguments.empty();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      // What a function in place writes to is called self, whatever the function calls it.
      if (node.inputs[i].name != (is_target ? "self" : parameter.name)) continue;
      check(given == nullptr, "{}: node '{}' ({}) has '{}' twice", reader, node.name, node.target, parameter.name);
      given = &node.inputs[i].operand;
      used[i] = true;
    }
    check(given || parameter.standard, "{}: node '{}' ({}) lacks '{}'", reader, node.name, node.target,
          parameter.name);
    out.arguments.push_back(given ? *given : Operand{*parameter.standard});
  }
  for (size_t i = 0; i < used.size(); ++i)
    check(used[i], "{}: node '{}': {} has no parameter '{}'", reader, node.name, node.target,
          node.inputs[i].name);
}

void GraphRunner::Prepared::find_last_uses() {
  constexpr size_t kNever = ~size_t(0);
  std::vector<size_t> last(value_count, kNever);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (auto& result : nodes[i].results)
      for (auto& slot : result.slots)
        if (slot) last[slot->number] = i;
    for (auto& argument : nodes[i].arguments) for_slots(argument, [&](size_t slot) { last[slot] = i; });
  }
  for (auto& output : outputs) for_slots(output, [&](size_t slot) { last[slot] = kNever; });
  for (size_t slot = 0; slot < value_count; ++slot)
    if (last[slot] != kNever) nodes[last[slot]].last_uses.push_back(slot);
}

Value GraphRunner::Prepared::value_of(const Operand& operand, const ValueList& values, Device device) {
  if (auto* slot = std::get_if<Slot>(&operand.held)) return values[slot->number];
  if (auto* list = std::get_if<OperandList>(&operand.held)) {
    ValueList out;
    for (auto& entry : *list) out.push_back(value_of(entry, values, device));
    return {std::move(out)};
  }
  const Value* constant = std::get_if<Value>(&operand.held);
  check(constant != nullptr, "a graph stands where a value is expected");
  return constant->is<Device>() ? Value{device} : *constant;
}

// The operands of control flow with these tensors in the place of its own.
TensorList GraphRunner::Prepared::run_on_tensors(const ValueList& operands, const TensorList& tensors,
                                                 Device device) const {
  ValueList inputs = operands;
  size_t next = 0;
  for (auto& input : inputs)
    if (input.is<Tensor>()) input = {tensors[next++]};
  TensorList out;
  for (auto& value : run(std::move(inputs), device)) out.push_back(value_to<Tensor>(value));
  return out;
}

ValueList GraphRunner::Prepared::call_onnx(const Node& node, const ValueList& arguments, Device device) {
  std::vector<onnx::Body> bodies;
  for (auto& graph : node.graphs)
    bodies.push_back([&graph, device](ValueList inputs) { return graph->run(std::move(inputs), device); });
  if (node.control == Control::kOnnxIf) return onnx::run_if(arguments, bodies[0], bodies[1]);
  if (node.control == Control::kOnnxLoop) return onnx::run_loop(arguments, bodies[0]);
  return onnx::run_scan(arguments, bodies[0]);
}

ValueList GraphRunner::Prepared::call(const Node& node, ValueList arguments, Device device) {
  if (node.control >= Control::kOnnxIf) return call_onnx(node, arguments, device);
  const size_t plain = node.control == Control::kCond || node.control == Control::kGradMode ? 1
                       : node.control == Control::kAutocast                                 ? 4
                                                                                            : 0;
  const size_t graphs = node.control == Control::kCond || node.control == Control::kWhile ? 2 : 1;
  check(arguments.size() >= plain && node.graphs.size() == graphs, "it is given too little");
  ValueList operands;
  for (size_t i = plain; i < arguments.size(); ++i) {
    if (auto* list = std::get_if<ValueList>(&arguments[i].held))
      operands.insert(operands.end(), list->begin(), list->end());
    else
      operands.push_back(arguments[i]);
  }
  TensorList tensors;
  for (auto& operand : operands)
    if (operand.is<Tensor>()) tensors.push_back(operand.as<Tensor>());
  auto on_tensors = [&](size_t graph) {
    return [&, graph](const TensorList& given) { return node.graphs[graph]->run_on_tensors(operands, given, device); };
  };
  TensorList out;
  switch (node.control) {
    case Control::kCond: {
      if (!arguments[0].is<Tensor>()) return node.graphs[value_to<bool>(arguments[0]) ? 0 : 1]->run(operands, device);
      out = cond(arguments[0].as<Tensor>(), on_tensors(0), on_tensors(1), tensors);
      break;
    }
    case Control::kWhile: {
      const size_t state = arguments[0].is<ValueList>() ? arguments[0].as<ValueList>().size() : 0;
      check(tensors.size() == operands.size(), "a loop that carries numbers that are no tensors is not supported");
      // What the loop only reads comes behind its state.
      auto with_rest = [&](size_t graph) {
        return [&, graph](const TensorList& now) {
          TensorList all = now;
          all.insert(all.end(), tensors.begin() + int64_t(state), tensors.end());
          return node.graphs[graph]->run_on_tensors(operands, all, device);
        };
      };
      out = while_loop(with_rest(0), with_rest(1), TensorList(tensors.begin(), tensors.begin() + int64_t(state)));
      break;
    }
    case Control::kGradMode: {
      AutoGradMode mode(value_to<bool>(arguments[0]));
      return node.graphs[0]->run(std::move(operands), device);
    }
    default: {
      AutocastGuard autocast(device.type(), value_to<std::optional<DType>>(arguments[1]).value_or(kBFloat16),
                             value_to<bool>(arguments[2]));
      return node.graphs[0]->run(std::move(operands), device);
    }
  }
  ValueList values;
  for (auto& tensor : out) values.push_back({tensor});
  return values;
}

void GraphRunner::Prepared::store(const Node& node, ValueList results, ValueList& values) {
  auto put = [&](const NodeResult& result, const ValueList& list) {
    check(list.size() == result.slots.size(), "{} results are expected, and there are {}", result.slots.size(),
          list.size());
    for (size_t i = 0; i < list.size(); ++i)
      if (result.slots[i]) values[result.slots[i]->number] = list[i];
  };
  const bool is_all =
      node.results.size() == 1 && node.results[0].is_list && !(results.size() == 1 && results[0].is<ValueList>());
  if (is_all) return put(node.results[0], results);
  check(results.size() >= node.results.size(), "{} results are expected, and there are {}", node.results.size(),
        results.size());
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (!node.results[i].is_list) {
      put(node.results[i], {std::move(results[i])});
    } else {
      check(results[i].is<ValueList>(), "a list is expected, and there is {}", describe(results[i]));
      put(node.results[i], results[i].as<ValueList>());
    }
  }
}

ValueList GraphRunner::Prepared::run(ValueList inputs, Device device) const {
  check(inputs.size() == input_count, "a graph of {} inputs is given {}", input_count, inputs.size());
  ValueList values = std::move(inputs);
  values.resize(value_count);
  for (auto& node : nodes) {
    try {
      ValueList arguments;
      for (auto& argument : node.arguments) arguments.push_back(value_of(argument, values, device));
      ValueList results =
          node.control == Control::kNone ? node.callee(arguments) : call(node, std::move(arguments), device);
      store(node, std::move(results), values);
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const Error& error) {
      throw error.with(format("\n  in node '{}' ({})", node.name, node.target));
    }
    for (size_t slot : node.last_uses) values[slot] = {};
  }
  ValueList out;
  for (auto& output : outputs) out.push_back(value_of(output, values, device));
  return out;
}

GraphRunner::GraphRunner(const ProgramGraph& graph, const std::string& file, const char* reader) {
  check_functions(graph, file, reader);
  graph_ = std::make_shared<const Prepared>(graph, reader, has_writes(graph));
}

ValueList GraphRunner::run(ValueList inputs, Device device) const { return graph_->run(std::move(inputs), device); }

}  // namespace sinter::interop
