// Convolution as GEMM: patches of the input are gathered into columns, a block of output positions at a time, so that the
// columns stay in cache; then weight x columns. Depthwise and transposed convolutions, and integers, keep to the loops.
#include <algorithm>
#include <memory>

#include "sinter/base/thread_pool.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/ops/contract.h"

namespace sinter::eager {

namespace {

// Columns of a block: they are written once and read once by the GEMM, and fit a core's second cache beside the weights.
constexpr int64_t kColumnBytes = 384 * 1024, kColumnStep = 32;

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
    // Zeros where the window hangs over the left or right edge, a plain copy between.
    int64_t step = win.stride[2];
    int64_t lead = inside ? std::clamp<int64_t>((-x + step - 1) / step, 0, count) : count;
    int64_t end_inside = inside ? std::clamp<int64_t>((win.in[2] - x + step - 1) / step, lead, count) : count;
    std::fill(row, row + lead, T(0));
    if (step == 1)
      std::copy(source + x + lead, source + x + end_inside, row + lead);
    else
      for (int64_t i = lead; i < end_inside; ++i) row[i] = source[x + i * step];
    std::fill(row + end_inside, row + count, T(0));
    row += count;
    at += count;
  }
}

// What all images and groups of one convolution share.
template <class T>
struct Problem {
  Window win;
  int64_t images, groups, channels, filters;  // channels and filters of one group
  const T *x, *weight;
  T* out;
  runtime::GemmType type;
};

// A 1x1 convolution without padding reads the image as it is: no columns.
bool is_plain(const Window& win) {
  for (int d = 0; d < 3; ++d)
    if (win.kernel[d] != 1 || win.stride[d] != 1 || win.padding[d] != 0) return false;
  return true;
}

template <class T>
void convolve(const Problem<T>& p) {
  const Window& win = p.win;
  int64_t taps = win.kernel[0] * win.kernel[1] * win.kernel[2], rows = p.channels * taps;
  int64_t positions = win.out[0] * win.out[1] * win.out[2], plane = win.in[0] * win.in[1] * win.in[2];
  int64_t maps = p.images * p.groups;
  auto image = [&](int64_t map) { return p.x + map * p.channels * plane; };
  auto weight = [&](int64_t map) { return p.weight + map % p.groups * p.filters * rows; };
  auto result = [&](int64_t map) { return p.out + map * p.filters * positions; };
  if (is_plain(win)) {
    for (int64_t map = 0; map < maps; ++map)
      runtime::gemm(p.filters, positions, rows, {weight(map), rows, 1, p.type}, {image(map), plane, 1, p.type},
                    {result(map), positions, 1, p.type});
    return;
  }
  // A thread makes the columns of a block and multiplies them while they are in its cache.
  int64_t width = std::clamp<int64_t>(kColumnBytes / (rows * int64_t(sizeof(T))) / kColumnStep * kColumnStep, kColumnStep,
                                      (positions + kColumnStep - 1) / kColumnStep * kColumnStep);
  int64_t blocks = (positions + width - 1) / width;
  parallel_for(0, maps * blocks, 1, [&](int64_t first, int64_t last) {
    auto columns = std::make_unique_for_overwrite<T[]>(size_t(rows * width));
    for (int64_t task = first; task < last; ++task) {
      int64_t map = task / blocks, begin = task % blocks * width, count = std::min(width, positions - begin);
      for (int64_t r = 0; r < rows; ++r) {
        int64_t t = r % taps;
        int64_t tap[3] = {t / (win.kernel[1] * win.kernel[2]), t / win.kernel[2] % win.kernel[1], t % win.kernel[2]};
        fill_row(win, image(map) + r / taps * plane, tap, begin, begin + count, columns.get() + r * count);
      }
      runtime::gemm(p.filters, count, rows, {weight(map), rows, 1, p.type}, {columns.get(), count, 1, p.type},
                    {result(map) + begin, positions, 1, p.type});
    }
  });
}

}  // namespace

bool convolution_template(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given,
                          TensorList& outputs) {
  auto& a = attrs.as<ConvolutionAttrs>();
  auto type = gemm_type(inputs[0].dtype());
  if (!type || a.transposed) return false;
  auto types = operand_types(inputs);
  Type result = op.infer(OpCall{op, types, attrs})[0];
  int64_t channels = types[1].shape[1].number(), filters = types[1].shape[0].number() / a.groups;
  if (channels * filters < 8) return false;  // depthwise: too little for a GEMM
  if (inputs[1].tensor().impl().numel == 0) return false;  // no taps: nothing to multiply
  Tensor x = inputs[0].tensor().contiguous(), w = inputs[1].tensor().contiguous();
  Tensor out = given ? *given : empty(result.shape, TensorOptions(result.dtype));
  IntList sizes = result.shape.numbers();
  Window win = window_of(x.impl(), w.impl(), sizes, a);
  auto run = [&](auto zero) {
    using T = decltype(zero);
    if (out.impl().numel == 0) return;
    convolve(Problem<T>{win, sizes[0], a.groups, channels, filters, static_cast<const T*>(x.data_ptr()),
                        static_cast<const T*>(w.data_ptr()), static_cast<T*>(out.data_ptr()), *type});
  };
  visit_dtype(result.dtype, run);
  outputs = {std::move(out)};
  return true;
}

}  // namespace sinter::eager
