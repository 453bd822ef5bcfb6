#include "sinter/ops/batching.h"

#include <atomic>

#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

std::atomic<uint64_t> next_id{1};

class BatchedValue final : public TracedValue {
 public:
  BatchedValue(const BatchTracer* tracer, uint64_t id, Tensor outside, bool batched)
      : tracer(tracer), id(id), outside(std::move(outside)), batched(batched) {}

  const void* memory() const override {
    auto& impl = outside.impl();
    return impl.traced ? impl.traced->memory() : impl.buffer.get();
  }
  uint32_t version() const override {
    auto& impl = outside.impl();
    if (impl.buffer) return impl.buffer->version.load(std::memory_order_relaxed);
    return impl.traced->version() + tracer->writes(memory());
  }

  const BatchTracer* const tracer;
  const uint64_t id;
  const Tensor outside;
  const bool batched;
};

const BatchedValue* value_of(const Tensor& tensor, uint64_t id) {
  if (!tensor.defined() || !tensor.impl().traced) return nullptr;
  auto* value = dynamic_cast<const BatchedValue*>(tensor.impl().traced.get());
  return value && value->id == id ? value : nullptr;
}

[[noreturn]] void refuse(const char* asker) {
  throw_error(format("{}: the tensor is one for each element of a batch inside vmap(), so it has no single value here: use "
                     "ops on tensors, such as where() for a branch", asker));
}

}  // namespace

BatchTracer::BatchTracer(Dim size, Randomness randomness)
    : size_(size), randomness_(randomness), id_(next_id.fetch_add(1, std::memory_order_relaxed)), outer_(Tracer::current()) {}

BatchTracer* BatchTracer::current() { return dynamic_cast<BatchTracer*>(Tracer::current()); }

Tensor BatchTracer::enter(const Tensor& outside, bool batched) const {
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = outside.dtype();
  impl->device = outside.device();
  Shape shape = outside.sizes();
  impl->traced_shape = batched ? Shape(shape.begin() + 1, shape.end()) : shape;
  impl->traced = make_intrusive<BatchedValue>(this, id_, outside, batched);
  return Tensor(std::move(impl));
}

Tensor BatchTracer::leave(const Tensor& tensor) const {
  auto* value = value_of(tensor, id_);
  if (value && value->batched) return value->outside;
  TracerScope scope(outer_);
  Tensor shared = value ? value->outside : tensor;
  Shape shape{size_};
  shape.append(shared.sizes());
  return expand(shared, shape);
}

Tensor BatchTracer::outside(const Tensor& tensor) const {
  auto* value = value_of(tensor, id_);
  return value ? value->outside : tensor;
}

uint32_t BatchTracer::writes(const void* memory) const {
  auto it = writes_.find(memory);
  return it == writes_.end() ? 0 : it->second;
}

std::vector<Tensor> BatchTracer::record(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  BatchCall call{op, {}, {}, {}, attrs, size_};
  bool any = false;
  for (auto& arg : inputs) {
    auto* value = arg.is_scalar() ? nullptr : value_of(arg.tensor(), id_);
    call.batched.push_back(value && value->batched);
    any = any || call.batched.back();
    call.operands.push_back(value ? TensorArg(value->outside, arg.where()) : arg);
    call.types.push_back({arg.dtype(), arg.sizes(), arg.is_scalar() ? Device() : arg.tensor().device(), arg.is_scalar()});
  }
  // The body of a composite is made of ops that have rules.
  if (any && op.kind == OpKind::kComposite && needs_batch_loop(op)) return op.decompose(inputs, attrs);
  TensorList results;
  {
    TracerScope scope(outer_);
    results = any ? run_batched(call) : Dispatcher::instance().run(op, call.operands, attrs);
  }
  for (auto& result : results) result = enter(result, any);
  return results;
}

bool BatchTracer::decide(DimCompare op, const Dim& a, const Dim& b) {
  SINTER_INTERNAL_ASSERT(outer_, "a size of a batch is no number");
  TracerScope scope(outer_);
  return outer_->decide(op, a, b);
}

int64_t BatchTracer::specialize(const Dim& d, const std::source_location* where, const void* return_address) {
  SINTER_INTERNAL_ASSERT(outer_, "a size of a batch is no number");
  TracerScope scope(outer_);
  return outer_->specialize(d, where, return_address);
}

