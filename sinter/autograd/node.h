#pragma once
// The recorded graph: nodes that turn gradients of results into gradients of operands, and the edges between them. A
// node owns what its gradients read and the nodes before it, never a tensor that owns the node.
#include <functional>
#include <string>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/ops/complex_call.h"

namespace sinter::autograd {

class Node;

// Where a gradient goes: to a result of a node, or to a leaf's own gradient; nowhere when both are null.
struct Edge {
  IntrusivePtr<Node> node;
  IntrusivePtr<TensorImpl> leaf;
  uint32_t index = 0;

  explicit operator bool() const { return node || leaf; }
};

// Sees a gradient when it is complete; what it gives takes the gradient's place, unless undefined.
using Hook = std::function<Tensor(const Tensor& grad)>;

class Node : public RefCounted {
 public:
  explicit Node(std::vector<Edge> edges);
  // Long chains go one node after another, not one inside another.
  virtual ~Node();

  // Later nodes have larger numbers: the order in which gradients flow.
  uint64_t sequence() const { return sequence_; }
  const std::vector<Edge>& edges() const { return edges_; }
  // Whether what these gradients would go through has been released.
  virtual bool is_freed(const TensorList& grads) const;

  virtual size_t results() const = 0;
  virtual std::string name() const = 0;
  // "mul (model.cpp:12)": the name and the user's line, where it is known.
  std::string text() const;
  // The gradient for each edge where `needed`, of the operand's shape and dtype. `grads` is undefined where none flows.
  virtual TensorList backward(TensorList grads, const std::vector<bool>& needed) = 0;
  // Drops everything kept for the gradient; the node cannot run again.
  virtual void release();

  // By result: hooks, which are empty once they are removed; and tensors that keep their gradients.
  std::vector<std::pair<uint32_t, std::shared_ptr<Hook>>> hooks;
  std::vector<std::pair<uint32_t, std::weak_ptr<AutogradState>>> retained;

 private:
  const uint64_t sequence_;
  bool released_ = false;
  std::vector<Edge> edges_;
  std::optional<Where> where_;  // the user's line
};

// A value kept for a gradient, and the version of its memory at that time.
struct Saved {
  Tensor value;
  uint32_t version = 0;
};

class Checkpoint;

// One op: its own gradient function on what is kept of the call.
class OpNode final : public Node {
 public:
  // An operand that shares `overwritten` stands for what it was before the last write.
  OpNode(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, size_t results,
         const Buffer* overwritten = nullptr);

  // Keeps a result; gives the alias that is kept.
  const Tensor& save_result(size_t i, const Tensor& result);
  // Drops what is kept: as the `index`th of its ops, a second run of the checkpoint keeps it again.
  void drop_kept(IntrusivePtr<Checkpoint> checkpoint, size_t index);
  // For a write whose result is broadcast into the tensor written to.
  void set_result_shape(const Shape& shape) { result_shape_ = shape; }

  size_t results() const override { return outputs_.size(); }
  std::string name() const override { return std::string(op_.name); }
  TensorList backward(TensorList grads, const std::vector<bool>& needed) override;
  void release() override;

 private:
  Tensor hand_out(const Tensor& value, uint32_t version, const Edge& history) const;
  void take_kept();

  const Op& op_;
  Attrs attrs_;
  std::vector<TensorArg> inputs_;
  SmallVector<uint32_t, 4> versions_;
  std::vector<Saved> outputs_;
  std::optional<Shape> result_shape_;
  IntrusivePtr<Checkpoint> checkpoint_;  // that has to run again before the gradient is computed; mostly null
  size_t index_ = 0;                     // among its ops
};

// A write to a part of a tensor: the tensor's history before it (edge 0), except for the part, whose history is that of
// the value written (edge 1).
class CopySlices final : public Node {
 public:
  CopySlices(Edge before, Edge written, const TensorImpl& base, const TensorImpl& part);

  size_t results() const override { return 1; }
  std::string name() const override { return "a write to a view"; }
  TensorList backward(TensorList grads, const std::vector<bool>& needed) override;

 private:
  RealGeometry base_, part_;  // of complex ones as pairs
  bool complex_base_, complex_part_;
  int64_t offset_;  // of the part from the base's first element
  bool row_major_;
};

}  // namespace sinter::autograd
