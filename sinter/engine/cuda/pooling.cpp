// Pools of channels-last images: neighbouring threads take neighbouring channels, several of them each.
#include <map>
#include <mutex>

#include "sinter/base/format.h"
#include "sinter/codegen/cuda/prelude.h"
#include "sinter/engine/cuda/arguments.h"
#include "sinter/engine/cuda/loops.h"
#include "sinter/engine/cuda/op_kernels.h"
#include "sinter/engine/cuda/pooling.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/gpu/nest.h"
#include "sinter/ops/contract.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::eager {

namespace {

constexpr int kThreads = 256, kVectorBytes = 16;

// Behind a line of constants: type X, V channels at a time, and the window.
constexpr const char* kMaxPool = R"(
  wait_for_previous();
  struct alignas(V * sizeof(X)) Piece {
    Raw<X> element[V];
  };
  const Piece* x = (const Piece*)a[0];
  Piece* y = (Piece*)a[1];
  const u32 pieces = (u32)a[2], in_h = (u32)a[3], in_w = (u32)a[4], out_h = (u32)a[5], out_w = (u32)a[6];
  for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < a.range; at += (i64)gridDim.x * blockDim.x) {
    const u32 piece = (u32)(at % pieces);
    u32 place = (u32)(at / pieces);
    const u32 ox = place % out_w;
    place /= out_w;
    const u32 oy = place % out_h, image = place / out_h;
    Compute<X> best[V];
#pragma unroll
    for (int v = 0; v < V; ++v) best[v] = from_bits(0xff800000u);
#pragma unroll
    for (int r = 0; r < KH; ++r)
#pragma unroll
      for (int s = 0; s < KW; ++s) {
        const u32 iy = oy * SH + r * DH - PH, ix = ox * SW + s * DW - PW;
        if (iy >= in_h || ix >= in_w) continue;
        const Piece seen = x[((i64)(image * in_h + iy) * in_w + ix) * pieces + piece];
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const Compute<X> value = decode<X>(seen.element[v]), before = best[v];
          best[v] = value > before || value != value ? value : before;
        }
      }
    Piece out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.element[v] = encode<X>(best[v]);
    y[at] = out;
  }
}
}  // namespace k
)";

const char* type_name(DType dtype) { return dtype == kBFloat16 ? "bf16" : dtype == kFloat16 ? "f16" : "float"; }

runtime::CudaFunction max_pool_kernel(const MaxPoolAttrs& a, DType dtype, int channels_each, int device) {
  std::string constants = format(
      "  typedef {} X;\n  constexpr u32 V = {}, KH = {}, KW = {}, SH = {}, SW = {}, PH = {}, PW = {}, DH = {}, DW = {};\n",
      type_name(dtype), channels_each, a.kernel[0], a.kernel[1], a.stride[0], a.stride[1], a.padding[0], a.padding[1],
      a.dilation[0], a.dilation[1]);
  static std::mutex mutex;
  static auto& functions = *new std::map<std::pair<std::string, int>, runtime::CudaFunction>;
  std::lock_guard lock(mutex);
  auto& function = functions[{constants, device}];
  if (!function) {
    std::string name = gpu_kernel_name("max_pool", constants, {});
    std::string text = "namespace k {\nextern \"C\" __global__ void " + name +
                       "(const __grid_constant__ Args<7> a) {\n" + constants + kMaxPool;
    function = runtime::load_cuda(std::vector<runtime::CudaSource>{{name, text, 0}}, codegen::cuda_prelude(), device)[0];
  }
  return function;
}

}  // namespace

bool takes_channels_last_pool(const TensorImpl& x, const Attrs& attrs) {
  auto& a = attrs.as<MaxPoolAttrs>();
  bool taken = x.dtype == kBFloat16 || x.dtype == kFloat16 || x.dtype == kFloat32;
  if (!taken || x.sizes.size() != 4 || a.kernel.size() != 2 || a.kernel[0] * a.kernel[1] > 64 || x.contiguous) return false;
  return x.numel > 0 && x.numel < INT32_MAX && has_format(x.sizes, x.strides, MemoryFormat::kChannelsLast);
}

namespace {

bool max_pool(const Op&, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                            TensorList& outputs) {
  auto& x = inputs[0].tensor().impl();
  if (!given || !takes_channels_last_pool(x, attrs)) return false;
  auto& y = given->impl();
  if (y.numel == 0 || !has_format(y.sizes, y.strides, MemoryFormat::kChannelsLast)) return false;
  const int64_t item = item_size(x.dtype);
  int64_t each = kVectorBytes / item;
  // Memory of the caller's that a graph finds when it runs may lie anywhere: code for that is loaded before one is recorded.
  auto is_aligned = [](const TensorImpl& t) { return !is_place(data_of(t)) && slot_of(t) % kVectorBytes == 0; };
  if (x.sizes[1] % each != 0 || !is_aligned(x) || !is_aligned(y))
    each = 1;
  else if (!CudaRecording::current())
    max_pool_kernel(attrs.as<MaxPoolAttrs>(), x.dtype, 1, x.device.index());
  StepArguments slots;
  slots.add_address(slot_of(x));
  slots.add_address(slot_of(y));
  slots.add_numbers(std::array<int64_t, 5>{x.sizes[1] / each, x.sizes[2], x.sizes[3], y.sizes[2], y.sizes[3]});
  const int64_t range = y.numel / each;
  runtime::CudaGrid grid;
  int processors = runtime::cuda_device_info(x.device.index()).multiprocessors;
  grid.blocks[0] = unsigned(std::min<int64_t>((range + kThreads - 1) / kThreads, processors * 16));
  grid.threads[0] = kThreads;
  grid.overlaps_previous = true;
  cuda_launch(max_pool_kernel(attrs.as<MaxPoolAttrs>(), x.dtype, int(each), x.device.index()), x.device, grid, range, slots);
  outputs = {*given};
  return true;
}

const OpKernel kernels[] = {
    {.op = "max_pool", .run = max_pool, .name = "pool"},
};

}  // namespace

std::span<const OpKernel> pool_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
