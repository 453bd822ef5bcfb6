#include "sinter/engine/executable/tune_operands.h"

#include <algorithm>

#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"

namespace sinter {

namespace {

constexpr int64_t kSmall = int64_t(1) << 20;  // operands that the step before is likely to have left in a cache
constexpr int64_t kMaxSets = 16;

}  // namespace

const TuneOperands::Set& TuneOperands::next() {
  if (sets_.empty()) {
    sets_.push_back(make_set());
    int64_t count = bytes_ < kSmall ? 1 : std::min(kMaxSets, 2 * engine_of(plan_.device).cache_bytes() / bytes_ + 1);
    while (int64_t(sets_.size()) < count) sets_.push_back(make_set());
  }
  at_ = (at_ + 1) % sets_.size();
  return sets_[at_];
}

TuneOperands::Set TuneOperands::make_set() {
  Set set;
  for (auto& o : step_.inputs) {
    auto& arg = set.inputs.emplace_back(o.slot < 0 ? TensorArg(o.number) : TensorArg(tensor(o.slot)));
    if (arg.is_scalar())
      set.arguments.add_number(eager::slot_of(arg.scalar()));
    else
      set.arguments.add_address(eager::slot_of(arg.tensor().impl()), true);
  }
  for (int slot : step_.results)
    set.arguments.add_address(eager::slot_of(set.results.emplace_back(tensor(slot)).impl()));
  return set;
}

// Small numbers rather than whatever lies there; zeros where they may be indices.
Tensor TuneOperands::tensor(int slot) {
  auto impl = make_intrusive<TensorImpl>(plan_.slots[size_t(slot)].geometry.impl());
  int64_t reach = impl->numel > 0;
  for (size_t d = 0; d < impl->sizes.size() && impl->numel; ++d) reach += (impl->sizes[d] - 1) * impl->strides[d];
  int64_t bytes = reach * item_size(impl->dtype);
  bytes_ += bytes;
  impl->buffer = allocate_buffer(size_t(bytes), plan_.device);
  impl->offset = 0;
  unsigned char filling = is_floating(impl->dtype) ? 0x3c : 0;
  if (bytes) engine_of(plan_.device).fill(impl->buffer->data(), filling, size_t(bytes));
  return Tensor(std::move(impl));
}

}  // namespace sinter
