// How a segment ends: which values live on, what is written back, which question is asked; and its gradients.
#include "sinter/autograd/paths.h"
#include "sinter/autograd/tape.h"
#include "sinter/base/hash.h"
#include "sinter/capture/recorder_parts.h"

namespace sinter::capture {

namespace {

// The dimensions from the outermost in memory to the innermost. Those of size 1 lie nowhere: in a row-major tensor they have
// their place, since it is one at other sizes too; else they come first.
IntList memory_order(const IntList& sizes, const IntList& strides) {
  IntList order, sized;
  for (size_t d = 0; d < sizes.size(); ++d) (sizes[d] == 1 ? order : sized).push_back(int64_t(d));
  std::stable_sort(sized.begin(), sized.end(),
                   [&](int64_t a, int64_t b) { return strides[size_t(a)] > strides[size_t(b)]; });
  bool row_major = std::is_sorted(sized.begin(), sized.end());
  order.append({sized.data(), sized.size()});
  if (row_major) std::sort(order.begin(), order.end());
  return order;
}

// The graph with inputs [first, first + count) moved behind all others.
Graph with_tangents_last(const Graph& graph, size_t first, size_t count) {
  Graph out;
  std::vector<const Node*> copies(graph.nodes().size());
  auto add_inputs = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Value v = graph.inputs()[i];
      copies[size_t(v.node->id)] = out.add_input(v.type(), v.node->name).node;
    }
  };
  add_inputs(0, first);
  add_inputs(first + count, graph.inputs().size());
  add_inputs(first, first + count);
  auto values = [&](const std::vector<Value>& old) {
    std::vector<Value> now;
    for (auto& v : old) now.push_back(copies[size_t(v.node->id)]->result(v.index));
    return now;
  };
  for (auto& node : graph.nodes()) {
    out.set_marks(node.marks);
    if (node.op->kind != OpKind::kInput)
      copies[size_t(node.id)] = &out.add_typed(*node.op, values(node.inputs), node.attrs, node.types, node.where);
  }
  out.set_outputs(values(graph.outputs()));
  return out;
}

// The other results through which gradients flow that are computed from this one.
std::vector<size_t> fed_by(const Graph& graph, const std::vector<OutputTarget>& outputs, size_t result) {
  std::vector<bool> depends(graph.nodes().size());
  const Node* source = graph.outputs()[result].node;
  for (auto& node : graph.nodes())
    depends[size_t(node.id)] = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value& v) {
      return v.node == source || depends[size_t(v.node->id)];
    });
  std::vector<size_t> fed;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (i != result && outputs[i].differentiable && depends[size_t(graph.outputs()[i].node->id)]) fed.push_back(i);
  return fed;
}

uint64_t hash_of(const Draft& draft) {
  auto& segment = draft.segment;
  uint64_t h = draft.graph.hash();
  auto mix = [&](uint64_t v) { h = hash_mix(h, v); };
  for (auto& input : segment.inputs) mix(hash_mix(uint64_t(input.kind), uint64_t(input.index)) ^ input.size.hash());
  for (auto& output : segment.outputs)
    mix(hash_mix(uint64_t(output.cell),
                 uint64_t(output.written | output.differentiable << 1 | output.forgets << 2 | output.complex << 3)));
  for (auto& [cell, source] : segment.bound)
    mix(hash_mix(uint64_t(cell), hash_mix(uint64_t(source.kind), uint64_t(source.index))));
  mix(hash_mix(uint64_t(segment.question.kind), uint64_t(segment.question.output)));
  mix(uint64_t(segment.question.compare));
  mix(hash_mix(segment.question.a.hash(), segment.question.b.hash()));
  auto mix_result = [&](const ResultTensor& result) {
    mix(uint64_t(result.cell) * 2 + result.detached);
    mix(uint64_t(result.same_as));
    mix(hash_text(field_text(result.path)));
  };
  for (auto& effect : segment.grads) {
    mix(uint64_t(effect.leaf_cell));
    mix_result(effect.grad);
  }
  for (auto& result : segment.results) mix_result(result);
  for (auto& d : segment.result_sizes) mix(d.hash());
  for (int number : segment.result_numbers) mix(uint64_t(number));
  return h;
}

