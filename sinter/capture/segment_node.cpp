#include "sinter/capture/segment_node.h"

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/ops/creation.h"

namespace sinter::capture {

namespace {

std::vector<autograd::Edge> edges_of(const Segment& segment, std::span<const TensorArg> inputs) {
  std::vector<autograd::Edge> edges;
  if (segment.backward)
    for (int target : segment.backward->targets) edges.push_back(autograd::gradient_edge(inputs[size_t(target)].tensor()));
  else  // its backward only tells why there is none
    for (auto& input : inputs)
      if (!input.is_scalar() && is_floating(input.dtype())) edges.push_back(autograd::gradient_edge(input.tensor()));
  return edges;
}

}  // namespace

SegmentNode::SegmentNode(std::shared_ptr<const Segment> segment, std::span<const TensorArg> inputs)
    : Node(edges_of(*segment, inputs)), segment_(std::move(segment)) {}

void SegmentNode::save(std::span<const TensorArg> inputs, std::span<const Tensor> outputs, std::span<const int64_t> sizes) {
  sizes_.assign(sizes.begin(), sizes.end());
  for (size_t i = 0; i < segment_->outputs.size(); ++i)
    if (segment_->outputs[i].differentiable) shapes_.push_back(TensorArg(zeros({}, outputs[i].options()).expand(outputs[i].sizes())));
  if (!segment_->backward) return;
  for (auto& saved : segment_->backward->saved) {
    const TensorArg& kept = saved.input >= 0 ? inputs[size_t(saved.input)] : TensorArg(outputs[size_t(saved.output)]);
    saved_.push_back(kept.is_scalar() ? kept : TensorArg(autograd::detached(kept.tensor())));
    versions_.push_back(kept.is_scalar() ? 0 : autograd::version_of(kept.tensor()));
  }
}

size_t SegmentNode::results() const {
  size_t count = 0;
  for (auto& output : segment_->outputs) count += output.differentiable;
  return count;
}

TensorList SegmentNode::backward(TensorList grads, const std::vector<bool>& needed) {
  check(segment_->backward != nullptr, "{}", segment_->no_backward);
  check(!autograd::grad_enabled(),
        "backward: the gradient of a compiled function cannot be differentiated again (create_graph). Compile the whole "
        "function that calls grad(), or keep this one eager with compiler::disable()");
  std::vector<TensorArg> inputs;
  for (size_t i = 0; i < saved_.size(); ++i) {
    check(saved_[i].is_scalar() || autograd::version_of(saved_[i].tensor()) == versions_[i],
          "the gradient of a compiled function needs a value of shape {} that has been changed by an in-place write "
          "since: clone() it before the write",
          saved_[i].sizes());
    inputs.push_back(saved_[i]);
  }
  for (size_t i = 0; i < grads.size(); ++i) inputs.push_back(grads[i].defined() ? TensorArg(grads[i]) : shapes_[i]);
  TensorList out(segment_->backward->targets.size());
  segment_->backward->run->run(inputs, sizes_, out);
  // As in eager, what nothing has flowed into has no gradient, which is not one of zeros: an optimiser passes it over.
  for (size_t i = 0; i < out.size(); ++i) {
    auto& follows = segment_->backward->follows[i];
    bool flowed = false;
    for (size_t t = 0; t < grads.size(); ++t) flowed = flowed || (follows[t] && grads[t].defined());
    if (!needed[i] || !flowed) out[i] = {};
  }
  return out;
}

void SegmentNode::release() {
  Node::release();
  saved_.clear();
  shapes_.clear();
}

}  // namespace sinter::capture
