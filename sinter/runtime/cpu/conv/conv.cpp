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
constexpr int64_t kLeastChannels = 16, kMostChannels = 64;  // of them, where a tap's channels lie side by side
constexpr int64_t kColumnBytes = 384 * 1024;    // of these columns
constexpr int64_t kMaxPanel = 32, kPiece = 32;  // elements of a panel; positions transposed together
constexpr int64_t kPositions = 512;             // up to which images are multiplied together

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

// Images of few positions are taken together: one product of their columns is wide enough for the kernels, and reads the
// weight once. How many depends on the shape alone.
struct Batches {
  int64_t images, count = 0;

  explicit Batches(const ConvShape& s) : images(s.images) {
    const int64_t positions = std::max<int64_t>(1, s.out[0] * s.out[1] * s.out[2]);
    count = ceil_div(images, std::max<int64_t>(1, kPositions / positions));
  }
  int64_t begin(int64_t batch) const { return images * batch / count; }
  int64_t size(int64_t batch) const { return begin(batch + 1) - begin(batch); }
};

// The channels of a group of some images, padded and split: positions count from the first image on.
template <class T>
struct Columns {
  const Plane& plane;
  const T* images;
  int64_t channels;
  bool taps_first;
  Cores<T> cores;

  GatherArgs<T> rows(int64_t first, int64_t count, std::span<const Segment> segments, int64_t cols, int64_t panel, T* to) const {
    return {images, plane.size(), plane.taps.data(), int64_t(plane.taps.size()), channels, taps_first, first, count,
            segments.data(), int64_t(segments.size()), cols, panel, to};
  }

  // Positions [begin, begin + count) as runs within lines.
  int64_t segments(int64_t begin, int64_t count, Segment* out) const {
    const int64_t width = plane.shape.out[2], height = plane.shape.out[1], lines = plane.shape.out[0] * height;
    int64_t line = begin / width, at = begin % width, made = 0;
    for (; count > 0; ++line, at = 0) {
      const int64_t run = std::min(width - at, count), image = line / lines;
      out[made++] = {image * channels * plane.size() + plane.window(line % lines / height, line % height) + at, run};
      count -= run;
    }
    return made;
  }
};

// Rows are channels and taps, in the order of the weight, columns positions.
template <class T>
void pack_positions(const void* context, int64_t row, int64_t rows, int64_t col, int64_t cols, void* dst) {
  auto& c = *static_cast<const Columns<T>*>(context);
  Segment segments[kMaxPanel];
  const int64_t made = c.segments(col, cols, segments);
  c.cores.conv->gather(c.rows(row, rows, {segments, size_t(made)}, cols, c.cores.gemm->panel, static_cast<T*>(dst)));
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
    const int64_t made = c.segments(row + at, positions, segments);
    c.cores.conv->gather(c.rows(col, cols, {segments, size_t(made)}, positions, kPiece, piece));
    c.cores.gemm->pack_panel(piece, gemm_detail::kNative, 1, kPiece, positions, cols,
                             static_cast<T*>(dst) + at * panel);
  }
}

