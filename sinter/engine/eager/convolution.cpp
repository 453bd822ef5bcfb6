// Convolution as GEMM: patches of the input are gathered into columns, a block of output positions at a time, so that the
// columns stay in cache; then weight x columns. Depthwise and transposed convolutions, and integers, keep to the loops.
#include <algorithm>
#include <memory>

#include "sinter/base/thread_pool.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/ops/contract.h"

namespace sinter::eager {

namespace {

// About half a megabyte of columns a block: they are written once and read once by the GEMM.
constexpr int64_t kColumnBytes = 512 * 1024;

struct Window {
  int64_t spatial;  // spatial dimensions, 1 to 3, padded in front to three
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

Window window_of(const TensorImpl& x, const TensorImpl& w, const IntList& out, const ConvolutionAttrs& a) {
  Window win{int64_t(x.sizes.size()) - 2, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  for (int64_t d = 0; d < win.spatial; ++d) {
    size_t to = size_t(3 - win.spatial + d), from = size_t(d);
    win.in[to] = x.sizes[from + 2];
    win.out[to] = out[from + 2];
    win.kernel[to] = w.sizes[from + 2];
    win.stride[to] = a.stride[from];
    win.padding[to] = a.padding[from];
    win.dilation[to] = a.dilation[from];
  }
  return win;
}

// One row of the columns: a channel and a tap of the kernel, over output positions [begin, end).
template <class T>
void fill_row(const Window& win, const T* plane, const int64_t* tap, int64_t begin, int64_t end, T* row) {
  for (int64_t at = begin; at < end;) {
    int64_t line = at / win.out[2], first = at % win.out[2];
    int64_t count = std::min(win.out[2] - first, end - at);
    int64_t z = line / win.out[1] * win.stride[0] - win.padding[0] + tap[0] * win.dilation[0];
    int64_t y = line % win.out[1] * win.stride[1] - win.padding[1] + tap[1] * win.dilation[1];
    bool inside = z >= 0 && z < win.in[0] && y >= 0 && y < win.in[1];
    const T* source = plane + (inside ? (z * win.in[1] + y) * win.in[2] : 0);
    int64_t x = first * win.stride[2] - win.padding[2] + tap[2] * win.dilation[2];
    for (int64_t i = 0; i < count; ++i, x += win.stride[2]) row[i] = inside && x >= 0 && x < win.in[2] ? source[x] : T(0);
    row += count;
    at += count;
  }
}

// Convolves one image of one group.
template <class T>
void convolve(const Window& win, const T* image, int64_t channels, const T* weight, int64_t filters, T* out,
              runtime::GemmType type) {
  int64_t taps = win.kernel[0] * win.kernel[1] * win.kernel[2], rows = channels * taps;
  int64_t positions = win.out[0] * win.out[1] * win.out[2], plane = win.in[0] * win.in[1] * win.in[2];
  bool plain = taps == 1 && positions == plane && std::all_of(win.stride, win.stride + 3, [](int64_t s) { return s == 1; }) &&
               std::all_of(win.padding, win.padding + 3, [](int64_t p) { return p == 0; });
  if (plain) {
    runtime::gemm(filters, positions, rows, {weight, rows, 1, type}, {image, plane, 1, type}, {out, positions, 1, type});
    return;
  }
  int64_t block = std::clamp<int64_t>(kColumnBytes / (rows * int64_t(sizeof(T))), 64, std::max<int64_t>(positions, 64));
  auto columns = std::make_unique_for_overwrite<T[]>(size_t(rows * std::min(block, positions)));
  for (int64_t begin = 0; begin < positions; begin += block) {
    int64_t end = std::min(begin + block, positions), width = end - begin;
    parallel_for(0, rows, std::max<int64_t>(1, 16384 / width), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        int64_t t = r % taps;
        int64_t tap[3] = {t / (win.kernel[1] * win.kernel[2]), t / win.kernel[2] % win.kernel[1], t % win.kernel[2]};
        fill_row(win, image + r / taps * plane, tap, begin, end, columns.get() + r * width);
      }
    });
    runtime::gemm(filters, width, rows, {weight, rows, 1, type}, {columns.get(), width, 1, type},
                  {out + begin, positions, 1, type});
  }
}

}  // namespace

bool convolution_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, TensorList& outputs) {
  auto& a = attrs.as<ConvolutionAttrs>();
  auto type = gemm_type(inputs[0].dtype());
  if (!type || a.transposed) return false;
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  int64_t channels = types[1].shape[1].number(), filters = types[1].shape[0].number() / a.groups;
  if (channels * filters < 8) return false;  // depthwise: too little for a GEMM
  Tensor x = inputs[0].tensor().contiguous(), w = inputs[1].tensor().contiguous();
  Tensor out = empty(result.shape, TensorOptions(result.dtype));
  IntList sizes = result.shape.numbers();
  Window win = window_of(x.impl(), w.impl(), sizes, a);
  int64_t plane = win.in[0] * win.in[1] * win.in[2], positions = win.out[0] * win.out[1] * win.out[2];
  int64_t taps = win.kernel[0] * win.kernel[1] * win.kernel[2];
  auto run = [&](auto zero) {
    using T = decltype(zero);
    auto *image = static_cast<const T*>(x.data_ptr()), *weight = static_cast<const T*>(w.data_ptr());
    auto* to = static_cast<T*>(out.data_ptr());
    if (out.impl().numel == 0) return;
    for (int64_t n = 0; n < sizes[0]; ++n)
      for (int64_t g = 0; g < a.groups; ++g)
        convolve(win, image + (n * a.groups + g) * channels * plane, channels, weight + g * filters * channels * taps, filters,
                 to + (n * a.groups + g) * filters * positions, *type);
  };
  visit_dtype(result.dtype, run);
  outputs = {std::move(out)};
  return true;
}

}  // namespace sinter::eager