uint64_t hash_of_paths(const Draft& draft) {
  TensorList roots, targets;
  for (size_t i = 0; i < draft.roots.size(); ++i)
    if (draft.segment.outputs[i].differentiable) roots.push_back(draft.roots[i]);
  for (auto& target : draft.grad_targets)
    if (target.defined()) targets.push_back(target);
  return roots.empty() ? 0 : autograd::hash_of_paths(roots, targets);
}

// A leaf is written to where nothing is recorded, and stays one: a history would end at itself.
bool stays_leaf(const Storage& storage, bool written) { return written && storage.real.impl().requires_grad; }

}  // namespace

void Recorder::add_output(Storage& storage, bool written, std::vector<Value>& values) {
  const Tensor root = in_pairs(root_of(storage));
  if (storage.cell < 0) storage.cell = next_cell_++;
  OutputTarget target{.cell = storage.cell, .written = written, .order = memory_order(root.impl().sizes, root.impl().strides)};
  target.complex = is_complex(storage.type.dtype);
  bool is_leaf = stays_leaf(storage, written);
  target.differentiable = is_differentiable(storage.type.dtype) && records_history_ && !is_leaf && autograd::needs_gradient(root);
  target.forgets = written && storage.needs_grad && !target.differentiable && !autograd::needs_gradient(root);
  for (size_t d = 0; d < storage.type.shape.size(); ++d) {
    auto& size = storage.type.shape[d];
    auto names = size.symbols();
    if (names.size() == 1 && size.same_as(Dim::symbol(names[0])) && !sizes_.value(size))
      draft_.segment.data_sizes.push_back({sizes_.reserve(names[0]), int(draft_.segment.outputs.size()), int(d)});
  }
  draft_.segment.outputs.push_back(std::move(target));
  draft_.roots.push_back(root);
  values.push_back(handle_of(root).value);
}

// The gradients that the program leaves in leaves, as it has set them.
std::vector<std::pair<Storage*, Tensor>> Recorder::settle_grads(std::vector<Storage*>& needed) {
  std::vector<std::pair<Storage*, Tensor>> grads;
  NoGradGuard no_history;
  auto settle = [&](Storage& leaf, Tensor grad) {
    if (grad.defined()) {
      if (grad.is_traced() && handle_of(grad).pinned()) grad = grad.clone();
      auto storage = storage_of(grad);
      alive_.push_back(storage);
      needed.push_back(storage.get());
    }
    grads.emplace_back(&leaf, std::move(grad));
  };
  for (auto* storage : changed_grads_) settle(*storage, grad_so_far(leaf_roots_, *storage));
  for (auto& change : grad_changes_) {
    auto* state = autograd::state_of(change.leaf.impl());
    settle(*change.storage, state ? state->grad : Tensor());
  }
  return grads;
}

// Where a tensor that outlives the program is found; its storage has a cell where it is a result.
ResultTensor Recorder::result_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  auto storage = storage_of(tensor);
  check(!storage->number, "a number of the arguments cannot be returned as a tensor");
  ResultTensor found{.cell = bind(*storage)};
  if (tensor.is_traced()) found.path = handle_of(tensor).path;
  found.detached = is_detached(tensor);
  return found;
}

