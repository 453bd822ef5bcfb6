// Attention by the kernels of runtime/cuda/attention.
#include <cmath>
#include <map>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/eager/attention.h"
#include "sinter/runtime/cuda/attention/attention.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"

namespace sinter::eager {

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

runtime::CudaAttention problem_of(const AttentionCall& call) {
  auto& p = call.problem();
  const IntList out = call.out_strides();
  return {.batch = p.batch,
          .heads = p.heads,
          .queries = p.queries,
          .keys = p.keys,
          .size = p.size,
          .value_size = p.value_size,
          .group = p.group,
          .dtype = call.out().dtype(),
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

void prepare(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) {
  for (auto& arg : inputs.first(3))
    if (arg.is_scalar() || (arg.tensor().stride(-1) != 1 && arg.tensor().size(-1) != 1)) return;
  AttentionCall call(op, inputs, attrs, &out);
  if (!call.taken()) return;
  auto problem = problem_of(call);
  if (runtime::takes_cuda_attention(problem)) runtime::prepare_cuda_attention(out.device().index, problem);
}

bool attention(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                             TensorList& outputs) {
  AttentionCall call(op, inputs, attrs, given);
  if (!call.taken()) return false;
  auto problem = problem_of(call);
  if (!runtime::takes_cuda_attention(problem)) return false;
  Device device = call.out().device();
  problem.workspace =
      workspace(device, runtime::cuda_attention_workspace(problem, runtime::cuda_device_info(device.index)));
  resolve(problem.query.data, runtime::kIndirectQuery, problem.indirect);
  resolve(problem.key.data, runtime::kIndirectKey, problem.indirect);
  resolve(problem.value.data, runtime::kIndirectValue, problem.indirect);
  resolve(problem.mask.data, runtime::kIndirectMask, problem.indirect);
  resolve(problem.out, runtime::kIndirectOut, problem.indirect);
  runtime::cuda_attention(device.index, problem);
  outputs = {call.out()};
  return true;
}

const OpKernel kernels[] = {
    {.op = "scaled_dot_product_attention",
             .run = attention,
             .name = "attention",
             .takes = takes_attention,
             .strides = attention_strides,
             .prepare = prepare},
};

}  // namespace

std::span<const OpKernel> attention_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
