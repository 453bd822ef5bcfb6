#include "sinter/engine/cuda/convolution_epilogue.h"

#include <algorithm>
#include <map>

#include "sinter/engine/eager/eager.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

using Kind = ConvolutionEpilogue::Change::Kind;

std::optional<Kind> change_of(const Op& op) {
  static const std::pair<const Op*, Kind> kinds[] = {{&known_ops().add, Kind::kAdd},
                                                     {&known_ops().sub, Kind::kSubtract},
                                                     {&known_ops().mul, Kind::kMultiply},
                                                     {&known_ops().div, Kind::kDivide}};
  for (auto& [known, kind] : kinds)
    if (known == &op) return kind;
  return {};
}

// Walks a body in its order.
class Finder {
 public:
  explicit Finder(const Graph& body)
      : body_(body), convolution_(*body.inputs()[0].node), result_(convolution_.types[0]), channels_(result_.shape[1]) {}

  std::optional<ConvolutionEpilogue> run() {
    if (body_.outputs().size() != 1) return {};
    for (size_t i = 0; i < body_.inputs().size(); ++i) places_[body_.inputs()[i].node] = int(i);
    for (auto& node : body_.nodes()) {
      What what = &node == &convolution_ ? What::kMain : classify(node);
      if (what == What::kOther) return {};
      known_[&node] = what;
    }
    Value out = body_.outputs()[0];
    if (known_.at(out.node) != What::kMain || out.node != last_ || out.type().dtype != result_.dtype) return {};
    for (auto& change : out_.changes) note_inputs(change.by.node);
    std::sort(out_.channel_inputs.begin(), out_.channel_inputs.end());
    return std::move(out_);
  }

 private:
  enum class What : uint8_t {
    kMain,      // the convolution's result, changed
    kChannels,  // a number a channel, or one for all
    kFull,      // an input that may be the residual
    kOther
  };

  What classify(const Node& node) {
    if (node.op->kind == OpKind::kScalar) return What::kChannels;
    if (node.op->kind == OpKind::kInput) {
      auto& type = node.types[0];
      if (type.weak) return What::kOther;
      if (is_small(type.shape)) return What::kChannels;
      return type.shape.same_as(result_.shape) ? What::kFull : What::kOther;
    }
    bool small = std::all_of(node.inputs.begin(), node.inputs.end(), [&](auto& v) { return is(v, What::kChannels); });
    bool simple = node.op->kind == OpKind::kView || (node.op->kind == OpKind::kPointwise && !node.op->random);
    if (small) return simple && is_small(node.types[0].shape) ? What::kChannels : What::kOther;
    if (node.op->kind != OpKind::kPointwise || !is_floating(node.types[0].dtype)) return What::kOther;
    if (!node.types[0].shape.same_as(result_.shape)) return What::kOther;
    if (node.inputs.size() == 1) return classify_unary(node);
    auto kind = change_of(*node.op);
    if (!kind || node.inputs.size() != 2 || out_.relu) return What::kOther;
    for (size_t main : {0, 1}) {
      Value other = node.inputs[1 - main];
      if (!is_latest(node.inputs[main])) continue;
      bool swaps = *kind == Kind::kAdd || *kind == Kind::kMultiply;
      if (main == 1 && !swaps) return What::kOther;
      bool adds = *kind == Kind::kAdd || *kind == Kind::kSubtract;
      if (is(other, What::kChannels) && has_channel_shape(other.type().shape) && (adds || out_.residual < 0))
        out_.changes.push_back({*kind, other});
      else if (is(other, What::kFull) && *kind == Kind::kAdd && out_.residual < 0)
        out_.residual = full_input(other);
      else
        return What::kOther;
      last_ = &node;
      return out_.residual == kNoInput ? What::kOther : What::kMain;
    }
    return What::kOther;
  }

  What classify_unary(const Node& node) {
    const Op *relu = &known_ops().relu, *to_copy = &known_ops().cast;
    if (node.op == to_copy && is(node.inputs[0], What::kFull)) return What::kFull;
    if (!is_latest(node.inputs[0]) || (node.op != relu && node.op != to_copy)) return What::kOther;
    out_.relu = out_.relu || node.op == relu;
    last_ = &node;
    return What::kMain;
  }

