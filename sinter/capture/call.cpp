#include "sinter/capture/call.h"

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/autograd/tape.h"
#include "sinter/capture/segment_node.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/plan_geometry.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/reshape.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/tracer.h"

namespace sinter::capture {

namespace {

int64_t value_of(const Dim& d, const Segment& segment, const CallState& call) {
  if (d.is_number()) return d.number();
  return d.substitute([&](const std::string& name) { return Dim(call.sizes[size_t(segment.places.at(name))]); }).number();
}

// Whether a dense tensor lies in memory in this order of its dimensions.
bool lies_in(const TensorImpl& impl, const IntList& order) {
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    size_t d = size_t(order[i]);
    if (impl.sizes[d] != 1 && impl.strides[d] != expected) return false;
    expected *= impl.sizes[d];
  }
  return true;
}

Tensor laid_in(const Tensor& tensor, const IntList& order) {
  const TensorImpl& impl = tensor.impl();
  IntList strides = impl.sizes;
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = stride;
    stride *= std::max<int64_t>(impl.sizes[size_t(order[i])], 1);
  }
  Tensor out = empty_strided(tensor.sizes(), strides, tensor.options());
  out.copy_(tensor);
  return out;
}

// The look at a result. A reshape that was possible without a copy when captured may not be at other sizes: then it is a
// copy, as in eager.
Tensor look_at(const ViewPath& path, Tensor tensor) {
  for (auto& step : path.steps) {
    if (step.op == &reshape_op() && !tensor.is_contiguous()) {
      TensorArg operand(tensor);
      auto types = eager::operand_types({&operand, 1});
      if (!eager::find_view(OpCall{*step.op, types, step.attrs}, tensor.impl().strides)) tensor = tensor.contiguous();
    }
    tensor = apply(ViewPath{{step}}, tensor);
  }
  return tensor;
}

int64_t bits_of(const Tensor& answer) {
  Scalar value = answer.item();
  return value.is_floating() ? std::bit_cast<int64_t>(value.to_double()) : value.to_int();
}

int64_t size_answer(const Segment& segment, const CallState& call) {
  auto& question = segment.question;
  int64_t a = value_of(question.a, segment, call), b = value_of(question.b, segment, call);
  if (question.kind == Question::Kind::kNumber) return a;
  return question.compare == DimCompare::kEqual ? a == b : question.compare == DimCompare::kLess ? a < b : a <= b;
}

}  // namespace

Tensor bind(CallState& call, const CellSource& source) {
  switch (source.kind) {
    case CellSource::Kind::kArgument:
      return *call.invocation.tensors[size_t(source.index)];
    case CellSource::Kind::kMemory: {
      const Tensor& argument = *call.invocation.tensors[size_t(source.index)];
      int64_t elements = int64_t(argument.impl().buffer->bytes()) / item_size(argument.dtype());
      return make_view(argument, {elements}, {1}, 0);
    }
    case CellSource::Kind::kGrad: {
      auto* state = autograd::state_of(call.cell(source.index).impl());
      check(state && state->grad.defined(), "the gradient of '{}' is gone", source.name);
      return state->grad;
    }
    default:
      return source.tensor;
  }
}

