#include "sinter/interop/graph_function.h"

#include <algorithm>
#include <map>

#include "sinter/base/error.h"
#include "sinter/interop/convert.h"
#include "sinter/interop/runner.h"

namespace sinter::interop {

using Holds = ProgramOutput::Holds;

struct GraphFunction::Program {
  Program(std::string_view json, const std::string& name)
      : program(read_program(json, name)), runner(program.graph, name) {}

  // The sizes by their symbols, as the tensors have them.
  std::map<std::string, Dim> symbols(const ValueList& values) const;

  ExportedProgram program;
  GraphRunner runner;
};

std::map<std::string, Dim> GraphFunction::Program::symbols(const ValueList& values) const {
  std::map<std::string, Dim> out;
  for (size_t i = 0; i < values.size(); ++i) {
    auto& info = program.graph.tensors[i];
    if (!info || !values[i].is<Tensor>()) continue;
    for (size_t d = 0; d < info->sizes.size(); ++d)
      if (info->sizes[d].is_symbol()) out.emplace(info->sizes[d].symbol, values[i].as<Tensor>().size(int64_t(d)));
  }
  return out;
}

GraphFunction::GraphFunction(std::string_view json, const std::string& name)
    : program_(std::make_unique<const Program>(json, name)) {
  auto& program = program_->program;
  std::map<std::string, Dim> told;
  for (auto& info : program.graph.tensors) {
    if (!info) continue;
    for (auto& size : info->sizes)
      if (size.is_symbol()) told.emplace(size.symbol, 1);
  }
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    auto& input = program.inputs[i];
    check(input.kind == ProgramInput::Kind::kUser || input.kind == ProgramInput::Kind::kNumber,
          "{} has weights of its own; a graph takes all that it reads as inputs", name);
    Input out;
    if (input.kind == ProgramInput::Kind::kNumber) {
      out.kind = input.is_real ? Input::Kind::kReal : Input::Kind::kInteger;
      out.is_implied = !input.is_real && input.number && evaluate(*input.number, told);
    } else {
      auto& sizes = program.graph.tensors[i]->sizes;
      for (size_t d = 0; d < sizes.size(); ++d)
        if (!sizes[d].is_number()) out.dynamic.push_back(int64_t(d));
    }
    inputs_.push_back(std::move(out));
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    check(program.outputs[i].kind == ProgramOutput::Kind::kUser, "{} keeps results; a graph gives all it computes", name);
    Output out{.holds = program.outputs[i].holds};
    if (auto* slot = std::get_if<Slot>(&program.graph.outputs[i].held); slot && slot->number < inputs_.size())
      out.input = int(slot->number);
    outputs_.push_back(out);
  }
}

GraphFunction::~GraphFunction() = default;

// The tensor as it would lie in memory in PyTorch, on which the caller may rest.
static Tensor in_order(const Tensor& tensor, const std::vector<int64_t>& order) {
  if (!tensor.defined() || order.size() != size_t(tensor.dim()) || order.size() < 2) return tensor;
  if (std::is_sorted(order.begin(), order.end())) return tensor.contiguous();
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[size_t(order[i])] = int64_t(i);
  return tensor.permute(order).contiguous().permute(back);
}

GraphFunction::Results GraphFunction::run(const TensorList& tensors, const std::vector<Dim>& integers,
                                          const std::vector<Scalar>& reals) const {
  auto& program = program_->program;
  ValueList values(inputs_.size());
  size_t tensor = 0, integer = 0, real = 0;
  Device device;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind == Input::Kind::kTensor) {
      values[i] = {tensors.at(tensor++)};
      // Numbers may lie on the host beside tensors of a device.
      if (auto at = values[i].as<Tensor>().device(); !at.is_cpu() || i == 0) device = at;
    } else if (inputs_[i].kind == Input::Kind::kReal) {
      values[i] = {reals.at(real++)};
    } else if (!inputs_[i].is_implied) {
      values[i] = {integers.at(integer++)};
    }
  }
  const std::map<std::string, Dim> symbols = program_->symbols(values);
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].is_implied) values[i] = {*evaluate(*program.inputs[i].number, symbols)};

  ValueList given = program_->runner.run(std::move(values), device);
  Results out;
  for (size_t i = 0; i < given.size(); ++i) {
    if (outputs_[i].input >= 0 || outputs_[i].holds == Holds::kNothing) continue;
    if (outputs_[i].holds == Holds::kTensor)
      out.tensors.push_back(in_order(value_to<Tensor>(given[i]), program.outputs[i].order));
    else if (outputs_[i].holds == Holds::kInteger)
      out.integers.push_back(value_to<Dim>(given[i]));
    else
      out.reals.push_back(value_to<Scalar>(given[i]));
  }
  return out;
}

}  // namespace sinter::interop
