// Programs that are recorded to be looked at: neither built nor run.
#include <algorithm>

#include "sinter/base/log.h"
#include "sinter/capture/capture.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/known_ops.h"

namespace sinter::capture {

namespace {

// The type of an argument with the symbols of its sizes.
Type argument_type(const Tensor& real, int index, const std::vector<Word>& words, const SizeTable& sizes) {
  Type type{.dtype = real.dtype(), .shape = real.sizes(), .device = real.device()};
  for (auto& symbol : sizes.symbols()) {
    auto name_size = [&](int word) {
      if (word >= 0 && words[size_t(word)].tensor == index)
        type.shape[size_t(words[size_t(word)].dim)] = Dim::symbol(symbol.name);
    };
    name_size(symbol.word);
    for (int word : symbol.same) name_size(word);
  }
  return type;
}

// What is in a cell when the program ends; nothing where the program has no part in it. Of a complex tensor the program has pairs.
Value value_in(int cell, const Segment& segment, Graph& graph, const Invocation& invocation) {
  auto tensor_of = [&](Value value, bool complex) {
    return complex ? graph.add(known_ops().view_as_complex, {value}).result() : value;
  };
  for (size_t i = 0; i < segment.outputs.size(); ++i)
    if (segment.outputs[i].cell == cell) return tensor_of(graph.outputs()[i], segment.outputs[i].complex);
  auto is_complex_source = [&](const CellSource& source) {
    if (source.kind == CellSource::Kind::kArgument) return is_complex(invocation.tensors[size_t(source.index)]->dtype());
    return source.tensor.defined() && is_complex(source.tensor.dtype());
  };
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    if (segment.inputs[i].kind != InputSource::Kind::kCell || segment.inputs[i].index != cell) continue;
    bool complex = std::any_of(segment.bound.begin(), segment.bound.end(),
                               [&](auto& bound) { return bound.first == cell && is_complex_source(bound.second); });
    return tensor_of(graph.inputs()[i], complex);
  }
  return {};
}

// The result that alone shows an output: gradients come in through it, in its shape.
Tensor only_look_at(const OutputTarget& output, const Segment& segment, const TensorList& results) {
  Tensor found;
  for (size_t i = 0; i < segment.results.size(); ++i) {
    if (segment.results[i].cell != output.cell) continue;
    if (found.defined() || output.written || segment.results[i].detached) return {};
    found = results[i];
  }
  return found;
}

// What a call leaves behind. A result that is a view counts as such: what it is a view of, nobody sees.
std::vector<Value> lasting(const Segment& segment, const Graph& graph, const std::vector<Value>& results) {
  std::vector<Value> out;
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    auto& target = segment.outputs[i];
    if (target.written || std::any_of(segment.grads.begin(), segment.grads.end(),
                                      [&](auto& effect) { return effect.grad.cell == target.cell; }))
      out.push_back(graph.outputs()[i]);
  }
  for (auto& result : results)
    if (result) out.push_back(result);
  return out;
}

}  // namespace

std::shared_ptr<Segment> Capture::keep(Recorder& recorder, Draft& draft) {
  Segment& segment = draft.segment;
  check(segment.question.kind == Question::Kind::kReturn,
        "compile: {} has to be one program, but {} at {} breaks it in two. {}", function_.name(), segment.question.what,
        segment.question.where, advice_for(segment.question));
  auto trace = std::make_shared<Trace>();
  std::vector<Value> gradients, outputs = draft.graph.outputs();
  if (std::any_of(segment.outputs.begin(), segment.outputs.end(), [](auto& output) { return output.differentiable; })) {
    for (size_t i = 0; i < segment.outputs.size(); ++i)
      if (Tensor result = only_look_at(segment.outputs[i], segment, results_); result.defined()) {
        recorder.value_of(result);
        draft.roots[i] = in_pairs(result);
      }
    recorder.differentiate(draft);
    gradients.assign(draft.graph.outputs().begin() + int64_t(outputs.size()), draft.graph.outputs().end());
    draft.graph.set_outputs(outputs);
  }
  for (auto& result : segment.results) {
    Value value;
    if (result.cell >= 0) {
      value = value_in(result.cell, segment, draft.graph, invocation_);
      auto bound = std::find_if(segment.bound.begin(), segment.bound.end(), [&](auto& m) { return m.first == result.cell; });
      if (!value && bound != segment.bound.end() && bound->second.kind == CellSource::Kind::kArgument) {
        int index = bound->second.index;
        Type type = argument_type(*invocation_.tensors[size_t(index)], index, entry_.guards.words(), sizes_);
        value = draft.graph.add_input(type, bound->second.name);
      }
      if (value) value = apply(result.path, draft.graph, value);
    }
    trace->results.push_back(value);
  }
  outputs = lasting(segment, draft.graph, trace->results);
  outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  draft.graph.set_outputs(std::move(outputs));
  trace->gradients = int64_t(gradients.size());
  trace->graph = std::move(draft.graph);
  segment.places = sizes_.places();
  auto kept = std::make_shared<Segment>(std::move(segment));
  link(kept);
  entry_.trace = std::move(trace);
  return kept;
}

std::shared_ptr<CacheEntry> Function::trace(Invocation& invocation, std::span<const TracedDim> dims, SmallVector<int64_t, 8>& sizes) {
  Signature signature;
  sign(invocation, signature);
  if (auto entry = find(signature, invocation, sizes)) return entry;
  if (state_->gave_up.load(std::memory_order_relaxed)) return nullptr;
  std::lock_guard capturing(state_->capturing);
  // Another thread may have traced it meanwhile.
  if (auto entry = find(signature, invocation, sizes)) return entry;
  std::vector<Word> words = describe(invocation);
  auto earlier = entries();
  if (int64_t(earlier.size()) >= int_option(options_, "recompile_limit")) {
    state_->gave_up = true;
    warn(
        "{} was traced {} times, which is its recompile_limit; calls that fit none of these run eagerly from now on. "
        "The "
        "guard that failed last: {}",
        name_, earlier.size(), earlier.back()->guards.failure(signature, words, invocation).text);
    return nullptr;
  }
  SizeTable table = choose_sizes(signature, words, invocation, dims);
  auto entry = std::make_shared<CacheEntry>(signature, std::move(words), table);
  CallState call(invocation);
  for (auto& symbol : table.symbols()) call.sizes.push_back(symbol.value);
  try {
    Capture capture(*this, *entry, call, invocation, Capture::Purpose::kTrace);
    capture.run();
    entry->root = capture.first();
  } catch (const CannotCapture& reason) {
    throw_error(format("compile: {} cannot be traced: {}", name_, reason.reason));
  }
  add(entry);
  sizes = std::move(call.sizes);
  return entry;
}

}  // namespace sinter::capture
