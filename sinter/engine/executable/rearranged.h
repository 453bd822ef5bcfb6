#pragma once
// What a step has made of operands that stay the same from call to call (CompiledStep::rearranged_bytes).
#include "sinter/base/function_ref.h"
#include "sinter/engine/step/compiled_step.h"

namespace sinter {

// Memory and what it was made of: held, so that no other memory can be taken for it.
class Rearranged {
 public:
  Rearranged(std::shared_ptr<const CompiledStep> step, Device device);

  // Positions among the step's operands.
  const std::vector<int>& from() const { return from_; }
  // Makes it, unless what is there was made of the same; `inputs` are the step's, and so are `arguments`, which are asked for
  // only then. Never while a recording is made. `stream`: what is made on one is not read on another.
  void refresh(std::span<const TensorArg> inputs, FunctionRef<StepArguments()> arguments, void* stream);
  int64_t address() const { return made_ ? int64_t(reinterpret_cast<uintptr_t>(made_->memory->data())) : 0; }

 private:
  struct Source {
    BufferPtr buffer;
    int64_t offset;
    uint32_t version;
    bool operator==(const Source&) const = default;
    bool is_of(const TensorImpl& t) const {
      return buffer == t.buffer && offset == t.offset && version == t.buffer->version.load(std::memory_order_relaxed);
    }
  };
  struct Made {
    BufferPtr memory;
    std::vector<Source> sources;
  };
  bool is_current(std::span<const TensorArg> inputs, void* stream) const;
  // What is made of these, by this step or by another one with the same order.
  std::shared_ptr<Made> shared(std::vector<Source> sources, const StepArguments& arguments) const;

  std::shared_ptr<const CompiledStep> step_;
  Device device_;
  std::vector<int> from_;
  std::string shared_order_;
  std::shared_ptr<Made> made_;
  void* stream_ = nullptr;
};

}  // namespace sinter
