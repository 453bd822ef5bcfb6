#include "sinter/capture/segment_node.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/graph/run.h"
#include "sinter/ops/creation.h"
#include "sinter/passes/partial_gradients.h"

namespace sinter::capture {

namespace {

std::vector<autograd::Edge> edges_of(const Backward& gradients, std::span<const TensorArg> inputs) {
  std::vector<autograd::Edge> edges;
  for (int target : gradients.targets) edges.push_back(autograd::gradient_edge(inputs[size_t(target)].tensor()));
  return edges;
}

// As in eager, what nothing has flowed into has no gradient, which is not one of zeros: an optimiser passes it over.
TensorList spread(TensorList some, const std::vector<bool>& reached) {
  TensorList all(reached.size());
  for (size_t i = 0, next = 0; i < reached.size(); ++i)
    if (reached[i]) all[i] = std::move(some[next++]);
  return all;
}

}  // namespace

Executable& Backward::part(const std::vector<bool>& flowing) const {
  constexpr size_t kMostCompiled = 8;  // others run op by op
  std::lock_guard lock(making_);
  auto& part = parts_[flowing];
  if (!part) part = make(partial_gradients(Graph::parse(text), flowing, reached(flowing)), parts_.size() > kMostCompiled);
  return *part;
}

std::vector<bool> Backward::reached(const std::vector<bool>& flowing) const {
  std::vector<bool> out;
  for (auto& leading : follows) {
    bool any = false;
    for (size_t t = 0; t < flowing.size(); ++t) any = any || (leading[t] && flowing[t]);
    out.push_back(any);
  }
  return out;
}

SegmentNode::Kept::Kept(const TensorArg& given, autograd::Edge edge)
    : value(given.is_scalar() ? given : TensorArg(autograd::detached(given.tensor()))),
      version(given.is_scalar() ? 0 : autograd::version_of(given.tensor())),
      history(std::move(edge)) {}

const TensorArg& SegmentNode::Kept::unchanged() const {
  check(value.is_scalar() || autograd::version_of(value.tensor()) == version,
        "the gradient of a compiled function needs a value of shape {} that has been changed by an in-place write "
        "since: clone() it before the write",
        value.sizes());
  return value;
}

SegmentNode::SegmentNode(std::shared_ptr<const Backward> gradients, std::span<const TensorArg> inputs)
    : Node(edges_of(*gradients, inputs)), gradients_(std::move(gradients)) {
  for (int i : gradients_->reads) {
    const TensorArg& input = inputs[size_t(i)];
    bool flows = !input.is_scalar() && is_floating(input.dtype());
    operands_.emplace_back(input, flows ? autograd::gradient_edge(input.tensor()) : autograd::Edge());
  }
}

void SegmentNode::save(std::span<const TensorArg> inputs, std::span<const Tensor> outputs, std::span<const int64_t> sizes) {
  sizes_.assign(sizes.begin(), sizes.end());
  for (int i : gradients_->tangents) {
    auto& result = outputs[size_t(i)];
    shapes_.push_back(TensorArg(zeros({}, result.options()).expand(result.sizes())));
  }
  for (auto& saved : gradients_->saved)
    saved_.emplace_back(saved.input >= 0 ? inputs[size_t(saved.input)] : TensorArg(outputs[size_t(saved.output)]));
}

TensorList SegmentNode::backward(TensorList grads, const std::vector<bool>& needed) {
  flowed_.clear();
  std::vector<bool> flowing;
  for (size_t i = 0; i < grads.size(); ++i) {
    flowing.push_back(grads[i].defined());
    if (!grads[i].defined()) continue;
    check(gradients_->failures[i].empty(), "{}", gradients_->failures[i]);
    flowed_.insert(i);
  }
  TensorList out;
  if (autograd::grad_enabled()) {
    out = recorded_backward(grads, flowing);
  } else {
    std::vector<TensorArg> inputs;
    for (auto& kept : saved_) inputs.push_back(kept.unchanged());
    for (size_t i = 0; i < grads.size(); ++i) inputs.push_back(grads[i].defined() ? TensorArg(grads[i]) : shapes_[i]);
    if (flowed_.size() == grads.size()) {
      out.resize(gradients_->targets.size());
      gradients_->run->run(inputs, sizes_, out);
    } else {
      auto reached = gradients_->reached(flowing);
      TensorList some(size_t(std::ranges::count(reached, true)));
      if (!some.empty()) gradients_->part(flowing).run(inputs, sizes_, some);
      out = spread(std::move(some), reached);
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (!needed[i]) out[i] = {};
  return out;
}

TensorList SegmentNode::recorded_backward(const TensorList& grads, const std::vector<bool>& flowing) const {
  std::vector<TensorArg> inputs;
  for (auto& operand : operands_) {
    const TensorArg& value = operand.unchanged();
    inputs.push_back(operand.history ? TensorArg(autograd::attached(value.tensor(), operand.history)) : value);
  }
  for (size_t i = 0; i < grads.size(); ++i) inputs.push_back(grads[i].defined() ? TensorArg(grads[i]) : shapes_[i]);
  auto size_of = [&](const std::string& symbol) {
    auto place = gradients_->sizes.find(symbol);
    check(place != gradients_->sizes.end(), "the gradient of a compiled function needs the size {}, which the program does "
          "not know", symbol);
    return Dim(sizes_[size_t(place->second)]);
  };
  auto reached = gradients_->reached(flowing);
  return spread(run_graph(partial_gradients(gradients_->whole, flowing, reached), inputs, size_of), reached);
}

bool SegmentNode::meets_freed(size_t result) const {
  return std::ranges::any_of(freed_, [&](size_t other) { return gradients_->meet[result][other]; });
}

bool SegmentNode::is_freed(const TensorList& grads) const {
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined() && meets_freed(i)) return true;
  return Node::is_freed(grads);
}

void SegmentNode::release() {
  freed_.insert(flowed_.begin(), flowed_.end());
  for (size_t i = 0; i < results(); ++i)
    if (!meets_freed(i)) return;
  Node::release();
  saved_.clear();
  operands_.clear();
  shapes_.clear();
}

}  // namespace sinter::capture
