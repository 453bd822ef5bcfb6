// Pools of channels-last images: neighbouring threads take neighbouring channels, several of them each.
#include <algorithm>
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

// What the kernels share, behind a line of constants: type X, V channels at a time, the window.
constexpr const char* kBegin = R"(
  wait_for_previous();
  struct alignas(V * sizeof(X)) Piece {
    Raw<X> element[V];
  };
  struct alignas(V > 1 ? 16 : 8) Places {
    i64 element[V];
  };
)";

// The largest element of each window, or with PLACES where it is: the first of several, or of a window of -inf.
constexpr const char* kMaxPool = R"(
  const Piece* x = (const Piece*)a[0];
  const u32 pieces = (u32)a[2], in_h = (u32)a[3], in_w = (u32)a[4], out_h = (u32)a[5], out_w = (u32)a[6];
  for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < a.range; at += (i64)gridDim.x * blockDim.x) {
    const u32 piece = (u32)(at % pieces);
    u32 place = (u32)(at / pieces);
    const u32 ox = place % out_w;
    place /= out_w;
    const u32 oy = place % out_h, image = place / out_h;
    Compute<X> best[V];
    u32 where[V];
#pragma unroll
    for (int v = 0; v < V; ++v) best[v] = from_bits(0xff800000u), where[v] = 0xffffffffu;
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
          const bool first_nan = value != value && before == before;
          if (value > before || first_nan || where[v] == 0xffffffffu) best[v] = value, where[v] = iy * in_w + ix;
        }
      }
    if constexpr (PLACES) {
      Places out;
#pragma unroll
      for (int v = 0; v < V; ++v) out.element[v] = where[v];
      ((Places*)a[1])[at] = out;
    } else {
      Piece out;
#pragma unroll
      for (int v = 0; v < V; ++v) out.element[v] = encode<X>(best[v]);
      ((Piece*)a[1])[at] = out;
    }
  }
}
}  // namespace k
)";

// Each element of the input adds up the KH x KW windows that may hold it, where they chose it.
constexpr const char* kMaxPoolGrad = R"(
  const Piece* grad = (const Piece*)a[0];
  const Places* chosen = (const Places*)a[1];
  Piece* x = (Piece*)a[2];
  const u32 pieces = (u32)a[3], in_h = (u32)a[4], in_w = (u32)a[5], out_h = (u32)a[6], out_w = (u32)a[7];
  for (i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x; at < a.range; at += (i64)gridDim.x * blockDim.x) {
    const u32 piece = (u32)(at % pieces);
    u32 place = (u32)(at / pieces);
    const u32 ix = place % in_w;
    place /= in_w;
    const u32 iy = place % in_h, image = place / in_h, here = iy * in_w + ix;
    Compute<X> sum[V];
#pragma unroll
    for (int v = 0; v < V; ++v) sum[v] = 0;
#pragma unroll
    for (int r = 0; r < KH; ++r)
#pragma unroll
      for (int s = 0; s < KW; ++s) {
        const u32 oy = (iy + PH) / SH - r, ox = (ix + PW) / SW - s;
        if (oy >= out_h || ox >= out_w) continue;
        const i64 from = ((i64)(image * out_h + oy) * out_w + ox) * pieces + piece;
        const Piece value = grad[from];
        const Places where = chosen[from];
#pragma unroll
        for (int v = 0; v < V; ++v)
          if (where.element[v] == here) sum[v] += decode<X>(value.element[v]);
      }
    Piece out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.element[v] = encode<X>(sum[v]);
    x[at] = out;
  }
}
}  // namespace k
)";

const char* type_name(DType dtype) { return dtype == kBFloat16 ? "bf16" : dtype == kFloat16 ? "f16" : "float"; }

// One of the pools over images [n, channels, height, width], without what differs from launch to launch.
struct ImagePool {
  const char* name;
  const char* text;
  int arguments;       // of the kernel
  bool places = false;  // written in place of values
  IntList kernel, stride, padding, dilation;

  static ImagePool maxima(const MaxPoolAttrs& a, bool places) {
    return {places ? "max_pool_indices" : "max_pool", kMaxPool, 7, places, a.kernel, a.stride, a.padding, a.dilation};
  }
  static ImagePool grad(const MaxPoolGradAttrs& a) {
    return {"max_pool_grad", kMaxPoolGrad, 8, false, a.windows(), a.stride, a.padding, IntList(a.reach.size(), 1)};
  }

  bool takes(const TensorImpl& x) const {
    bool taken = x.dtype == kBFloat16 || x.dtype == kFloat16 || x.dtype == kFloat32;
    if (!taken || x.sizes.size() != 4 || kernel.size() != 2 || kernel[0] * kernel[1] > 64 || x.contiguous) return false;
    return x.numel > 0 && x.numel < INT32_MAX && has_format(x.sizes, x.strides, MemoryFormat::kChannelsLast);
  }