template <class T>
Columns<T> load_images(const Plane& plane, const Cores<T>& cores, const ConvOperand& x, int64_t image, int64_t images,
                       int64_t channel, int64_t channels, bool taps_first) {
  T* to = reserve<T>(thread_scratch().image, images * channels * plane.size());
  parallel_for(0, images * channels, std::max<int64_t>(1, 32768 / (plane.size() + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      load_plane(plane, cores, plane_at(x, image + i / channels, channel + i % channels), x.type, x.strides + 2, T(0),
                 to + i * plane.size());
  });
  return {plane, to, channels, taps_first, cores};
}

// One group of some images of a result x[images, channels, positions] as dense rows, a channel's positions image by image.
template <class T>
void join_images(const Cores<T>& cores, const ConvOperand& x, int64_t image, int64_t images, int64_t channel,
                 int64_t channels, const int64_t* sizes, T* to) {
  const int64_t positions = count(sizes);
  parallel_for(0, images * channels, std::max<int64_t>(1, 32768 / (positions + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      copy_plane(cores, x, image + i % images, channel + i / images, sizes, to + i * positions);
  });
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
  const Batches batches(s);
  each_map(batches.count * s.groups, [&](int64_t task, int threads) {
    const int64_t batch = task / s.groups, group = task % s.groups, first = batches.begin(batch),
                  images = batches.size(batch), n = images * positions;
    // The rows of the epilogue, and where the planes of an image lie.
    const auto row_of = [&](int64_t image) { return ((first + image) * s.groups + group) * s.filters; };
    const auto place_of = [&](int64_t image) { return element(out, row_of(image) * positions, out_type); };
    Problem<T> p{.core = cores.gemm,
                 .bf16 = nullptr,
                 .m = s.filters,
                 .n = n,
                 .k = k,
                 .a = {element(weight, group * s.filters * k, weight_type), k, 1, storage_of(weight_type)},
                 .b = {nullptr, 0, 1, gemm_detail::kNative},
                 .packed = nullptr,
                 .c = place_of(0),
                 .c_row_stride = positions,
                 .c_col_stride = 1,
                 .c_storage = storage_of(out_type),
                 .alpha = T(1),
                 .accumulate = false,
                 .swapped = false};
    if (images == 1 && is_plain(s) && stride) {
      p.b = {plane_at(x, first, group * s.channels), x.strides[1], *stride, storage_of(x.type)};
      return multiply(p, threads, options.epilogue, row_of(0));
    }
    const Columns<T> columns = load_images(plane, cores, x, first, images, group * s.channels, s.channels, options.taps_first);
    const PanelMaker maker{pack_positions<T>, &columns};
    p.maker = &maker;
    if (images == 1) return multiply(p, threads, options.epilogue, row_of(0));
    T* joined = reserve<T>(thread_scratch().columns, s.filters * n);
    p.c = joined;
    p.c_row_stride = n;
    p.c_storage = gemm_detail::kNative;
    multiply(p, threads);
    parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* tile = joined + i * positions;
        if (auto* e = options.epilogue) e->function(e->context, tile, row_of(i), 0, s.filters, positions, n);
        cores.gemm->store(tile, n, s.filters, positions, place_of(i), storage_of(out_type), positions, 1);
      }
    });
  });
}

// The weight of the convolution that goes the way back: [groups * channels, filters, kernel], each window turned around, in
// the order of the weight.
template <class T>
std::vector<T> turned_weight(const Cores<T>& cores, const ConvShape& s, const void* weight, GemmType type, bool taps_first) {
  constexpr int64_t kFilters = 16;  // whose windows are written one behind another
  const int64_t taps = taps_of(s), row = s.channels * taps;
  std::vector<T> out(size_t(s.groups * s.filters * row));
  parallel_for(0, s.groups * ceil_div(s.filters, kFilters), 1, [&](int64_t begin, int64_t end) {
    std::vector<T> rows(size_t(kFilters * row));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t group = task / ceil_div(s.filters, kFilters),
                    first = task % ceil_div(s.filters, kFilters) * kFilters,
                    filters = std::min(kFilters, s.filters - first);
      cores.gemm->load(element(weight, (group * s.filters + first) * row, type), storage_of(type), row, 1, filters, row,
                       rows.data(), row);
      for (int64_t c = 0; c < s.channels; ++c) {
        T* to = out.data() + (group * s.channels + c) * s.filters * taps;
        if (taps_first) {
          for (int64_t t = 0; t < taps; ++t)
            for (int64_t f = 0; f < filters; ++f) to[t * s.filters + first + f] = rows[size_t(f * row + (taps - 1 - t) * s.channels + c)];
          continue;
        }
        to += first * taps;
        for (int64_t f = 0; f < filters; ++f)
          for (int64_t t = 0; t < taps; ++t) *to++ = rows[size_t(f * row + (c + 1) * taps - 1 - t)];
      }
    }
  });
  return out;
}

// The way back as a convolution of its own, where no stride leaves holes in its input. Turning the weight costs more than
// adding columns up where there are few positions for each filter.
std::optional<ConvShape> way_back(const ConvShape& s) {
  if (s.images * count(s.out) < 4 * s.filters) return {};
  ConvShape back = s;
  std::swap(back.channels, back.filters);
  for (int d = 0; d < 3; ++d) {
    back.in[d] = s.out[d];
    back.out[d] = s.in[d];
    back.padding[d] = (s.kernel[d] - 1) * s.dilation[d] - s.padding[d];
    if (s.stride[d] != 1 || back.padding[d] < 0 || s.out[d] == 0) return {};
  }
  return back;
}