namespace {

void bind_all(const Segment& segment, CallState& call) {
  for (auto& [cell, source] : segment.bound)
    if (source.kind != CellSource::Kind::kMade && !source.only_operand && !source.unread)
      call.cell(cell) = bind(call, source);
}

// A tensor as the segment's graph takes it: a complex one as pairs, with its history.
TensorArg operand_of(const Tensor& tensor) {
  if (!tensor.defined() || !is_complex(tensor.dtype())) return tensor;
  TracerScope none(nullptr);
  return in_pairs(tensor);
}

Tensor complex_of(const Tensor& pairs) {
  TracerScope none(nullptr);
  return view_as_complex(pairs);
}

std::vector<TensorArg> operands_of(const Segment& segment, const CallState& call, const Generator::Draw& first) {
  std::vector<TensorArg> inputs;
  inputs.reserve(segment.inputs.size());
  for (auto& input : segment.inputs) {
    switch (input.kind) {
      case InputSource::Kind::kCell:
        inputs.push_back(operand_of(input.argument < 0 ? call.cells[size_t(input.index)]
                                                       : *call.invocation.tensors[size_t(input.argument)]));
        break;
      case InputSource::Kind::kTensor: inputs.push_back(operand_of(input.tensor)); break;
      case InputSource::Kind::kSize: inputs.push_back(TensorArg(value_of(input.size, segment, call))); break;
      case InputSource::Kind::kSeed: inputs.push_back(TensorArg(first.seed)); break;
      case InputSource::Kind::kOffset: inputs.push_back(TensorArg(first.offset + input.index)); break;
      case InputSource::Kind::kHost: {
        size_t i = size_t(input.index);
        inputs.push_back(TensorArg(i < call.numbers.size() ? call.numbers[i] : segment.host_numbers[i].value));
        break;
      }
      // None have been read where nothing runs.
      case InputSource::Kind::kRead:
        inputs.push_back(
            TensorArg(size_t(input.index) < call.read_numbers.size() ? call.read_numbers[size_t(input.index)] : 0.0));
        break;
      case InputSource::Kind::kNumber: {
        int64_t bits = call.invocation.words[size_t(input.index)];
        inputs.push_back(input.dtype == kFloat64 ? TensorArg(std::bit_cast<double>(bits))
                         : input.dtype == kBool  ? TensorArg(bits != 0)
                                                 : TensorArg(bits));
      }
    }
  }
  return inputs;
}

SmallVector<int64_t, 8> sizes_of(const Segment& segment, const CallState& call) {
  SmallVector<int64_t, 8> sizes;
  for (int place : segment.takes) sizes.push_back(call.sizes[size_t(place)]);
  return sizes;
}

// The operands of a backward whose tangents and saved results are row-major, which most are.
std::vector<TensorArg> backward_operands(const Segment& segment, const CallState& call, const std::vector<TensorArg>& inputs) {
  std::vector<TensorArg> out;
  auto& backward = *segment.backward;
  for (size_t i = 0; i < backward.operands.size(); ++i) {
    const Type& type = backward.operands[i];
    int given = i < backward.saved.size() ? backward.saved[i].input : -1;
    if (given >= 0) {
      out.push_back(inputs[size_t(given)]);
    } else if (type.weak) {
      out.push_back(is_floating(type.dtype) ? TensorArg(0.0) : TensorArg(int64_t(0)));
    } else {
      IntList sizes;
      for (auto& d : type.shape) sizes.push_back(value_of(d, segment, call));
      out.push_back(TensorArg(geometry_of(type.dtype, sizes, contiguous_strides(sizes), type.device)));
    }
  }
  return out;
}

}  // namespace

void add_preparations(const Segment& segment, CallState& call, bool is_bound, std::vector<std::function<void()>>& work) {
  if (!segment.run) return;
  if (!is_bound) bind_all(segment, call);
  auto inputs = operands_of(segment, call, {0, 0});
  auto sizes = sizes_of(segment, call);
  std::span<const int64_t> told(sizes.data(), sizes.size());
  if (auto forward = segment.run->preparation(inputs, told)) work.push_back(std::move(forward));
  if (!segment.backward || !segment.backward->run) return;
  auto operands = backward_operands(segment, call, inputs);
  if (auto backward = segment.backward->run->preparation(operands, told)) work.push_back(std::move(backward));
}

std::vector<Tensor> evaluate(const Segment& segment, const Graph& graph, const SizeTable& sizes, CallState& call) {
  TracerScope none(nullptr);
  NoGradGuard no_grad;
  Program program{.graph = drop_dead_nodes(graph), .symbols = {}, .writes = {}, .name = "beside the program"};
  SmallVector<int64_t, 8> values;
  for (size_t place = 0; place < sizes.symbols().size(); ++place) {
    auto& symbol = sizes.symbols()[place];
    if (symbol.value < 0) continue;
    program.symbols.push_back(symbol.name);
    values.push_back(symbol.value);
    if (place >= call.sizes.size()) call.sizes.resize(place + 1);
    call.sizes[place] = symbol.value;
  }
  Generator::Draw first{0, 0};
  if (segment.draws) first = default_generator().next(segment.draws);
  std::vector<Tensor> outputs(program.graph.outputs().size());
  auto inputs = operands_of(segment, call, first);
  compile_program(std::move(program), "eager")->run(inputs, {values.data(), values.size()}, outputs);
  return outputs;
}

