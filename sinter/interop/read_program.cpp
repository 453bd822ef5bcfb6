#include <algorithm>
#include <unordered_map>

#include "sinter/base/error.h"
#include "sinter/interop/json_api.h"
#include "sinter/interop/program.h"
#include "sinter/interop/tensor_info_api.h"

namespace sinter::interop {

using nlohmann::json;

namespace {

constexpr int64_t kMajorVersion = 8;
constexpr std::string_view kTorchOps = "torch.ops.";

class GraphReader {
 public:
  explicit GraphReader(const JsonFile& file) : file_(file) {}
  std::shared_ptr<const ProgramGraph> read(const json& graph);

 private:
  Slot define(const std::string& name);
  Slot use(const std::string& name) const;
  void read_inputs(const json& graph);
  ProgramNode read_node(const json& node);
  NodeResult read_result(const json& result);
  std::optional<Slot> result_slot(const json& named, const char* key);
  Operand read_operand(const json& argument);
  Operand read_named(const json& argument, const char* key) const;
  Operand read_symbolic(const json& argument) const;
  template <class Read>
  Operand read_list(const json& list, Read read) const;
  static Operand constant(Value value) { return {std::move(value)}; }

  const JsonFile& file_;
  ProgramGraph graph_;
  std::unordered_map<std::string, size_t> slots_;
};

Slot GraphReader::define(const std::string& name) {
  if (!slots_.emplace(name, graph_.names.size()).second) file_.damaged(format("two values are named '{}'", name));
  graph_.names.push_back(name);
  return {graph_.names.size() - 1};
}

Slot GraphReader::use(const std::string& name) const {
  auto found = slots_.find(name);
  if (found == slots_.end()) file_.damaged(format("the value '{}' is used before it is there", name));
  return {found->second};
}

Operand GraphReader::read_named(const json& argument, const char* key) const {
  return {use(file_.text(argument, key))};
}

// A number, or one that the program computes: {"as_name": "sym_size"}, {"as_int": 3}.
Operand GraphReader::read_symbolic(const json& argument) const {
  auto [kind, value] = file_.choice(argument);
  if (kind == "as_name") {
    file_.require(value->is_string(), "a name is no text");
    return {use(value->get_ref<const std::string&>())};
  }
  if (kind == "as_int") return constant({Dim(file_.integer(*value))});
  if (kind == "as_float") return constant({Scalar(file_.real(*value))});
  if (kind == "as_bool") return constant({file_.truth(*value)});
  file_.damaged(format("a number is given as '{}'", kind));
}

template <class Read>
Operand GraphReader::read_list(const json& list, Read read) const {
  file_.require(list.is_array(), "a list is none");
  OperandList out;
  for (auto& entry : list) out.push_back(read(entry));
  return {std::move(out)};
}

MemoryFormat memory_format_of(const JsonFile& file, const json& value) {
  constexpr MemoryFormat kFormats[] = {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast,
                                       MemoryFormat::kChannelsLast3d, MemoryFormat::kPreserve};
  const int64_t code = file.integer(value);
  file.require(code >= 1 && code <= std::ssize(kFormats), "a memory format is unknown");
  return kFormats[code - 1];
}

DType dtype_of(const JsonFile& file, const json& value) {
  auto type = file_dtype(file.integer(value));
  if (!type) file.damaged("a dtype is unknown");
  check(type->dtype.has_value(), "load_exported: {} uses the dtype {}, which Sinter has not", file.name(), type->name);
  return *type->dtype;
}

Value device_of(const JsonFile& file, const json& value) {
  const std::string& type = file.text(value, "type");
  if (type == "meta") return {};
  for (auto known : kDeviceTypes)
    if (type == name_of(known)) return {Device(known)};
  file.damaged(format("there is no device '{}'", type));
}

Operand GraphReader::read_operand(const json& argument) {
  auto [kind, found] = file_.choice(argument);
  const json& value = *found;
  auto integer = [&](const json& one) { return constant({Dim(file_.integer(one))}); };
  auto real = [&](const json& one) { return constant({Scalar(file_.real(one))}); };
  auto truth = [&](const json& one) { return constant({file_.truth(one)}); };
  auto text = [&](const json& one) {
    file_.require(one.is_string(), "a text is none");
    return constant({one.get<std::string>()});
  };
  auto tensor = [&](const json& one) { return read_named(one, "name"); };
  auto symbolic = [&](const json& one) { return read_symbolic(one); };
  auto maybe_tensor = [&](const json& one) {
    auto [which, named] = file_.choice(one);
    return which == "as_tensor" ? tensor(*named) : constant({});
  };
  if (kind == "as_none") return constant({});
  if (kind == "as_tensor") return tensor(value);
  if (kind == "as_tensors") return read_list(value, tensor);
  if (kind == "as_optional_tensor") return maybe_tensor(value);
  if (kind == "as_optional_tensors") return read_list(value, maybe_tensor);
  if (kind == "as_int") return integer(value);
  if (kind == "as_ints") return read_list(value, integer);
  if (kind == "as_float") return real(value);
  if (kind == "as_floats") return read_list(value, real);
  if (kind == "as_bool") return truth(value);
  if (kind == "as_bools") return read_list(value, truth);
  if (kind == "as_string") return text(value);
  if (kind == "as_strings") return read_list(value, text);
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return symbolic(value);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") return read_list(value, symbolic);
  if (kind == "as_scalar_type") return constant({dtype_of(file_, value)});
  if (kind == "as_memory_format") return constant({memory_format_of(file_, value)});
  if (kind == "as_layout") return constant({});  // all tensors are strided
  if (kind == "as_device") return constant(device_of(file_, value));
  if (kind == "as_graph") return {GraphReader(file_).read(file_.object(value, "graph"))};
  throw_error(format("load_exported: {} passes an argument as '{}', which is not supported", file_.name(), kind));
}

std::optional<Slot> GraphReader::result_slot(const json& named, const char* key) {
  const std::string& name = file_.text(named, key);
  if (name.empty()) return std::nullopt;
  return define(name);
}

NodeResult GraphReader::read_result(const json& result) {
  auto [kind, found] = file_.choice(result);
  const json& value = *found;
  if (kind == "as_none") return {.slots = {std::nullopt}};
  if (kind == "as_tensor") return {.slots = {result_slot(value, "name")}};
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool")
    return {.slots = {result_slot(value, "as_name")}};
  if (kind == "as_optional_tensor") {
    auto [which, named] = file_.choice(value);
    if (which == "as_none") return {.slots = {std::nullopt}};
    return {.slots = {result_slot(*named, "name")}};
  }
  const bool has_gaps = kind == "as_optional_tensors";
  if (kind != "as_tensors" && !has_gaps)
    throw_error(format("load_exported: {} has a result given as '{}', which is not supported", file_.name(), kind));
  NodeResult out{.is_list = true};
  file_.require(value.is_array(), "a list of results is none");
  for (auto& entry : value) {
    const json* named = &entry;
    if (has_gaps) {
      auto [which, inner] = file_.choice(entry);
      named = which == "as_tensor" ? inner : nullptr;
    }
    out.slots.push_back(named ? result_slot(*named, "name") : std::nullopt);
  }
  return out;
}

ProgramNode GraphReader::read_node(const json& node) {
  ProgramNode out;
  out.target = file_.text(node, "target");
  if (out.target.starts_with(kTorchOps)) out.target.erase(0, kTorchOps.size());
  if (auto name = node.find("name"); name != node.end() && name->is_string()) out.name = name->get<std::string>();
  for (auto& input : file_.array(node, "inputs"))
    out.inputs.push_back({file_.text(input, "name"), read_operand(file_.object(input, "arg"))});
  for (auto& result : file_.array(node, "outputs")) out.results.push_back(read_result(result));
  return out;
}

void GraphReader::read_inputs(const json& graph) {
  const json& tensors = file_.object(graph, "tensor_values");
  for (auto& input : file_.array(graph, "inputs")) {
    auto [kind, value] = file_.choice(input);
    std::optional<TensorInfo> info;
    if (kind == "as_tensor") {
      const std::string& name = file_.text(*value, "name");
      define(name);
      auto known = tensors.find(name);
      if (known == tensors.end()) file_.damaged(format("of the input '{}' nothing is told", name));
      info = read_tensor_info(file_, *known);
    } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
      define(file_.text(*value, "as_name"));
    } else if (kind == "as_custom_obj") {
      throw_error(
          format("load_exported: {} has an object of a class of its own, which is not supported", file_.name()));
    } else {
      define(format("input {}", graph_.names.size()));  // a plain value, which nothing uses
    }
    graph_.tensors.push_back(std::move(info));
  }
  graph_.input_count = graph_.names.size();
}

std::shared_ptr<const ProgramGraph> GraphReader::read(const json& graph) {
  read_inputs(graph);
  for (auto& node : file_.array(graph, "nodes")) graph_.nodes.push_back(read_node(node));
  for (auto& output : file_.array(graph, "outputs")) graph_.outputs.push_back(read_operand(output));
  return std::make_shared<const ProgramGraph>(std::move(graph_));
}

// --- the signature

Value plain_value(const JsonFile& file, const json& from) {
  auto [kind, value] = file.choice(from);
  if (kind == "as_int") return {Dim(file.integer(*value))};
  if (kind == "as_float") return {Scalar(file.real(*value))};
  if (kind == "as_bool") return {file.truth(*value)};
  if (kind == "as_string" && value->is_string()) return {value->get<std::string>()};
  return {};
}

ProgramInput read_input_spec(const JsonFile& file, const json& spec) {
  using Kind = ProgramInput::Kind;
  auto [kind, found] = file.choice(spec);
  const json& value = *found;
  if (kind == "parameter") return {.kind = Kind::kParameter, .name = file.text(value, "parameter_name")};
  if (kind == "tensor_constant") return {.kind = Kind::kConstant, .name = file.text(value, "tensor_constant_name")};
  if (kind == "buffer")
    return {.kind = Kind::kBuffer,
            .name = file.text(value, "buffer_name"),
            .persistent = file.truth(file.field(value, "persistent", json::value_t::boolean))};
  if (kind == "constant_input")
    return {.kind = Kind::kPlain,
            .name = file.text(value, "name"),
            .plain = plain_value(file, file.object(value, "value"))};
  if (kind == "user_input") {
    auto [which, argument] = file.choice(file.object(value, "arg"));
    if (which == "as_tensor") return {.kind = Kind::kUser, .name = file.text(*argument, "name")};
    if (which.starts_with("as_sym"))
      return {
          .kind = Kind::kNumber, .name = file.text(*argument, "as_name"), .is_real = which == "as_sym_float"};
    return {.kind = Kind::kPlain, .plain = plain_value(file, file.object(value, "arg"))};
  }
  throw_error(format("load_exported: {} has an input of the kind '{}', which is not supported", file.name(), kind));
}

ProgramOutput read_output_spec(const JsonFile& file, const json& spec) {
  using Kind = ProgramOutput::Kind;
  auto [kind, found] = file.choice(spec);
  const json& value = *found;
  if (kind == "user_output" || kind == "loss_output") return {};
  if (kind == "buffer_mutation") return {Kind::kState, file.text(value, "buffer_name")};
  if (kind == "parameter_mutation") return {Kind::kState, file.text(value, "parameter_name")};
  if (kind == "user_input_mutation") return {Kind::kInput, file.text(value, "user_input_name")};
  throw_error(format("load_exported: {} has an output of the kind '{}', which is not supported", file.name(), kind));
}

// What is known of the numbers among the inputs: {"s77": {"as_expr": …}}.
void read_numbers(const JsonFile& file, const json& graph, std::vector<ProgramInput>& inputs) {
  auto sizes = graph.find("sym_int_values");
  for (auto& input : inputs) {
    if (input.kind != ProgramInput::Kind::kNumber || sizes == graph.end()) continue;
    if (auto known = sizes->find(input.name); known != sizes->end()) input.number = read_size(file, *known);
  }
}

ProgramOutput::Holds held_by(const JsonFile& file, const json& output) {
  using Holds = ProgramOutput::Holds;
  const std::string kind = file.choice(output).first;
  if (kind == "as_none") return Holds::kNothing;
  if (kind == "as_sym_float" || kind == "as_float") return Holds::kReal;
  if (kind == "as_sym_int" || kind == "as_int" || kind == "as_sym_bool" || kind == "as_bool") return Holds::kInteger;
  return Holds::kTensor;
}

// The order in memory of a result of which the file tells sizes and strides.
std::vector<int64_t> order_of(const JsonFile& file, const json& graph, const json& output) {
  auto [kind, value] = file.choice(output);
  if (kind != "as_tensor") return {};
  const json& tensors = file.object(graph, "tensor_values");
  auto known = tensors.find(file.text(*value, "name"));
  if (known == tensors.end() || !known->is_object() || !known->contains("strides")) return {};
  const json& strides = file.array(*known, "strides");
  const TensorInfo info = read_tensor_info(file, *known);
  file.require(strides.size() == info.sizes.size(), "a tensor has not as many strides as sizes");
  // A dimension of size 1 lies nowhere and keeps its place.
  std::vector<int64_t> steps, order, moved;
  for (size_t d = 0; d < strides.size(); ++d) {
    steps.push_back(size_seen(file, strides[d]));
    order.push_back(int64_t(d));
    if (info.seen[d] != 1) moved.push_back(int64_t(d));
  }
  std::stable_sort(moved.begin(), moved.end(), [&](int64_t a, int64_t b) { return steps[size_t(a)] > steps[size_t(b)]; });
  auto next = moved.begin();
  for (auto& d : order)
    if (info.seen[size_t(d)] != 1) d = *next++;
  int64_t dense = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    if (info.seen[size_t(*d)] != 1 && steps[size_t(*d)] != dense) return {};
    dense *= info.seen[size_t(*d)];
  }
  return order;
}

