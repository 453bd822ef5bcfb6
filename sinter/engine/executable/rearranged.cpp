#include "sinter/engine/executable/rearranged.h"

#include <map>
#include <mutex>

#include "sinter/base/error.h"

namespace sinter {

Rearranged::Rearranged(std::shared_ptr<const CompiledStep> step, Device device)
    : step_(std::move(step)), device_(device), from_(step_->rearranged_from()), shared_order_(step_->shared_order()) {}

// Asked at every call.
bool Rearranged::is_current(std::span<const TensorArg> inputs, void* stream) const {
  if (!made_ || stream_ != stream || made_->sources.size() != from_.size()) return false;
  for (size_t i = 0; i < from_.size(); ++i)
    if (!made_->sources[i].is_of(inputs[size_t(from_[i])].tensor().impl())) return false;
  return true;
}

void Rearranged::refresh(std::span<const TensorArg> inputs, FunctionRef<StepArguments()> arguments, void* stream) {
  if (is_current(inputs, stream)) return;
  std::vector<Source> now;
  now.reserve(from_.size());
  for (int i : from_) {
    auto& impl = inputs[size_t(i)].tensor().impl();
    SINTER_INTERNAL_ASSERT(impl.buffer, "an operand has no memory");
    now.push_back({impl.buffer, impl.offset, impl.buffer->version.load(std::memory_order_relaxed)});
  }
  if (!shared_order_.empty()) {
    made_ = shared(std::move(now), arguments());
  } else {
    // In the same memory: a recording has its address.
    if (!made_) made_ = std::make_shared<Made>(Made{allocate_buffer(size_t(step_->rearranged_bytes()), device_), {}});
    made_->sources.clear();
    step_->rearrange(arguments(), made_->memory->data());
    made_->sources = std::move(now);
  }
  stream_ = stream;
}

std::shared_ptr<Rearranged::Made> Rearranged::shared(std::vector<Source> sources, const StepArguments& arguments) const {
  static std::mutex mutex;
  static std::multimap<std::string, std::weak_ptr<Made>> known;
  std::lock_guard lock(mutex);
  std::erase_if(known, [](auto& entry) { return entry.second.expired(); });
  for (auto [it, end] = known.equal_range(shared_order_); it != end; ++it)
    if (auto made = it->second.lock(); made && made->sources == sources) return made;
  auto made = std::make_shared<Made>(
      Made{allocate_buffer(size_t(step_->rearranged_bytes()), device_), std::move(sources)});
  step_->rearrange(arguments, made->memory->data());
  known.emplace(shared_order_, made);
  return made;
}

}  // namespace sinter