template <class T>
void convolve_back(const ConvShape& s, const ConvOperand& given, const void* weight, GemmType weight_type, void* out,
                   GemmType out_type, const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  const Batches batches(s);
  const bool together = batches.count < s.images, plain = is_plain(s) && !together;
  if (auto back = plain ? std::nullopt : way_back(s)) {
    const std::vector<T> turned = turned_weight(cores, s, weight, weight_type, options.taps_first);
    const GemmType type = sizeof(T) == 8 ? GemmType::f64 : GemmType::f32;
    return convolve<T>(*back, given, turned.data(), type, out, out_type, options);
  }
  const int64_t taps = taps_of(s), from = count(s.out), to = count(s.in), width = s.out[2];
  const auto stride = position_stride(given, s.out);
  std::vector<T> dense;
  if (!stride || together) {
    dense.resize(size_t(s.images * s.groups * s.filters * from));
    for (int64_t batch = 0; batch < batches.count; ++batch)
      join_images(cores, given, batches.begin(batch), batches.size(batch), 0, s.groups * s.filters, s.out,
                  dense.data() + batches.begin(batch) * s.groups * s.filters * from);
  }
  // Rows of a batch's columns, which lie as a filter's weights do, over positions [begin, begin + n).
  const auto columns_of = [&](int64_t batch, int64_t group, int64_t first_row, int64_t rows, int64_t begin, int64_t n) {
    const int64_t row = group * s.filters * s.channels * taps + first_row, first = batches.begin(batch);
    View b{nullptr, given.strides[1], stride.value_or(1), storage_of(given.type)};
    if (dense.empty()) {
      b.data = plane_at(given, first, group * s.filters) + begin * *stride * size_of(given.type);
    } else {
      const int64_t all = batches.size(batch) * from;
      b = {dense.data() + first * s.groups * s.filters * from + group * s.filters * all + begin, all, 1,
           gemm_detail::kNative};
    }
    return Problem<T>{.core = cores.gemm,
                      .bf16 = nullptr,
                      .m = rows,
                      .n = n,
                      .k = s.filters,
                      .a = {element(weight, row, weight_type), 1, s.channels * taps, storage_of(weight_type)},
                      .b = b,
                      .packed = nullptr,
                      .c = nullptr,
                      .c_row_stride = n,
                      .c_col_stride = 1,
                      .c_storage = gemm_detail::kNative,
                      .alpha = T(1),
                      .accumulate = false,
                      .swapped = false};
  };
  if (plain) {
    each_map(s.images * s.groups, [&](int64_t map, int threads) {
      Problem<T> p = columns_of(map / s.groups, map % s.groups, 0, s.channels, 0, from);  // a tap only
      p.c = element(out, map * s.channels * to, out_type);
      p.c_storage = storage_of(out_type);
      multiply(p, threads, options.epilogue, map * s.channels);
    });
    return;
  }
  const Plane plane(s);
  // Rows that are multiplied at a time: those of some channels, or, taps first, of a tap of more of them. How many decides
  // nothing but the speed.
  const bool by_taps = options.taps_first && taps > 1;
  const int64_t share = s.channels * s.groups * batches.count / (2 * num_threads());
  const int64_t wanted = by_taps ? std::clamp(share, kLeastChannels, kMostChannels) : ceil_div(kRows, taps);
  const int64_t most = std::clamp<int64_t>(wanted, 1, s.channels), blocks = ceil_div(s.channels, most);
  const int64_t line_bytes = most * taps * width * int64_t(sizeof(T)), plane_lines = s.out[0] * s.out[1];
  const std::vector<T> ones(size_t(taps), T(1));
  // What all blocks and taps of a batch multiply with, packed once where it is multiplied whole.
  std::vector<std::vector<T>> packed(size_t(batches.count * s.groups));
  if (by_taps && batches.size(0) * plane_lines * line_bytes <= kColumnBytes)
    parallel_for(0, batches.count * s.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = batches.size(i / s.groups) * from;
        const View b = columns_of(i / s.groups, i % s.groups, 0, 1, 0, n).b;
        packed[size_t(i)].resize(size_t(gemm_detail::packed_elements<T>(*cores.gemm, s.filters, n, b.storage)));
        gemm_detail::pack_whole<T>(*cores.gemm, s.filters, n, b, packed[size_t(i)].data());
      }
    });
  parallel_for(0, batches.count * s.groups * blocks, 1, [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t batch = task / blocks / s.groups, group = task / blocks % s.groups, block = task % blocks;
      const int64_t c0 = s.channels * block / blocks, c1 = s.channels * (block + 1) / blocks, channels = c1 - c0;
      const int64_t images = batches.size(batch), lines = images * plane_lines;
      const int64_t step =
          std::clamp<int64_t>(kColumnBytes / std::max<int64_t>(line_bytes, 1), 1, std::max<int64_t>(lines, 1));
      T* planes = reserve<T>(thread_scratch().image, images * channels * plane.size());
      cores.conv->fill(planes, images * channels * plane.size(), T(0));
      for (int64_t first = 0; first < lines; first += step) {
        const int64_t last = std::min(first + step, lines), n = (last - first) * width;
        T* columns = reserve<T>(thread_scratch().columns, channels * taps * n);
        const int64_t products = by_taps ? taps : 1, rows = channels * taps / products;
        for (int64_t i = 0; i < products; ++i) {
          Problem<T> p = columns_of(batch, group, by_taps ? i * s.channels + c0 : c0 * taps, rows, first * width, n);
          if (auto& whole = packed[size_t(batch * s.groups + group)]; !whole.empty() && n == images * from) p.packed = whole.data();
          p.c = columns + i * rows * n;
          multiply(p, 1);
        }
        for (int64_t row = 0; row < channels * taps; ++row) {
          const int64_t channel = by_taps ? row % channels : row / taps, tap = by_taps ? row / channels : row % taps;
          for (int64_t line = first; line < last;) {
            const int64_t image = line / plane_lines, z = line % plane_lines / s.out[1], y = line % s.out[1],
                          run = std::min(s.out[1] - y, last - line);
            cores.conv->spread({columns + row * n + (line - first) * width, width, &plane.taps[size_t(tap)],
                                ones.data(), 1, run, width,
                                planes + (image * channels + channel) * plane.size() + plane.window(z, y),
                                s.stride[1] * plane.line()});
            line += run;
          }
        }
      }
      const bool direct = storage_of(out_type) == gemm_detail::kNative;
      for (int64_t i = 0; i < images * channels; ++i) {
        const int64_t row = ((batches.begin(batch) + i / channels) * s.groups + group) * s.channels + c0 + i % channels;
        T* result = direct ? static_cast<T*>(out) + row * to : reserve<T>(thread_scratch().plane, to);
        store_plane(plane, cores, planes + i * plane.size(), result);
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
  const Batches batches(s);
  const int threads = num_threads();
  for (int64_t task = 0; task < batches.count * s.groups; ++task) {
    const int64_t batch = task / s.groups, group = task % s.groups, first = batches.begin(batch),
                  images = batches.size(batch), k = images * positions;
    View a{plane_at(grad, first, group * s.filters), grad.strides[1], grad_stride.value_or(1), storage_of(grad.type)};
    if (!grad_stride || images > 1) {
      T* dense = reserve<T>(thread_scratch().columns, s.filters * k);
      join_images(cores, grad, first, images, group * s.filters, s.filters, s.out, dense);
      a = {dense, k, 1, gemm_detail::kNative};
    }
    Problem<T> p{.core = cores.gemm,
                 .bf16 = nullptr,
                 .m = s.filters,
                 .n = n,
                 .k = k,
                 .a = a,
                 .b = {nullptr, 0, 1, gemm_detail::kNative},
                 .packed = nullptr,
                 .c = sums + group * s.filters * n,
                 .c_row_stride = n,
                 .c_col_stride = 1,
                 .c_storage = gemm_detail::kNative,
                 .alpha = T(1),
                 .accumulate = batch > 0,
                 .swapped = false};
    if (images == 1 && is_plain(s) && x_stride) {
      p.b = {plane_at(x, first, group * s.channels), *x_stride, x.strides[1], storage_of(x.type)};
      multiply(p, threads);
      continue;
    }
    const Columns<T> columns = load_images(plane, cores, x, first, images, group * s.channels, s.channels, options.taps_first);
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