int64_t Recorder::end_segment(Question question, const Tensor& asked, std::span<const Tensor> results, bool settle) {
  Segment& segment = draft_.segment;
  bool last = question.kind == Question::Kind::kReturn;
  if (!last && !has_ended_ && has_leaf()) host_.leaf_crosses();
  std::vector<Value> values;
  std::vector<Storage*> needed, outliving;
  std::vector<std::pair<Storage*, Tensor>> grads;
  trace_origins();
  // Programs act on the host before they run, which is too early behind a break.
  if (!last && !segment.actions.empty())
    host_.must_follow({.kind = Question::Kind::kMemory, .what = "a change of host state beside " + question.what,
                       .where = question.where});
  if (last) {
    for (auto& result : results)
      if (result.defined()) needed.push_back(storage_of(result).get());
    outliving = outliving_beside(results);
    if (host_.runs())
      needed.insert(needed.end(), outliving.begin(), outliving.end());
    else
      compute(outliving);
  } else {
    for (auto& [id, storage] : storages_)
      if (!storage->handles.empty()) needed.push_back(storage);
  }
  if (last || settle) grads = settle_grads(needed);
  Value answer;
  if (asked.defined()) answer = value_of(asked);
  std::vector<Storage*> outputs;
  for (auto& [id, storage] : storages_) {
    if (storage->number) continue;
    bool is_needed = std::find(needed.begin(), needed.end(), storage) != needed.end();
    bool made_here = !storage->real.defined() && storage->segment == segment_;
    // A constant that is handed out is the caller's own, in each call another.
    if (last && is_needed && storage->source.kind == CellSource::Kind::kConstant) {
      root_of(*storage);
      outputs.push_back(storage);
      continue;
    }
    bool lasting = storage->source.kind != CellSource::Kind::kConstant && storage->source.kind != CellSource::Kind::kMade;
    if (storage->written ? is_needed || (storage->real.defined() && lasting) : made_here && is_needed)
      outputs.push_back(storage);
  }
  for (auto* storage : outputs) {
    // A constant that was written to is a new tensor in each call.
    bool written = storage->real.defined() && storage->source.kind != CellSource::Kind::kConstant;
    if (storage->source.kind == CellSource::Kind::kConstant && storage->cell >= 0) storage->cell = next_cell_++;
    if (storage->source.kind == CellSource::Kind::kConstant) storage->source.kind = CellSource::Kind::kMade;
    add_output(*storage, written, values);
  }
  for (auto& [leaf, grad] : grads) segment.grads.push_back({bind(*leaf), result_of(grad)});
  for (size_t i = 0; last && i < results.size(); ++i) {
    ResultTensor found = result_of(results[i]);
    // A look at other sizes may be a copy: one for the tensor, however often it is returned.
    for (size_t j = 0; j < i && found.same_as < 0; ++j)
      if (!found.path.empty() && results[j].is_same(results[i])) found.same_as = int(j);
    segment.results.push_back(std::move(found));
  }
  if (answer) {
    question.output = int(values.size());
    values.push_back(answer);
  }
  segment.question = std::move(question);
  draft_.graph.set_outputs(std::move(values));
  segment.hash = hash_of(draft_);
  segment.paths = hash_of_paths(draft_);

  for (size_t i = 0; !last && i < outputs.size(); ++i) {
    // Not asked of the tensor: where the segment is only compared, later ones have written to it already.
    outputs[i]->needs_grad = segment.outputs[i].differentiable || stays_leaf(*outputs[i], segment.outputs[i].written);
    outputs[i]->feeds.clear();
    if (segment.outputs[i].differentiable)
      for (size_t fed : fed_by(draft_.graph, segment.outputs, i)) outputs[i]->feeds.push_back(outputs[fed]->id);
  }
  has_ended_ = true;
  auto data_sizes = segment.data_sizes;  // the host takes the segment
  handed_over_ = true;
  int64_t bits = host_.finish(*this, draft_);
  handed_over_ = false;

  if (last) {
    for (auto* storage : outliving)
      if (host_.runs() && storage->cell >= 0) storage->real = host_.tensor_in(storage->cell);
    begin_segment();
    return bits;
  }
  for (auto* storage : outputs) {
    storage->real = host_.tensor_in(storage->cell);
    const TensorImpl& impl = storage->real.impl();
    storage->sizes = impl.sizes;
    storage->strides = impl.strides;
  }
  if (settle) {
    for (auto* storage : changed_grads_) storage->grad = {};
    changed_grads_.clear();
    grad_changes_.clear();
  }
  // Sizes that the data decided are known from here on.
  for (auto& told : data_sizes)
    sizes_.bind(sizes_.symbols()[size_t(told.place)].name, outputs[size_t(told.output)]->sizes[size_t(told.dim)]);
  begin_segment();
  return bits;
}

