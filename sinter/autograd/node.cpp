#include "sinter/autograd/node.h"

#include <atomic>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/checkpoint.h"
#include "sinter/autograd/history.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::autograd {

namespace {

std::atomic<uint64_t> next_sequence{1};

// Edges of nodes under destruction on this thread; null when there is none.
thread_local std::vector<std::vector<Edge>>* doomed = nullptr;

bool same_shape(const Shape& a, const Shape& b) {
  if (a.same_as(b)) return true;
  bool same = a.size() == b.size();
  for (size_t d = 0; same && d < a.size(); ++d) same = a[d] == b[d];
  return same;
}

std::vector<Edge> edges_of(std::span<const TensorArg> inputs) {
  std::vector<Edge> edges(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!inputs[i].is_scalar() && is_differentiable(inputs[i].dtype())) edges[i] = gradient_edge(inputs[i].tensor());
  return edges;
}

}  // namespace

Node::Node(std::vector<Edge> edges)
    : sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)), edges_(std::move(edges)) {
  if (auto* where = UserPosition::current()) where_ = *where;
}

Node::~Node() {
  if (doomed) {
    doomed->push_back(std::move(edges_));
    return;
  }
  std::vector<std::vector<Edge>> pending;
  doomed = &pending;
  pending.push_back(std::move(edges_));
  while (!pending.empty()) {
    auto edges = std::move(pending.back());
    pending.pop_back();
  }
  doomed = nullptr;
}

std::string Node::text() const { return where_ ? name() + " (" + to_string(*where_) + ")" : name(); }

bool Node::is_freed(const TensorList&) const { return released_; }

void Node::release() {
  released_ = true;
  edges_.clear();
}

// --- OpNode ----------------------------------------------------------------------------------------------------------

OpNode::OpNode(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, size_t results,
               const Buffer* overwritten)
    : Node(edges_of(inputs)), op_(op), attrs_(attrs), outputs_(results) {
  inputs_.reserve(inputs.size());
  for (auto& arg : inputs) {
    if (arg.is_scalar()) {
      inputs_.push_back(arg);
      versions_.push_back(0);
      continue;
    }
    bool gone = overwritten && arg.tensor().impl().buffer.get() == overwritten;
    Tensor saved = gone ? detached(arg.tensor()) : saved_form(arg.tensor());
    versions_.push_back(version_of(saved) - (gone ? 1 : 0));
    inputs_.emplace_back(saved, arg.where());
  }
}

const Tensor& OpNode::save_result(size_t i, const Tensor& result) {
  bool keep_apart = is_differentiable(result.dtype()) || result.is_traced();
  outputs_[i] = {keep_apart ? without_history(result) : result, version_of(result)};
  return outputs_[i].value;
}

void OpNode::drop_kept(IntrusivePtr<Checkpoint> checkpoint, size_t index) {
  checkpoint_ = std::move(checkpoint);
  index_ = index;
  inputs_.clear();
  for (auto& output : outputs_) output.value = {};
}

void OpNode::take_kept() {
  auto checkpoint = std::move(checkpoint_);
  if (!checkpoint) return;
  auto twin = checkpoint->op_again(index_);
  check(&twin->op_ == &op_ && twin->outputs_.size() == outputs_.size(),
        "checkpoint: the second run calls {} where the first called {}: the function must do the same both times",
        twin->text(), text());
  inputs_ = std::move(twin->inputs_);
  versions_ = std::move(twin->versions_);
  outputs_ = std::move(twin->outputs_);
}

void OpNode::release() {
  Node::release();
  checkpoint_ = nullptr;
  inputs_.clear();
  for (auto& output : outputs_) output.value = {};
}

Tensor OpNode::hand_out(const Tensor& value, uint32_t version, const Edge& history) const {
  if (version_of(value) != version) {
    Tensor stale = detached(value);
    ensure_state(stale.impl()).stale = format(
        "the gradient of {} needs a value of shape {} that has been changed by an in-place write since: clone() it "
        "before the write, or use the form of the op that is not in place",
        text(), value.sizes());
    return stale;
  }
  bool whole = value.impl().requires_grad || value.impl().autograd;
  return history && !whole && grad_enabled() ? attached(value, history) : value;
}

