#pragma once
// A segment on the tape: its gradient is the compiled backward.
#include "sinter/autograd/node.h"
#include "sinter/capture/segment.h"

namespace sinter::capture {

class SegmentNode final : public autograd::Node {
 public:
  // Before the forward runs: the operands' histories are those from before any write.
  SegmentNode(std::shared_ptr<const Segment> segment, std::span<const TensorArg> inputs);
  // After it: what the backward reads.
  void save(std::span<const TensorArg> inputs, std::span<const Tensor> outputs, std::span<const int64_t> sizes);

  size_t results() const override;
  std::string name() const override { return "a compiled function"; }
  TensorList backward(TensorList grads, const std::vector<bool>& needed) override;
  void release() override;

 private:
  std::shared_ptr<const Segment> segment_;
  std::vector<TensorArg> saved_;
  std::vector<uint32_t> versions_;
  std::vector<TensorArg> shapes_;  // zero-strided stand-ins of the differentiable results, for gradients that do not flow
  std::vector<int64_t> sizes_;
};

}  // namespace sinter::capture