int64_t run(const Segment& segment, CallState& call, bool is_bound) {
  // A capture has met them already, before it put traced gradients into the leaves.
  if (!is_bound) {
    bind_all(segment, call);
    for (auto& action : segment.actions)
      if (action.apply)
        action.apply();
      else
        call.read_numbers.push_back(action.read());
    for (auto& effect : segment.grads)
      if (const Tensor& leaf = call.cell(effect.leaf_cell); effect.replaces && leaf.defined())
        autograd::ensure_state(leaf.impl()).grad = {};
  }
  Generator::Draw first{0, 0};
  if (segment.draws) first = default_generator().next(segment.draws);
  std::vector<TensorArg> inputs = operands_of(segment, call, first);
  SmallVector<int64_t, 8> sizes = sizes_of(segment, call);
  size_t count = segment.outputs.size() + (segment.question.output >= 0);
  std::vector<Tensor> outputs;
  outputs.resize(count + segment.saved_outputs);
  IntrusivePtr<SegmentNode> node;
  if (segment.backward) node = make_intrusive<SegmentNode>(segment.backward, inputs);
  if (segment.run) {
    NoGradGuard no_grad;
    segment.run->run(inputs, {sizes.data(), sizes.size()}, outputs);
    for (size_t i = 0; i < segment.outputs.size(); ++i) {
      auto& target = segment.outputs[i];
      if (!target.written && !lies_in(outputs[i].impl(), target.order)) outputs[i] = laid_in(outputs[i], target.order);
    }
  }
  if (node) node->save(inputs, outputs, {sizes.data(), sizes.size()});
  for (auto& told : segment.data_sizes) {
    if (size_t(told.place) >= call.sizes.size()) call.sizes.resize(size_t(told.place) + 1);
    call.sizes[size_t(told.place)] = outputs[size_t(told.output)].impl().sizes[size_t(told.dim)];
  }
  for (size_t i = 0, result = 0; i < segment.outputs.size(); ++i) {
    auto& target = segment.outputs[i];
    if (target.differentiable) autograd::set_history(outputs[i], node, uint32_t(result++), target.written);
    if (target.forgets) autograd::set_history(target.complex ? call.cell(target.cell) : outputs[i], nullptr, 0, true);
    if (!target.complex)
      call.cell(target.cell) = std::move(outputs[i]);
    else if (!target.written)  // else the cell's tensor looks at the pairs already
      call.cell(target.cell) = complex_of(outputs[i]);
  }
  auto& question = segment.question;
  if (question.output >= 0) return bits_of(outputs[size_t(question.output)]);
  if (question.kind == Question::Kind::kSize || question.kind == Question::Kind::kNumber) return size_answer(segment, call);
  return 0;
}

static Tensor result_of(const ResultTensor& result, const Segment& segment, CallState& call) {
  if (result.cell < 0) return {};
  Tensor tensor = call.cell(result.cell);
  if (!result.path.empty()) {
    if (call.sizes.empty()) {
      tensor = look_at(result.path, tensor);
    } else {
      ViewPath path = result.path;
      map_field([&](const Dim& d) { return Dim(value_of(d, segment, call)); }, path);
      tensor = look_at(path, tensor);
    }
  }
  if (result.detached) return tensor.detach();
  return tensor;
}

void set_grads(const Segment& segment, CallState& call) {
  for (auto& effect : segment.grads)
    autograd::ensure_state(call.cell(effect.leaf_cell).impl()).grad = result_of(effect.grad, segment, call);
}

void collect_results(const Segment& segment, CallState& call, Results& results) {
  for (auto& result : segment.results) {
    bool again = result.same_as >= 0;
    results.tensors.push_back(again ? results.tensors[size_t(result.same_as)] : result_of(result, segment, call));
  }
  for (int place : segment.result_numbers)
    results.numbers.push_back(place < 0 ? Tensor() : results.tensors[size_t(place)]);
  for (auto& size : segment.result_sizes) results.sizes.push_back(value_of(size, segment, call));
  results.prototype = segment.prototype;
}

}  // namespace sinter::capture