TensorList OpNode::backward(TensorList grads, const std::vector<bool>& needed) {
  check(op_.grad, "{}: no gradient can be taken: {}. Call detach() on its operands if none is meant", text(),
        op_.no_grad_reason);
  take_kept();
  std::vector<TensorArg> inputs;
  inputs.reserve(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_scalar())
      inputs.push_back(inputs_[i]);
    else
      inputs.emplace_back(hand_out(inputs_[i].tensor(), versions_[i], edges()[i]), inputs_[i].where());
  }
  TensorList outputs(outputs_.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto& saved = outputs_[i];
    Edge self;
    if (is_differentiable(saved.value.dtype())) self = {IntrusivePtr<Node>::share(this), nullptr, uint32_t(i)};
    outputs[i] = hand_out(saved.value, saved.version, self);
  }
  if (result_shape_ && grads[0].defined()) grads[0] = sum_to_size(grads[0], *result_shape_);

  TensorList out = op_.grad(GradCall{op_, inputs, outputs, grads, attrs_, needed});
  SINTER_INTERNAL_ASSERT(out.size() == inputs_.size(), "{}: {} gradients for {} operands", op_.name, out.size(),
                         inputs_.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!needed[i]) out[i] = {};
    if (!out[i].defined()) continue;
    const Tensor& operand = inputs_[i].tensor();
    Shape shape = operand.sizes();
    if (op_.kind == OpKind::kPointwise && !out[i].sizes().same_as(shape)) out[i] = sum_to_size(out[i], shape);
    if (out[i].dtype() != operand.dtype()) out[i] = out[i].to(operand.dtype());
    SINTER_INTERNAL_ASSERT(same_shape(out[i].sizes(), shape), "{}: the gradient of operand {} has shape {}, not {}",
                           op_.name, i, out[i].sizes(), shape);
  }
  return out;
}

// --- CopySlices ------------------------------------------------------------------------------------------------------

CopySlices::CopySlices(Edge before, Edge written, const TensorImpl& base, const TensorImpl& part)
    : Node({std::move(before), std::move(written)}),
      base_(real_geometry(base)),
      part_(real_geometry(part)),
      complex_base_(is_complex(base.dtype)),
      complex_part_(is_complex(part.dtype)),
      offset_(part_.offset - base_.offset),
      row_major_(base.contiguous) {
  check(offset_ >= 0,
        "a view that begins before the first element of its base cannot be written in place with gradients");
}

// The gradient is laid out as the base is in memory; the part is then the same look at it as the part was at the base.
TensorList CopySlices::backward(TensorList grads, const std::vector<bool>& needed) {
  auto span = [](const IntList& sizes, const IntList& strides) {
    int64_t last = 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 0) return int64_t(0);
      last += (sizes[d] - 1) * strides[d];
    }
    return last + 1;
  };
  const Tensor grad = complex_base_ ? view_as_real(grads[0]) : grads[0];
  int64_t base_span = span(base_.sizes, base_.strides), part_span = span(part_.sizes, part_.strides);
  bool direct = row_major_ && offset_ + part_span <= base_span;
  Tensor memory;
  if (direct)
    memory = reshape(grad.contiguous(), {-1});
  else
    memory = as_strided_scatter(zeros({std::max(base_span, offset_ + part_span)}, grad.options()), grad, base_.sizes,
                                base_.strides);
  TensorList out(2);
  if (needed[1]) {
    out[1] = as_strided(memory, part_.sizes, part_.strides, memory.storage_offset() + offset_);
    if (complex_part_) out[1] = look_at_pairs(out[1]);
  }
  if (needed[0]) {
    Tensor rest = as_strided_scatter(memory, zeros(Shape(part_.sizes), grad.options()), part_.sizes, part_.strides, offset_);
    out[0] = direct ? reshape(rest, Shape(base_.sizes))
                    : as_strided(rest, base_.sizes, base_.strides, rest.storage_offset());
    if (complex_base_) out[0] = look_at_pairs(out[0]);
  }
  return out;
}

}  // namespace sinter::autograd
