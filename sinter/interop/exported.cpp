#include "sinter/interop/exported.h"

#include <map>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/interop/archive.h"
#include "sinter/interop/convert.h"
#include "sinter/interop/imported.h"
#include "sinter/interop/onnx/load.h"
#include "sinter/interop/runner.h"
#include "sinter/ops/creation.h"

namespace sinter {

using namespace interop;

namespace {

using Kind = ProgramInput::Kind;

// The module that holds the last part of "layers.0.weight", made where it is missing.
nn::Module& holder_of(nn::Module& root, std::string_view& name) {
  nn::Module* at = &root;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    const std::string part(name.substr(0, dot));
    nn::Module* next = nullptr;
    for (auto& [known, child] : at->named_children())
      if (known == part) next = child.get();
    if (!next) next = at->register_module(part, std::make_shared<nn::Module>()).get();
    at = next;
    name.remove_prefix(dot + 1);
  }
  return *at;
}

}  // namespace

struct ExportedModelImpl::Program {
  explicit Program(ImportedProgram from)
      : reader(from.reader), program(std::move(from.program)), runner(program.graph, format("'{}'", from.file), reader) {}

  const char* reader;

  ExportedProgram program;
  GraphRunner runner;
  std::optional<Tensor> place;  // one of the tensors of the program
  TensorList state;  // for each input of the graph the parameter, buffer or constant; undefined for the others

  const TensorInfo& info(size_t input) const { return *program.graph.tensors[input]; }
  void check_input(size_t number, size_t input, const Tensor& tensor, std::map<std::string, Dim>& symbols) const;
  void check_sizes(const std::vector<size_t>& inputs, const TensorList& tensors,
                   const std::map<std::string, Dim>& symbols) const;
  void check_ranges(const std::map<std::string, Dim>& symbols) const;
  size_t input_named(const std::string& name, bool is_user) const;
  std::vector<size_t> users() const;
  Device device_for(const TensorList& inputs) const;
};

std::vector<size_t> ExportedModelImpl::Program::users() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].kind == Kind::kUser) out.push_back(i);
  return out;
}

size_t ExportedModelImpl::Program::input_named(const std::string& name, bool is_user) const {
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    auto& input = program.inputs[i];
    const bool fits =
        is_user ? input.kind == Kind::kUser : input.kind == Kind::kParameter || input.kind == Kind::kBuffer;
    if (fits && input.name == name) return i;
  }
  throw_error(format("{}: the program writes to '{}', which is none of its inputs", reader, name));
}

Device ExportedModelImpl::Program::device_for(const TensorList& inputs) const {
  for (auto* list : {&state, &inputs})
    for (auto& tensor : *list)
      if (tensor.defined()) return tensor.device();
  return place ? place->device() : Device();
}

// Binds the symbols of an input's sizes.
void ExportedModelImpl::Program::check_input(size_t number, size_t input, const Tensor& tensor,
                                             std::map<std::string, Dim>& symbols) const {
  const TensorInfo& wanted = info(input);
  const std::string& name = program.inputs[input].name;
  check(tensor.defined(), "ExportedModel: input {} ('{}') is undefined", number, name);
  check(!wanted.dtype || tensor.dtype() == *wanted.dtype,
        "ExportedModel: input {} ('{}') is {}{}, the program was exported for {}", number, name, tensor.dtype(),
        tensor.sizes(), describe(wanted));
  if (!wanted.has_rank) return;
  check(tensor.dim() == int64_t(wanted.sizes.size()),
        "ExportedModel: input {} ('{}') is {}{}, the program was exported for {}", number, name, tensor.dtype(),
        tensor.sizes(), describe(wanted));
  for (size_t d = 0; d < wanted.sizes.size(); ++d)
    if (wanted.sizes[d].is_symbol()) symbols.emplace(wanted.sizes[d].symbol, tensor.size(int64_t(d)));
}

void ExportedModelImpl::Program::check_sizes(const std::vector<size_t>& inputs, const TensorList& tensors,
                                             const std::map<std::string, Dim>& symbols) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorInfo& wanted = info(inputs[i]);
    for (size_t d = 0; d < wanted.sizes.size(); ++d) {
      auto expected = evaluate(wanted.sizes[d], symbols);
      if (!expected) continue;
      check(tensors[i].size(int64_t(d)) == *expected,
            "ExportedModel: input {} ('{}') has the sizes {}; the program was exported for {}, so that size {} has to "
            "be {}",
            i, program.inputs[inputs[i]].name, tensors[i].sizes(), describe(wanted), d, *expected);
    }
  }
}

void ExportedModelImpl::Program::check_ranges(const std::map<std::string, Dim>& symbols) const {
  for (auto& [symbol, size] : symbols) {
    auto found = program.ranges.find(symbol);
    if (found == program.ranges.end()) continue;
    auto& [low, high] = found->second;
    check(!low || size >= *low, "ExportedModel: the size {} is {}, and the program was exported for {} or more", symbol,
          size, low.value_or(0));
    check(!high || size <= *high, "ExportedModel: the size {} is {}, and the program was exported for {} or less",
          symbol, size, high.value_or(0));
  }
}