void read_ranges(const JsonFile& file, const json& ranges, ExportedProgram& out) {
  for (auto& [symbol, range] : ranges.items()) {
    auto bound = [&](const char* key) -> std::optional<int64_t> {
      auto found = range.is_object() ? range.find(key) : range.end();
      file.require(range.is_object(), "a range is no object");
      if (found == range.end() || !found->is_number_integer()) return std::nullopt;
      return file.integer(*found);
    };
    out.ranges[symbol] = {bound("min_val"), bound("max_val")};
  }
}

void check_version(const JsonFile& file, const json& root) {
  const json& version = file.object(root, "schema_version");
  const int64_t major = file.integer(version.value("major", json()));
  check(major == kMajorVersion,
        "load_exported: {} is written by version {} of the format, this reads {}; export it again", file.name(), major,
        kMajorVersion);
}

}  // namespace

ExportedProgram read_program(std::string_view text, const std::string& name) {
  const JsonFile file(name);
  const json root = file.parse(text, JsonFile::Content::kProgram);
  file.require(root.is_object(), "it is no object");
  check_version(file, root);
  const json& module = file.object(root, "graph_module");
  const json& signature = file.object(module, "signature");
  ExportedProgram out;
  out.graph = *GraphReader(file).read(file.object(module, "graph"));
  for (auto& spec : file.array(signature, "input_specs")) out.inputs.push_back(read_input_spec(file, spec));
  for (auto& spec : file.array(signature, "output_specs")) out.outputs.push_back(read_output_spec(file, spec));
  file.require(out.inputs.size() == out.graph.input_count, "its signature has not as many inputs as its graph");
  file.require(out.outputs.size() == out.graph.outputs.size(), "its signature has not as many outputs as its graph");
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    const auto kind = out.inputs[i].kind;
    const bool is_number = kind == ProgramInput::Kind::kPlain || kind == ProgramInput::Kind::kNumber;
    file.require(is_number || out.graph.tensors[i], "an input is no tensor");
  }
  const json& graph = file.object(module, "graph");
  read_numbers(file, graph, out.inputs);
  const json& outputs = file.array(graph, "outputs");
  for (size_t i = 0; i < out.outputs.size(); ++i) {
    out.outputs[i].holds = held_by(file, outputs[i]);
    out.outputs[i].order = order_of(file, graph, outputs[i]);
  }
  read_ranges(file, file.object(root, "range_constraints"), out);
  if (auto version = root.find("torch_version"); version != root.end() && version->is_string())
    out.exporter = "PyTorch " + version->get<std::string>();
  return out;
}

}  // namespace sinter::interop