  runtime::CudaSource source(DType dtype, int64_t channels_each) const {
    std::string constants = format(
        "  typedef {} X;\n  constexpr u32 V = {}, KH = {}, KW = {}, SH = {}, SW = {}, PH = {}, PW = {}, DH = {}, DW = {};\n"
        "  constexpr bool PLACES = {};\n",
        type_name(dtype), channels_each, kernel[0], kernel[1], stride[0], stride[1], padding[0], padding[1], dilation[0],
        dilation[1], places);
    std::string full = gpu_kernel_name(name, constants, {});
    std::string head = "namespace k {\nextern \"C\" __global__ void " + full + "(const __grid_constant__ Args<" +
                       std::to_string(arguments) + "> a) {\n";
    return {full, head + constants + kBegin + text, 0};
  }

  runtime::CudaFunction function(DType dtype, int64_t channels_each, int device) const {
    runtime::CudaSource source = this->source(dtype, channels_each);
    static std::mutex mutex;
    static auto& functions = *new std::map<std::pair<std::string, int>, runtime::CudaFunction>;
    std::lock_guard lock(mutex);
    auto& function = functions[{source.name, device}];
    if (!function) function = runtime::load_cuda({&source, 1}, codegen::cuda_prelude(), device)[0];
    return function;
  }

  // `tensors` are the kernel's addresses, the result last; `in` and `out` the images that are pooled and what comes of it.
  void launch(std::initializer_list<const TensorImpl*> tensors, const TensorImpl& in, const TensorImpl& out) const {
    const TensorImpl &result = **(tensors.end() - 1), &values = **tensors.begin();
    const int device = result.device.index();
    int64_t each = kVectorBytes / item_size(values.dtype);
    // Memory of the caller's that a graph finds when it runs may lie anywhere: code for that is loaded before one is recorded.
    bool aligned = std::all_of(tensors.begin(), tensors.end(), [](const TensorImpl* t) {
      return !is_place(data_of(*t)) && slot_of(*t) % kVectorBytes == 0;
    });
    if (in.sizes[1] % each != 0 || !aligned)
      each = 1;
    else if (!CudaRecording::current())
      function(values.dtype, 1, device);
    StepArguments slots;
    for (const TensorImpl* t : tensors) slots.add_address(slot_of(*t));
    slots.add_numbers(std::array<int64_t, 5>{in.sizes[1] / each, in.sizes[2], in.sizes[3], out.sizes[2], out.sizes[3]});
    const int64_t range = result.numel / each;
    runtime::CudaGrid grid;
    int processors = runtime::cuda_device_info(device).multiprocessors;
    grid.blocks[0] = unsigned(std::min<int64_t>((range + kThreads - 1) / kThreads, processors * 16));
    grid.threads[0] = kThreads;
    grid.overlaps_previous = true;
    cuda_launch(function(values.dtype, each, device), result.device, grid, range, slots);
  }
};

bool is_channels_last(const TensorImpl& t) { return has_format(t.sizes, t.strides, MemoryFormat::kChannelsLast); }

template <bool kPlaces>
bool max_pool(const Op&, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given, TensorList& outputs) {
  auto& x = inputs[0].tensor().impl();
  auto pool = ImagePool::maxima(attrs.as<MaxPoolAttrs>(), kPlaces);
  if (!given || !pool.takes(x)) return false;
  auto& y = given->impl();
  if (y.numel == 0 || !is_channels_last(y)) return false;
  pool.launch({&x, &y}, x, y);
  outputs = {*given};
  return true;
}

bool max_pool_grad(const Op&, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                   TensorList& outputs) {
  auto &grad = inputs[0].tensor().impl(), &indices = inputs[1].tensor().impl();
  auto pool = ImagePool::grad(attrs.as<MaxPoolGradAttrs>());
  if (!given || !pool.takes(grad) || !is_channels_last(indices)) return false;
  auto& x = given->impl();
  if (x.numel == 0 || x.numel >= INT32_MAX || !is_channels_last(x)) return false;
  pool.launch({&grad, &indices, &x}, x, grad);
  outputs = {*given};
  return true;
}

const OpKernel kernels[] = {
    {.op = "max_pool", .run = max_pool<false>, .name = "pool"},
    {.op = "max_pool_indices", .run = max_pool<true>, .name = "pool"},
    {.op = "max_pool_grad", .run = max_pool_grad, .name = "pool"},
};

}  // namespace

bool gives_channels_last_pool(const Node& node, const TensorImpl* first) {
  const bool is_pool = std::ranges::any_of(kernels, [&](const OpKernel& kernel) { return kernel.op == node.op->name; });
  if (!is_pool || !first) return false;
  if (std::string_view(node.op->name) == "max_pool_grad") return ImagePool::grad(node.attrs.as<MaxPoolGradAttrs>()).takes(*first);
  return ImagePool::maxima(node.attrs.as<MaxPoolAttrs>(), false).takes(*first);
}

std::vector<runtime::CudaSource> channels_last_pool_texts(const MaxPoolAttrs& forward, const MaxPoolGradAttrs& back,
                                                          DType dtype, int64_t channels_each) {
  return {ImagePool::maxima(forward, false).source(dtype, channels_each),
          ImagePool::maxima(forward, true).source(dtype, channels_each), ImagePool::grad(back).source(dtype, channels_each)};
}

std::span<const OpKernel> pool_kernels_of_cuda() { return kernels; }

}  // namespace sinter::eager
