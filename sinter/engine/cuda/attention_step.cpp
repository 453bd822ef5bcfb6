#include "sinter/engine/cuda/attention_step.h"

#include <map>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/runtime/cuda/attention/attention.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter {

namespace {

// One for all launches of a stream, which run in order; it begins with counters that are zero between launches. Graphs hold
// its address, so it is never freed: a larger one takes its place for later launches.
void* workspace(Device device, int64_t bytes) {
  if (bytes == 0) return nullptr;
  static std::mutex mutex;
  static auto& all = *new std::map<runtime::CudaStream, std::vector<BufferPtr>>;
  std::lock_guard lock(mutex);
  auto& mine = all[runtime::cuda_stream(device.index)];
  if (mine.empty() || int64_t(mine.back()->bytes()) < bytes) {
    mine.push_back(allocate_buffer(size_t(std::max<int64_t>(bytes, 4 << 20)), device));
    runtime::cuda_fill(mine.back()->data(), device.index, 0, size_t(runtime::kCudaAttentionCounters));
  }
  return mine.back()->data();
}

// A place of the parameter block as the kernels take it: the address of its cell.
template <class Pointer>
void resolve(Pointer& pointer, uint32_t bit, uint32_t& indirect) {
  if (!is_place(pointer)) return;
  auto place = uint64_t(reinterpret_cast<uintptr_t>(pointer));
  uint64_t cell = (place & ~(uint64_t(1) << 63)) >> kPlaceShift, offset = place & ((uint64_t(1) << kPlaceShift) - 1);
  check(offset == 0, "attention on a part of a tensor that belongs to the caller has no fixed address");
  indirect |= bit;
  pointer = reinterpret_cast<Pointer>(uintptr_t(CudaRecording::current()->block()) + 8 * cell);
}

// `p` is the layout's problem, at whatever addresses.
runtime::CudaAttention problem_of(const eager::AttentionLayout& layout, const runtime::AttentionProblem& p) {
  const IntList& out = layout.out_strides();
  return {.batch = p.batch,
          .heads = p.heads,
          .queries = p.queries,
          .keys = p.keys,
          .size = p.size,
          .value_size = p.value_size,
          .group = p.group,
          .dtype = layout.dtype(),
          .query = p.query,
          .key = p.key,
          .value = p.value,
          .mask = p.mask,
          .causal = p.causal,
          .scale = p.scale,
          .out = p.out,
          .out_batch_stride = out[0],
          .out_head_stride = out[1],
          .out_row_stride = out[2],
          .overlaps_previous = true};
}

class AttentionStep final : public CudaStep {
 public:
  AttentionStep(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                std::span<const TensorImpl* const> outputs, Device device)
      : CudaStep(device), parts_(read_attention(attrs, inputs, outputs)), layout_(eager::attention_layout(parts_)) {
    name_ = fused_name(*attrs.body);
    made_by_ = "attention";
    if (layout_ && !takes_on_cuda(*layout_)) layout_.reset();
  }

  // The kernel for operands that are aligned as they are in the plan; launches of others find or compile theirs.
  void load() override {
    if (layout_) runtime::prepare_cuda_attention(device_.index, problem_of(*layout_, layout_->problem()));
    loaded_ = true;
  }
  bool is_loaded() const override { return loaded_; }
  size_t code_length() const override { return layout_ ? kCodeLength : 0; }

  void launch(const StepArguments& arguments) const override {
    if (!layout_) return eager::run_attention_op(parts_, arguments);
    auto addresses = eager::attention_addresses(parts_, arguments);
    queue_cuda_attention(device_, *layout_, {addresses.data(), addresses.size()});
  }

 private:
  // These take longer to compile than other kernels of a program: they begin first.
  static constexpr size_t kCodeLength = 1 << 16;

  AttentionParts parts_;
  std::optional<eager::AttentionLayout> layout_;  // nothing where the op is taken apart
  bool loaded_ = false;
};

}  // namespace

bool takes_on_cuda(const eager::AttentionLayout& layout) {
  return runtime::takes_cuda_attention(problem_of(layout, layout.problem()));
}

void queue_cuda_attention(Device device, const eager::AttentionLayout& layout, std::span<const int64_t> addresses) {
  CudaScratch copies(device, size_t(layout.copied_bytes()));
  auto problem = problem_of(layout, layout.at(addresses, copies.data()));
  problem.workspace =
      workspace(device, runtime::cuda_attention_workspace(problem, runtime::cuda_device_info(device.index)));
  resolve(problem.query.data, runtime::kIndirectQuery, problem.indirect);
  resolve(problem.key.data, runtime::kIndirectKey, problem.indirect);
  resolve(problem.value.data, runtime::kIndirectValue, problem.indirect);
  resolve(problem.mask.data, runtime::kIndirectMask, problem.indirect);
  resolve(problem.out, runtime::kIndirectOut, problem.indirect);
  runtime::cuda_attention(device.index, problem);
}

std::unique_ptr<CudaStep> make_attention_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                              std::span<const TensorImpl* const> outputs, Device device) {
  return std::make_unique<AttentionStep>(attrs, inputs, outputs, device);
}

}  // namespace sinter