ExportedModelImpl::ExportedModelImpl(ImportedProgram from) {
  std::map<std::string, Tensor> state;
  for (auto& [kind, name, persistent, requires_grad, tensor] : from.tensors) {
    std::string_view last = name;
    nn::Module& holder = holder_of(*this, last);
    if (kind == Kind::kParameter)
      holder.register_parameter(std::string(last), tensor, requires_grad);
    else
      holder.register_buffer(std::string(last), tensor, kind == Kind::kBuffer && persistent);
    state[name] = tensor;
  }
  auto program = std::make_unique<Program>(std::move(from));
  for (auto& input : program->program.inputs) {
    const bool is_state = input.kind != Kind::kUser && input.kind != Kind::kPlain;
    program->state.push_back(is_state ? state.at(input.name) : Tensor());
  }
  for (auto& output : program->program.outputs)
    if (output.kind != ProgramOutput::Kind::kUser)
      program->input_named(output.target, output.kind == ProgramOutput::Kind::kInput);
  if (!state.empty()) program->place = state.begin()->second;
  program_ = std::move(program);
}

ExportedModelImpl::~ExportedModelImpl() = default;

TensorList ExportedModelImpl::forward(const TensorList& inputs) {
  auto& program = program_->program;
  const std::vector<size_t> users = program_->users();
  check(inputs.size() == users.size(), "ExportedModel: {} inputs are given; the program takes {}", inputs.size(),
        users.size());
  std::map<std::string, Dim> symbols;
  for (size_t i = 0; i < users.size(); ++i) program_->check_input(i, users[i], inputs[i], symbols);
  program_->check_sizes(users, inputs, symbols);
  program_->check_ranges(symbols);

  ValueList values;
  size_t next = 0;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    auto& input = program.inputs[i];
    if (input.kind == Kind::kUser)
      values.push_back({inputs[next++]});
    else if (input.kind == Kind::kPlain)
      values.push_back(input.plain);
    else
      values.push_back({program_->state[i]});
  }
  ValueList results = program_->runner.run(values, program_->device_for(inputs));

  TensorList out;
  for (size_t i = 0; i < results.size(); ++i) {
    auto& output = program.outputs[i];
    if (output.kind == ProgramOutput::Kind::kUser) {
      out.push_back(value_to<Tensor>(results[i]));
    } else {
      // What a program keeps has no history; a caller's tensor has.
      AutoGradMode mode(output.kind == ProgramOutput::Kind::kInput && GradMode::is_enabled());
      const size_t target = program_->input_named(output.target, output.kind == ProgramOutput::Kind::kInput);
      values[target].as<Tensor>().copy_(value_to<Tensor>(results[i]));
    }
  }
  return out;
}

std::vector<std::string> ExportedModelImpl::input_names() const {
  std::vector<std::string> out;
  for (size_t i : program_->users()) out.push_back(program_->program.inputs[i].name);
  return out;
}

size_t ExportedModelImpl::result_count() const {
  size_t count = 0;
  for (auto& output : program_->program.outputs) count += output.kind == ProgramOutput::Kind::kUser;
  return count;
}

TensorList ExportedModelImpl::example_inputs() const {
  TensorList out;
  for (size_t i : program_->users()) {
    const TensorInfo& info = program_->info(i);
    check(info.dtype.has_value(), "ExportedModel: the input '{}' is {}, a dtype that Sinter has not",
          program_->program.inputs[i].name, describe(info));
    check(info.has_rank, "ExportedModel: the file tells no sizes of the input '{}'", program_->program.inputs[i].name);
    out.push_back(zeros(Shape(info.seen), *info.dtype));
  }
  return out;
}

std::string ExportedModelImpl::extra_repr() const {
  std::string out;
  for (auto& input : describe_inputs(program_->program)) out += (out.empty() ? "" : "; ") + input;
  return out;
}

namespace interop {

ImportedProgram read_exported(const std::string& path) {
  Archive archive(path);
  ImportedProgram out{.file = path, .program = archive.program(), .tensors = {}};
  for (auto& input : out.program.inputs) {
    check(input.kind != Kind::kNumber,
          "load_exported: '{}' takes a number that may change as an input; export it with a tensor in its place", path);
    if (input.kind == Kind::kUser || input.kind == Kind::kPlain) continue;
    Archive::Stored stored = archive.tensor(input.name);
    out.tensors.push_back({input.kind, input.name, input.persistent, stored.requires_grad, stored.tensor});
  }
  return out;
}

ImportedProgram read_program_file(const std::string& path) {
  return path.ends_with(".onnx") ? onnx::read_file(path) : read_exported(path);
}

}  // namespace interop

ExportedModel load_exported(const std::string& path) {
  return ExportedModel(std::make_shared<ExportedModelImpl>(read_exported(path)));
}

}  // namespace sinter
