#pragma once
// Batches that a function does not see (vmap): a tensor of the batch is a handle on one that has a batch dimension in front.
// While a BatchTracer is current every op on such handles runs once on the tensors behind them. See batch_rules.cpp.
#include <functional>
#include <map>

#include "sinter/graph/op.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

// What random numbers are to a batch: refused, drawn for each element, or the same for all.
enum class Randomness : uint8_t { kError, kDifferent, kSame };

class BatchTracer final : public Tracer {
 public:
  BatchTracer(Dim size, Randomness randomness);

  // A handle on a tensor that has the batch dimension in front, or that all of the batch share.
  Tensor enter(const Tensor& outside, bool batched) const;
  // The tensor behind one, with the batch dimension in front.
  Tensor leave(const Tensor& tensor) const;
  // The tensor behind a handle of this tracer; the tensor itself where it is none.
  Tensor outside(const Tensor& tensor) const;
  Tracer* outer() const { return outer_; }
  const Dim& size() const { return size_; }
  // How often memory that another tracer answers for has been written to.
  uint32_t writes(const void* memory) const;

  // Null when the current tracer is another.
  static BatchTracer* current();

  std::vector<Tensor> record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override;
  bool decide(DimCompare op, const Dim& a, const Dim& b) override;
  int64_t specialize(const Dim& d, const std::source_location* where, const void* return_address) override;
  void asked_size(const Dim& d, const std::source_location& where) override;
  std::optional<int64_t> hint(const Dim& d) override;
  void write(const Tensor& out, const Tensor& value) override;
  Scalar item(const Tensor& tensor) override;
  const TensorImpl& memory_of(const Tensor& tensor, const char* asker) override;
  Tensor empty(const Shape& shape, const TensorOptions& options) override;
  Tensor constant(const Tensor& made) override;
  std::vector<TensorArg> draw() override;
  bool keeps_history(const Tensor& tensor) const override;

 private:
  const Dim size_;
  const Randomness randomness_;
  const uint64_t id_;
  Tracer* const outer_;
  std::map<const void*, uint32_t> writes_;
};

// One op on operands of which some have a batch dimension in front, and what they are to the function.
struct BatchCall {
  const Op& op;
  std::vector<TensorArg> operands;
  std::vector<bool> batched;
  std::vector<Type> types;  // without the batch dimension
  const Attrs& attrs;
  Dim size;
};
// Its results with a batch dimension in front. Where the op has no other rule, by a loop over the batch.
TensorList run_batched(const BatchCall& call);
bool needs_batch_loop(const Op& op);

// What f gives for tensors whose first dimension it does not see; its results have one again. Undefined ones stay so.
TensorList over_batch(const TensorList& tensors, const std::function<TensorList(const TensorList& tensors)>& f);

}  // namespace sinter