void BatchTracer::asked_size(const Dim& d, const std::source_location& where) {
  TracerScope scope(outer_);
  if (outer_) outer_->asked_size(d, where);
}

std::optional<int64_t> BatchTracer::hint(const Dim& d) {
  TracerScope scope(outer_);
  return outer_ ? outer_->hint(d) : std::nullopt;
}

void BatchTracer::write(const Tensor& out, const Tensor& value) {
  auto *to = value_of(out, id_), *from = value_of(value, id_);
  bool batched = to && to->batched;
  check(batched || !(from && from->batched),
        "vmap: a tensor of shape {} that the whole batch shares cannot hold what differs from element to element: write to a "
        "clone of a tensor of the batch, or use the form of the op that is not in place", out.sizes());
  check(!out.requires_grad() && !value.requires_grad(),
        "vmap: an in-place write to a tensor whose gradient is taken inside vmap(): use the form of the op that is not in place");
  Tensor result = batched ? leave(value) : outside(value), target = outside(out);
  TracerScope scope(outer_);
  target.copy_(result);
  if (target.is_traced()) ++writes_[target.impl().traced->memory()];
}

Scalar BatchTracer::item(const Tensor& tensor) {
  auto* value = value_of(tensor, id_);
  if (value && value->batched) refuse("item");
  Tensor shared = outside(tensor);
  TracerScope scope(outer_);
  return shared.item();
}

const TensorImpl& BatchTracer::memory_of(const Tensor& tensor, const char* asker) {
  auto* value = value_of(tensor, id_);
  if (value && value->batched) refuse(asker);
  TracerScope scope(outer_);
  const Tensor& shared = value ? value->outside : tensor;
  if (outer_) return outer_->memory_of(shared, asker);
  check(!shared.is_traced(), "{}: a tensor of another vmap() has no memory", asker);
  return shared.impl();
}

Tensor BatchTracer::empty(const Shape& shape, const TensorOptions& options) {
  TracerScope scope(outer_);
  return sinter::empty(shape, options);
}

Tensor BatchTracer::constant(const Tensor& made) {
  TracerScope scope(outer_);
  return outer_ ? outer_->constant(made) : made;
}

// A seed for each element of the batch.
std::vector<TensorArg> BatchTracer::draw() {
  check(randomness_ != Randomness::kError,
        "vmap: random numbers are drawn inside: say vmap(f, in_dims, out_dims, \"different\") for others in each element of "
        "the batch, or \"same\"");
  TracerScope scope(outer_);
  std::vector<TensorArg> drawn;
  if (outer_) drawn = outer_->draw();
  if (drawn.empty()) {
    auto [seed, offset] = default_generator().next();
    drawn = {TensorArg(seed), TensorArg(offset)};
  }
  if (randomness_ == Randomness::kSame) return drawn;
  constexpr int64_t kStep = 0x9E3779B9;  // far from the seeds that people write
  Tensor seeds = arange_of_size(size_, kInt64) * kStep;
  return {TensorArg(enter(add(seeds, drawn[0]), true)), drawn[1]};
}

bool BatchTracer::keeps_history(const Tensor& tensor) const { return value_of(tensor, id_) != nullptr; }

TensorList over_batch(const TensorList& tensors, const std::function<TensorList(const TensorList&)>& f) {
  std::optional<Dim> size;
  for (auto& t : tensors) {
    if (!t.defined()) continue;
    check(t.dim() > 0, "a tensor of a batch needs a dimension for it, and this one is 0-d");
    check(!size || *size == t.size(0), "batches of {} and {} elements do not go together", size.value_or(0), t.size(0));
    size = t.size(0);
  }
  check(size.has_value(), "none of the tensors has a batch dimension");
  BatchTracer level(*size, Randomness::kError);
  TensorList inside, results;
  for (auto& t : tensors) inside.push_back(t.defined() ? level.enter(t, true) : t);
  {
    TracerScope scope(&level);
    results = f(inside);
  }
  for (auto& result : results)
    if (result.defined()) result = level.leave(result);
  return results;
}

}  // namespace sinter
