// Convolution as a matrix product, filters by positions: panels of the other operand, a row for each channel and tap of
// the window, are gathered from a padded image just before they are multiplied.
#include "sinter/runtime/cpu/conv/conv.h"

#include <optional>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/conv/image.h"
#include "sinter/runtime/cpu/flush_denormals.h"

namespace sinter::runtime {

using namespace conv_detail;
using gemm_detail::PanelMaker;
using gemm_detail::Problem;
using gemm_detail::View;

namespace {

constexpr int64_t kFewFilters = 8;              // up to which a single channel is no matrix product
constexpr int64_t kRows = 128;                  // of columns made together on the way back
constexpr int64_t kColumnBytes = 384 * 1024;    // of these columns
constexpr int64_t kMaxPanel = 32, kPiece = 32;  // elements of a panel; positions transposed together

bool is_depthwise(const ConvShape& s) { return s.channels == 1 && s.filters <= kFewFilters; }

int64_t taps_of(const ConvShape& s) { return s.kernel[0] * s.kernel[1] * s.kernel[2]; }
int64_t count(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// The windows are single elements, each input's its own.
bool is_plain(const ConvShape& s) {
  for (int d = 0; d < 3; ++d)
    if (s.kernel[d] != 1 || s.stride[d] != 1 || s.padding[d] != 0 || s.in[d] != s.out[d]) return false;
  return true;
}

// The stride of spatial positions in row-major order, where they have one.
std::optional<int64_t> position_stride(const ConvOperand& x, const int64_t* sizes) {
  std::optional<int64_t> stride;
  int64_t inside = 1;
  for (int d = 2; d >= 0; --d) {
    if (sizes[d] == 1) continue;
    if (!stride)
      stride = x.strides[2 + d];
    else if (x.strides[2 + d] != *stride * inside)
      return {};
    inside *= sizes[d];
  }
  return stride.value_or(1);
}

// Positions [begin, begin + count) as runs within lines.
int64_t segments_of(const Plane& plane, int64_t begin, int64_t count, Segment* out) {
  const int64_t width = plane.shape.out[2], height = plane.shape.out[1];
  int64_t line = begin / width, at = begin % width, made = 0;
  for (; count > 0; ++line, at = 0) {
    const int64_t run = std::min(width - at, count);
    out[made++] = {plane.window(line / height, line % height) + at, run};
    count -= run;
  }
  return made;
}

template <class T>
struct Columns {
  const Plane& plane;
  const T* image;
  Cores<T> cores;
};

// Rows are channels and taps, columns positions.
template <class T>
void pack_positions(const void* context, int64_t row, int64_t rows, int64_t col, int64_t cols, void* dst) {
  auto& c = *static_cast<const Columns<T>*>(context);
  Segment segments[kMaxPanel];
  const int64_t made = segments_of(c.plane, col, cols, segments);
  c.cores.conv->gather({c.image, c.plane.size(), c.plane.taps.data(), int64_t(c.plane.taps.size()), row, rows, segments,
                        made, cols, c.cores.gemm->panel, static_cast<T*>(dst)});
}

// Rows are positions, columns channels and taps: gathered the other way, then transposed.
template <class T>
void pack_taps(const void* context, int64_t row, int64_t rows, int64_t col, int64_t cols, void* dst) {
  auto& c = *static_cast<const Columns<T>*>(context);
  alignas(64) T piece[kMaxPanel * kPiece];
  const int64_t panel = c.cores.gemm->panel;
  for (int64_t at = 0; at < rows; at += kPiece) {
    const int64_t positions = std::min(kPiece, rows - at);
    Segment segments[kPiece];
    const int64_t made = segments_of(c.plane, row + at, positions, segments);
    c.cores.conv->gather({c.image, c.plane.size(), c.plane.taps.data(), int64_t(c.plane.taps.size()), col, cols,
                          segments, made, positions, kPiece, piece});
    c.cores.gemm->pack_panel(piece, gemm_detail::kNative, 1, kPiece, positions, cols,
                             static_cast<T*>(dst) + at * panel);
  }
}

// The channels of one group of an image, padded and split.
template <class T>
const T* load_image(const Plane& plane, const Cores<T>& cores, const ConvOperand& x, int64_t image, int64_t channel,
                    int64_t channels) {
  T* to = reserve<T>(thread_scratch().image, channels * plane.size());
  parallel_for(0, channels, std::max<int64_t>(1, 32768 / (plane.size() + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      load_plane(plane, cores, plane_at(x, image, channel + c), x.type, x.strides + 2, T(0), to + c * plane.size());
  });
  return to;
}

// Calls body(map, threads): whole images and groups to a thread where there are enough of them.
template <class F>
void each_map(int64_t maps, F body) {
  const int threads = num_threads();
  if (threads == 1 || (maps < 4 * threads && maps % threads != 0)) {
    for (int64_t map = 0; map < maps; ++map) body(map, threads);
    return;
  }
  parallel_for(0, maps, 1, [&](int64_t begin, int64_t end) {
    for (int64_t map = begin; map < end; ++map) body(map, 1);
  });
}

template <class T>
void multiply(Problem<T> p, int threads, const Epilogue* epilogue = nullptr, int64_t first_row = 0) {
  const JointEpilogue joint = epilogue ? gemm_detail::as_joint(*epilogue) : JointEpilogue{};
  gemm_detail::multiply<T>({{&p, 1}, false, epilogue ? &joint : nullptr, first_row}, threads);
}

template <class T>
void convolve(const ConvShape& s, const ConvOperand& x, const void* weight, GemmType weight_type, void* out,
              GemmType out_type, const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  const Plane plane(s);
  const int64_t k = s.channels * taps_of(s), positions = count(s.out);
  const auto stride = position_stride(x, s.in);
  const bool plain = is_plain(s) && stride;
  each_map(s.images * s.groups, [&](int64_t map, int threads) {
    const int64_t image = map / s.groups, group = map % s.groups;
    Problem<T> p{.core = cores.gemm,
                 .bf16 = nullptr,
                 .m = s.filters,
                 .n = positions,
                 .k = k,
                 .a = {element(weight, group * s.filters * k, weight_type), k, 1, storage_of(weight_type)},
                 .b = {nullptr, 0, 1, gemm_detail::kNative},
                 .packed = nullptr,
                 .c = element(out, map * s.filters * positions, out_type),
                 .c_row_stride = positions,
                 .c_col_stride = 1,
                 .c_storage = storage_of(out_type),
                 .alpha = T(1),
                 .accumulate = false,
                 .swapped = false};
    if (plain) {
      p.b = {plane_at(x, image, group * s.channels), x.strides[1], *stride, storage_of(x.type)};
      return multiply(p, threads, options.epilogue, map * s.filters);
    }
    const Columns<T> columns{plane, load_image(plane, cores, x, image, group * s.channels, s.channels), cores};
    const PanelMaker maker{pack_positions<T>, &columns};
    p.maker = &maker;
    multiply(p, threads, options.epilogue, map * s.filters);
  });
}

template <class T>
void convolve_back(const ConvShape& s, const ConvOperand& given, const void* weight, GemmType weight_type, void* out,
                   GemmType out_type, const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  const int64_t taps = taps_of(s), from = count(s.out), to = count(s.in), width = s.out[2];
  ConvOperand x = given;
  auto stride = position_stride(x, s.out);
  std::vector<T> dense;
  if (!stride) {
    dense.resize(size_t(s.images * s.groups * s.filters * from));
    for (int64_t plane = 0; plane < s.images * s.groups * s.filters; ++plane)
      copy_plane(cores, x, plane / (s.groups * s.filters), plane % (s.groups * s.filters), s.out,
                 dense.data() + plane * from);
    x = {dense.data(),
         {s.groups * s.filters * from, from, s.out[1] * width, width, 1},
         sizeof(T) == 8 ? GemmType::f64 : GemmType::f32};
    stride = 1;
  }
  // Channels c0 to c1 of a map's columns, over positions [begin, begin + n).
  const auto columns_of = [&](int64_t map, int64_t c0, int64_t c1, int64_t begin, int64_t n) {
    const int64_t row = map % s.groups * s.filters * s.channels * taps + c0 * taps;
    const char* b = plane_at(x, map / s.groups, map % s.groups * s.filters) + begin * *stride * size_of(x.type);
    return Problem<T>{.core = cores.gemm,
                      .bf16 = nullptr,
                      .m = (c1 - c0) * taps,
                      .n = n,
                      .k = s.filters,
                      .a = {element(weight, row, weight_type), 1, s.channels * taps, storage_of(weight_type)},
                      .b = {b, x.strides[1], *stride, storage_of(x.type)},
                      .packed = nullptr,
                      .c = nullptr,
                      .c_row_stride = n,
                      .c_col_stride = 1,
                      .c_storage = gemm_detail::kNative,
                      .alpha = T(1),
                      .accumulate = false,
                      .swapped = false};
  };
  if (is_plain(s)) {
    each_map(s.images * s.groups, [&](int64_t map, int threads) {
      Problem<T> p = columns_of(map, 0, s.channels, 0, from);
      p.c = element(out, map * s.channels * to, out_type);
      p.c_storage = storage_of(out_type);
      multiply(p, threads, options.epilogue, map * s.channels);
    });
    return;
  }
  const Plane plane(s);
  const int64_t most = std::clamp<int64_t>(ceil_div(kRows, taps), 1, s.channels), blocks = ceil_div(s.channels, most);
  const int64_t line_bytes = most * taps * width * int64_t(sizeof(T)), lines = s.out[0] * s.out[1];
  const int64_t step =
      std::clamp<int64_t>(kColumnBytes / std::max<int64_t>(line_bytes, 1), 1, std::max<int64_t>(lines, 1));
  const std::vector<T> ones(size_t(taps), T(1));
  parallel_for(0, s.images * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t map = task / blocks, block = task % blocks;
      const int64_t c0 = s.channels * block / blocks, c1 = s.channels * (block + 1) / blocks;
      T* planes = reserve<T>(thread_scratch().image, (c1 - c0) * plane.size());
      cores.conv->fill(planes, (c1 - c0) * plane.size(), T(0));
      for (int64_t first = 0; first < lines; first += step) {
        const int64_t last = std::min(first + step, lines), n = (last - first) * width;
        T* columns = reserve<T>(thread_scratch().columns, (c1 - c0) * taps * n);
        Problem<T> p = columns_of(map, c0, c1, first * width, n);
        p.c = columns;
        multiply(p, 1);
        for (int64_t row = 0; row < (c1 - c0) * taps; ++row) {
          for (int64_t line = first; line < last;) {
            const int64_t z = line / s.out[1], y = line % s.out[1], run = std::min(s.out[1] - y, last - line);
            cores.conv->spread({columns + row * n + (line - first) * width, width, &plane.taps[size_t(row % taps)],
                                ones.data(), 1, run, width, planes + row / taps * plane.size() + plane.window(z, y),
                                s.stride[1] * plane.line()});
            line += run;
          }
        }
      }
      const bool direct = storage_of(out_type) == gemm_detail::kNative;
      for (int64_t c = c0; c < c1; ++c) {
        const int64_t row = map * s.channels + c;
        T* result = direct ? static_cast<T*>(out) + row * to : reserve<T>(thread_scratch().plane, to);
        store_plane(plane, cores, planes + (c - c0) * plane.size(), result);
        finish_plane(cores, result, row, to, out, out_type, options);
      }
    }
  });
}

template <class T>
void weight_gradient(const ConvShape& s, const ConvOperand& x, const ConvOperand& grad, void* out, GemmType out_type,
                     const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  const Plane plane(s);
  const int64_t n = s.channels * taps_of(s), positions = count(s.out), size = s.groups * s.filters * n;
  const bool direct = storage_of(out_type) == gemm_detail::kNative;
  T* sums = direct ? static_cast<T*>(out) : reserve<T>(thread_scratch().weights, size);
  const auto x_stride = position_stride(x, s.in), grad_stride = position_stride(grad, s.out);
  const bool plain = is_plain(s) && x_stride;
  const int threads = num_threads();
  for (int64_t map = 0; map < s.images * s.groups; ++map) {
    const int64_t image = map / s.groups, group = map % s.groups;
    View a{plane_at(grad, image, group * s.filters), grad.strides[1], grad_stride.value_or(1), storage_of(grad.type)};
    if (!grad_stride) {
      T* dense = reserve<T>(thread_scratch().columns, s.filters * positions);
      for (int64_t f = 0; f < s.filters; ++f)
        copy_plane(cores, grad, image, group * s.filters + f, s.out, dense + f * positions);
      a = {dense, positions, 1, gemm_detail::kNative};
    }
    Problem<T> p{.core = cores.gemm,
                 .bf16 = nullptr,
                 .m = s.filters,
                 .n = n,
                 .k = positions,
                 .a = a,
                 .b = {nullptr, 0, 1, gemm_detail::kNative},
                 .packed = nullptr,
                 .c = sums + group * s.filters * n,
                 .c_row_stride = n,
                 .c_col_stride = 1,
                 .c_storage = gemm_detail::kNative,
                 .alpha = T(1),
                 .accumulate = image > 0,
                 .swapped = false};
    if (plain) {
      p.b = {plane_at(x, image, group * s.channels), *x_stride, x.strides[1], storage_of(x.type)};
      multiply(p, threads);
      continue;
    }
    const Columns<T> columns{plane, load_image(plane, cores, x, image, group * s.channels, s.channels), cores};
    const PanelMaker maker{pack_taps<T>, &columns};
    p.maker = &maker;
    multiply(p, threads);
  }
  if (s.images == 0) cores.conv->fill(sums, size, T(0));
  if (!direct) cores.gemm->store(sums, size, 1, size, out, storage_of(out_type), size, 1);
}

void check_types(GemmType a, GemmType b, GemmType c, CpuIsa isa) {
  const bool wide = a == GemmType::f64;
  check((b == GemmType::f64) == wide && (c == GemmType::f64) == wide, "convolution: f64 does not mix with others");
  check(isa == best_cpu_isa() || cpu_supports(isa), "convolution: this machine lacks the instruction set asked for");
}

}  // namespace

void convolution(const ConvShape& shape, const ConvOperand& x, const void* weight, GemmType weight_type, void* out,
                 GemmType out_type, const ConvOptions& options) {
  check_types(x.type, weight_type, out_type, options.isa);
  if (shape.images == 0 || shape.filters == 0 || count(shape.out) == 0) return;
  with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    (is_depthwise(shape) ? depthwise<T> : convolve<T>)(shape, x, weight, weight_type, out, out_type, options);
  });
}

void convolution_transposed(const ConvShape& shape, const ConvOperand& x, const void* weight, GemmType weight_type,
                            void* out, GemmType out_type, const ConvOptions& options) {
  check_types(x.type, weight_type, out_type, options.isa);
  if (shape.images == 0 || shape.channels == 0 || count(shape.in) == 0) return;
  with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    (is_depthwise(shape) ? depthwise_transposed<T> : convolve_back<T>)(shape, x, weight, weight_type, out, out_type,
                                                                       options);
  });
}

void convolution_weight_grad(const ConvShape& shape, const ConvOperand& x, const ConvOperand& grad, void* out,
                             GemmType out_type, const ConvOptions& options) {
  check_types(x.type, grad.type, out_type, options.isa);
  with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    (is_depthwise(shape) ? depthwise_weight_grad<T> : weight_gradient<T>)(shape, x, grad, out, out_type, options);
  });
}

}  // namespace sinter::runtime