void Recorder::begin_segment() {
  for (auto* storage : changed_grads_) storage->grad = grad_so_far(leaf_roots_, *storage);
  for (auto& [id, storage] : storages_) {
    storage->root = {};
    storage->segment = 0;
    storage->written = false;
  }
  leaf_roots_.clear();
  seed_.reset();
  trail_ = numbers_here_ = 0;
  draft_ = {};
  ++segment_;
}

void Recorder::finish(std::span<const Tensor> results, std::vector<Dim> sizes, std::vector<int> numbers,
                      std::shared_ptr<const void> prototype) {
  draft_.segment.result_sizes = std::move(sizes);
  draft_.segment.result_numbers = std::move(numbers);
  draft_.segment.prototype = std::move(prototype);
  end_segment({}, {}, results);
}

bool Recorder::flush() {
  if (handed_over_) return false;
  failing_ = true;
  bool writes = std::any_of(storages_.begin(), storages_.end(), [](auto& entry) {
    return entry.second->written && entry.second->real.defined();
  });
  if (!writes && !has_draws() && changed_grads_.empty() && grad_changes_.empty()) return false;
  end_segment({}, {}, {});
  // They are the segment's now, and not taken back.
  changed_grads_.clear();
  grad_changes_.clear();
  return true;
}

Joint Recorder::differentiate(Draft& draft) {
  Joint joint;
  auto& outputs = draft.segment.outputs;
  TensorList results, targets;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].differentiable) {
      joint.tangents.push_back(int(i));
      results.push_back(draft.roots[i]);
    }
  for (size_t i = 0; i < draft.grad_targets.size(); ++i)
    if (draft.grad_targets[i].defined()) {
      joint.targets.push_back(int(i));
      targets.push_back(draft.grad_targets[i]);
    }
  size_t operands = draft.graph.inputs().size();
  TensorList tangents, grads;
  for (auto& result : results) {
    auto impl = make_intrusive<TensorImpl>(result.impl());
    impl->autograd = nullptr;
    impl->requires_grad = false;
    impl->traced = make_intrusive<Handle>(this, draft.graph.add_input(handle_of(result).value.type(), "tangent"), segment_);
    tangents.push_back(Tensor(std::move(impl)));
  }
  struct Flag {
    bool& value;
    explicit Flag(bool& v) : value(v) { value = true; }
    ~Flag() { value = false; }
  } differentiating(differentiating_);
  auto gradients = [&](const TensorList& of, const TensorList& from) {
    autograd::LeafHooksLater outside;
    return autograd::grad(of, targets, from, true, false, true);
  };
  auto leads = autograd::leads_to(results, targets);
  joint.meet = autograd::paths_meet(results);
  joint.failures.resize(results.size());
  try {
    grads = gradients(results, tangents);
  } catch (const Error&) {
    // As in eager, what has no gradient fails when one is asked for; the others have theirs.
    TensorList well, well_tangents;
    for (size_t i = 0; i < results.size(); ++i) {
      try {
        gradients({results[i]}, {tangents[i]});
        well.push_back(results[i]);
        well_tangents.push_back(tangents[i]);
      } catch (const Error& error) {
        joint.failures[i] = error.message();
      }
    }
    if (well.empty()) return joint;
    grads = gradients(well, well_tangents);
  }
  std::vector<Value> values = draft.graph.outputs();
  std::vector<int> kept;
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined()) {
      auto& follows = joint.follows.emplace_back();
      for (auto& led : leads) follows.push_back(led[i]);
      kept.push_back(joint.targets[i]);
      values.push_back(value_of(in_pairs(grads[i])));
    }
  joint.targets = std::move(kept);
  draft.graph.set_outputs(std::move(values));
  // Gradients may read what the forward does not (a tensor that an op's gradient makes): operands like any other.
  if (draft.graph.inputs().size() != operands + tangents.size())
    draft.graph = with_tangents_last(draft.graph, operands, tangents.size());
  return joint;
}

}  // namespace sinter::capture
