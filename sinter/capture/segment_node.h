#pragma once
// A segment on the tape: its gradient is the compiled backward. A gradient that shall be differentiated again
// (create_graph) is computed op by op from the operands, with a history.
#include <set>

#include "sinter/autograd/node.h"
#include "sinter/capture/segment.h"

namespace sinter::capture {

class SegmentNode final : public autograd::Node {
 public:
  // Before the forward runs: the operands' histories are those from before any write.
  SegmentNode(std::shared_ptr<const Backward> gradients, std::span<const TensorArg> inputs);
  // After it: what the backward reads.
  void save(std::span<const TensorArg> inputs, std::span<const Tensor> outputs, std::span<const int64_t> sizes);

  size_t results() const override { return gradients_->tangents.size(); }
  std::string name() const override { return "a compiled function"; }
  TensorList backward(TensorList grads, const std::vector<bool>& needed) override;
  // Results that have no op in common are freed one after the other, as those of single ops would be.
  bool is_freed(const TensorList& grads) const override;
  void release() override;

 private:
  // A value as it was, found by its version; an operand also with its history.
  struct Kept {
    explicit Kept(const TensorArg& given, autograd::Edge edge = {});
    const TensorArg& unchanged() const;

    TensorArg value;
    uint32_t version = 0;
    autograd::Edge history;
  };
  TensorList recorded_backward(const TensorList& grads, const std::vector<bool>& flowing) const;
  bool meets_freed(size_t result) const;

  std::shared_ptr<const Backward> gradients_;
  std::vector<Kept> saved_, operands_;
  std::vector<TensorArg> shapes_;  // zero-strided stand-ins of the differentiable results, for gradients that do not flow
  std::vector<int64_t> sizes_;
  std::set<size_t> flowed_, freed_;  // results: of the last gradients, and of those before that were not retained
};

}  // namespace sinter::capture