  bool is(Value v, What what) const {
    auto found = known_.find(v.node);
    return found != known_.end() && found->second == what;
  }
  // What came before it has no other readers, or it would not be the latest.
  bool is_latest(Value v) const { return v.node == last_; }

  bool is_small(const Shape& shape) const {
    Dim numel = shape.numel();
    return numel.same_as(1) || numel.same_as(channels_);
  }
  bool has_channel_shape(const Shape& shape) const {
    size_t shift = result_.shape.size() - std::min(shape.size(), result_.shape.size());
    for (size_t d = 0; d < shape.size(); ++d)
      if (!shape[d].same_as(1) && d + shift != 1) return false;
    return true;
  }

  int full_input(Value v) const {
    const Node* node = v.node;
    while (node->op->kind != OpKind::kInput) node = node->inputs[0].node;
    return node->types[0].dtype == result_.dtype ? places_.at(node) : kNoInput;
  }

  void note_inputs(const Node* node) {
    if (auto place = places_.find(node); place != places_.end()) {
      auto& all = out_.channel_inputs;
      if (std::find(all.begin(), all.end(), place->second) == all.end()) all.push_back(place->second);
    }
    for (auto& v : node->inputs) note_inputs(v.node);
  }

  static constexpr int kNoInput = -2;

  const Graph& body_;
  const Node& convolution_;
  const Type& result_;
  const Dim channels_;
  const Node* last_ = &convolution_;
  std::map<const Node*, int> places_;
  std::map<const Node*, What> known_;
  ConvolutionEpilogue out_;
};

class Evaluation {
 public:
  Evaluation(const Graph& body, std::span<const Tensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined()) known_.emplace(body.inputs()[i].node, TensorArg(inputs[i]));
  }
  TensorArg value(const Node* node) {
    if (auto found = known_.find(node); found != known_.end()) return found->second;
    if (node->op->kind == OpKind::kScalar) return TensorArg(node->attrs.as<ScalarAttrs>().value);
    std::vector<TensorArg> operands;
    for (auto& v : node->inputs) operands.push_back(value(v.node));
    TensorArg out(eager::execute(*node->op, operands, node->attrs)[0]);
    known_.emplace(node, out);
    return out;
  }

 private:
  std::map<const Node*, TensorArg> known_;
};

}  // namespace

std::optional<ConvolutionEpilogue> find_epilogue(const Graph& body) {
  return Finder(body).run();
}

ChannelNumbers channel_numbers(const ConvolutionEpilogue& epilogue, const Graph& body, std::span<const Tensor> inputs,
                               int64_t channels, Device device) {
  Evaluation evaluation(body, inputs);
  ChannelNumbers out;
  auto join = [](Tensor& to, const Tensor& by, const Tensor& instead, Tensor (*join)(const Tensor&, const Tensor&)) {
    to = to.defined() ? join(to, by) : instead;
  };
  auto times = [](const Tensor& a, const Tensor& b) { return a * b; };
  auto over = [](const Tensor& a, const Tensor& b) { return a / b; };
  auto plus = [](const Tensor& a, const Tensor& b) { return a + b; };
  auto minus = [](const Tensor& a, const Tensor& b) { return a - b; };
  for (auto& change : epilogue.changes) {
    TensorArg by = evaluation.value(change.by.node);
    Tensor number = by.is_scalar() ? full({channels}, by.scalar(), TensorOptions(kFloat32).device(device))
                                   : by.tensor().to(kFloat32).reshape({-1}).expand({channels});
    switch (change.kind) {
      case Kind::kAdd:
        join(out.shift, number, number, plus);
        break;
      case Kind::kSubtract:
        join(out.shift, number, -number, minus);
        break;
      case Kind::kMultiply:
        join(out.scale, number, number, times);
        if (out.shift.defined()) out.shift = out.shift * number;
        break;
      case Kind::kDivide:
        join(out.scale, number, 1.0 / number, over);
        if (out.shift.defined()) out.shift = out.shift / number;
        break;
    }
  }
  return out;
}

}  // namespace sinter
