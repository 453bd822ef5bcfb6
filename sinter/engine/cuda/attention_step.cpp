#include "sinter/engine/cuda/attention_step.h"

#include <map>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/runtime/cuda/attention/attention_backward.h"
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
  auto& mine = all[runtime::cuda_stream(device.index())];
  if (mine.empty() || int64_t(mine.back()->bytes()) < bytes) {
    mine.push_back(allocate_buffer(size_t(std::max<int64_t>(bytes, 4 << 20)), device));
    runtime::cuda_fill(mine.back()->data(), device.index(), 0, size_t(runtime::kCudaAttentionCounters));
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

// What a draw is made of, where these numbers lie in the parameter block.
void resolve_draw(runtime::AttentionDropout& dropout, uint32_t placed, uint32_t& indirect) {
  auto number = [&](int64_t& value, uint32_t bit) {
    if (!(placed & bit)) return;
    auto cell = reinterpret_cast<const void*>(uintptr_t(value));
    resolve(cell, bit, indirect);
    value = int64_t(reinterpret_cast<uintptr_t>(cell));
  };
  number(dropout.seed, runtime::kIndirectSeed);
  number(dropout.offset, runtime::kIndirectOffset);
}

// What both directions have in common, in memory of the layout, at whatever addresses.
template <class Problem>
Problem problem_in(const eager::AttentionLayout& layout, const eager::AttentionMemory& memory) {
  auto& p = memory.problem;
  Problem out;
  out.batch = p.batch, out.heads = p.heads, out.queries = p.queries, out.keys = p.keys;
  out.size = p.size, out.value_size = p.value_size, out.group = p.group;
  out.dtype = layout.dtype();
  out.query = p.query, out.key = p.key, out.value = p.value, out.mask = p.mask;
  out.causal = p.causal, out.scale = p.scale, out.dropout = p.dropout;
  out.overlaps_previous = true;
  return out;
}
template <class Problem>
void resolve_operands(Problem& problem) {
  resolve(problem.query.data, runtime::kIndirectQuery, problem.indirect);
  resolve(problem.key.data, runtime::kIndirectKey, problem.indirect);
  resolve(problem.value.data, runtime::kIndirectValue, problem.indirect);
  resolve(problem.mask.data, runtime::kIndirectMask, problem.indirect);
  resolve(problem.lse, runtime::kIndirectLse, problem.indirect);
}

runtime::CudaAttention forward_of(const eager::AttentionLayout& layout, const eager::AttentionMemory& memory) {
  auto out = problem_in<runtime::CudaAttention>(layout, memory);
  const IntList& strides = layout.strides_of(0);
  out.out = memory.problem.out;
  out.out_batch_stride = strides[0], out.out_head_stride = strides[1], out.out_row_stride = strides[2];
  out.lse = memory.problem.log_sums;
  return out;
}

runtime::CudaAttentionBackward backward_of(const eager::AttentionLayout& layout, const eager::AttentionMemory& memory) {
  auto gradient = [&](size_t i) {
    const IntList& strides = layout.strides_of(i);
    return runtime::CudaAttentionGradient{memory.gradients[i], strides[0], strides[1], strides[2]};
  };
  auto out = problem_in<runtime::CudaAttentionBackward>(layout, memory);
  out.grad_out = memory.grad;
  out.lse = memory.log_sums, out.means = memory.means;
  out.grad_query = gradient(0), out.grad_key = gradient(1), out.grad_value = gradient(2);
  return out;
}

// Gradients that nobody wants are written all the same, to memory for the time of the launch.
int64_t unwanted_bytes(const eager::AttentionLayout& layout) {
  auto& p = layout.memory().problem;
  const int64_t rows[] = {p.heads * p.queries * p.size, p.heads / p.group * p.keys * p.size,
                          p.heads / p.group * p.keys * p.value_size};
  int64_t bytes = 0;
  for (size_t i = 0; i < 3 && layout.is_backward(); ++i)
    if (layout.strides_of(i) == IntList(size_t(3), int64_t(0))) bytes = std::max(bytes, p.batch * rows[i] * item_size(layout.dtype()));
  return bytes;
}

void queue_backward(Device device, const eager::AttentionLayout& layout, std::span<const int64_t> addresses,
                    uint32_t placed_numbers) {
  const int64_t copied = layout.copied_bytes();
  CudaScratch scratch(device, size_t(copied + unwanted_bytes(layout)));
  auto memory = layout.at(addresses, scratch.data());
  for (auto& gradient : memory.gradients)
    if (!gradient) gradient = static_cast<char*>(scratch.data()) + copied;
  auto problem = backward_of(layout, memory);
  resolve_operands(problem);
  resolve_draw(problem.dropout, placed_numbers, problem.indirect);
  resolve(problem.means, runtime::kIndirectMeans, problem.indirect);
  resolve(problem.grad_out.data, runtime::kIndirectGradOut, problem.indirect);
  resolve(problem.grad_query.data, runtime::kIndirectGradQuery, problem.indirect);
  resolve(problem.grad_key.data, runtime::kIndirectGradKey, problem.indirect);
  resolve(problem.grad_value.data, runtime::kIndirectGradValue, problem.indirect);
  runtime::cuda_attention_backward(device.index(), problem);
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
    if (layout_ && layout_->is_backward())
      runtime::prepare_cuda_attention_backward(device_.index(), backward_of(*layout_, layout_->memory()));
    else if (layout_)
      runtime::prepare_cuda_attention(device_.index(), forward_of(*layout_, layout_->memory()));
    loaded_ = true;
  }
  bool is_loaded() const override { return loaded_; }
  size_t code_length() const override { return layout_ ? kCodeLength : 0; }

  void launch(const StepArguments& arguments) const override {
    if (!layout_) return eager::run_attention_op(parts_, arguments);
    auto addresses = eager::attention_addresses(parts_, arguments);
    queue_cuda_attention(device_, *layout_, {addresses.data(), addresses.size()}, placed_numbers(arguments));
  }

 private:
  uint32_t placed_numbers(const StepArguments& arguments) const {
    if (!layout_->memory().problem.dropout.is_on()) return 0;
    auto is_placed = [&](int at) { return at >= 0 && arguments.is_indirect(size_t(at)); };
    auto last = parts_.operands.rbegin();
    return (is_placed(last[1]) ? runtime::kIndirectSeed : 0u) | (is_placed(last[0]) ? runtime::kIndirectOffset : 0u);
  }


  // These take longer to compile than other kernels of a program: they begin first.
  static constexpr size_t kCodeLength = 1 << 16;

  AttentionParts parts_;
  std::optional<eager::AttentionLayout> layout_;  // nothing where the op is taken apart
  bool loaded_ = false;
};

}  // namespace

bool takes_on_cuda(const eager::AttentionLayout& layout) {
  if (layout.is_backward()) return runtime::takes_cuda_attention_backward(backward_of(layout, layout.memory()));
  return runtime::takes_cuda_attention(forward_of(layout, layout.memory()));
}

void queue_cuda_attention(Device device, const eager::AttentionLayout& layout, std::span<const int64_t> addresses,
                          uint32_t placed_numbers) {
  if (layout.is_backward()) return queue_backward(device, layout, addresses, placed_numbers);
  CudaScratch copies(device, size_t(layout.copied_bytes()));
  auto problem = forward_of(layout, layout.at(addresses, copies.data()));
  problem.workspace =
      workspace(device, runtime::cuda_attention_workspace(problem, runtime::cuda_device_info(device.index())));
  resolve_operands(problem);
  resolve_draw(problem.dropout, placed_numbers, problem.indirect);
  resolve(problem.out, runtime::kIndirectOut, problem.indirect);
  runtime::cuda_attention(device.index(), problem);
}

std::unique_ptr<CudaStep> make_attention_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                              std::span<const TensorImpl* const> outputs, Device device) {
  return std::make_unique<AttentionStep>(attrs, inputs, outputs, device);
}

}  // namespace sinter
