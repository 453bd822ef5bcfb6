#include "sinter/runtime/cpu/conv/pool.h"

#include <array>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/conv/image.h"
#include "sinter/runtime/cpu/flush_denormals.h"

namespace sinter::runtime {

using namespace conv_detail;

namespace {

int64_t count(const int64_t* sizes) { return sizes[0] * sizes[1] * sizes[2]; }

// Calls body(plane number, padded plane) for every plane of x.
template <class T, class F>
void each_plane(const Plane& plane, const Cores<T>& cores, const void* x, GemmType type, T padding, F body) {
  const ConvShape& s = plane.shape;
  const int64_t strides[3] = {s.in[1] * s.in[2], s.in[2], 1}, size = count(s.in);
  const int64_t grain = std::max<int64_t>(1, 32768 / (plane.size() + plane.positions() + 1));
  parallel_for(0, s.images, grain, [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    T* padded = reserve<T>(thread_scratch().image, plane.size());
    for (int64_t i = begin; i < end; ++i) {
      load_plane(plane, cores, element(x, i * size, type), type, strides, padding, padded);
      body(i, padded);
    }
  });
}

// One number a window, by a kernel of the core.
template <class T>
void combine(const ConvShape& s, const void* x, GemmType type, T padding,
             void (*ConvCore<T>::*kernel)(const WindowArgs<T>&), void* out, CpuIsa isa) {
  const Cores<T> cores = cores_of<T>(isa);
  const Plane plane(s);
  const int64_t positions = plane.positions();
  const bool direct = storage_of(type) == gemm_detail::kNative;
  each_plane(plane, cores, x, type, padding, [&](int64_t i, T* padded) {
    T* result = direct ? static_cast<T*>(out) + i * positions : reserve<T>(thread_scratch().plane, positions);
    for (int64_t z = 0; z < s.out[0]; ++z) (cores.conv->*kernel)(windows_of(plane, padded, z, result));
    finish_plane(cores, result, i, positions, out, type, {});
  });
}

// The place in the plane of an output's winning tap.
class Places {
 public:
  explicit Places(const ConvShape& s) : s_(s) {
    for (int64_t z = 0; z < s.kernel[0]; ++z)
      for (int64_t y = 0; y < s.kernel[1]; ++y)
        for (int64_t x = 0; x < s.kernel[2]; ++x)
          flat_.push_back(flat(z * s.dilation[0], y * s.dilation[1], x * s.dilation[2]));
    padded_ = s.padding[0] + s.padding[1] + s.padding[2] > 0;
  }
  // Of the line (z, y) of outputs.
  template <class Index>
  void store(int64_t z, int64_t y, const Index* taps, int64_t* out) const {
    const int64_t begin[3] = {z * s_.stride[0] - s_.padding[0], y * s_.stride[1] - s_.padding[1], -s_.padding[2]};
    const bool inside = begin[0] >= 0 && begin[1] >= 0;
    const int64_t base = flat(begin[0], begin[1], begin[2]);
    int64_t x = 0;
    if (padded_)
      for (; x < s_.out[2] && (!inside || begin[2] + x * s_.stride[2] < 0); ++x)
        out[x] = place(taps[x], begin[0], begin[1], begin[2] + x * s_.stride[2]);
    for (; x < s_.out[2]; ++x) out[x] = base + flat_[size_t(taps[x])] + x * s_.stride[2];
  }

 private:
  int64_t flat(int64_t z, int64_t y, int64_t x) const { return (z * s_.in[1] + y) * s_.in[2] + x; }
  // Padding wins only where all are -inf; the first real tap stands for it.
  int64_t place(int64_t tap, int64_t z, int64_t y, int64_t x) const {
    int64_t begin[3] = {z, y, x},
            t[3] = {tap / s_.kernel[2] / s_.kernel[1], tap / s_.kernel[2] % s_.kernel[1], tap % s_.kernel[2]};
    for (int d = 0; d < 3; ++d) {
      if (begin[d] < 0) t[d] = std::max(t[d], ceil_div(-begin[d], s_.dilation[d]));
      begin[d] += t[d] * s_.dilation[d];
    }
    return flat(begin[0], begin[1], begin[2]);
  }

  const ConvShape& s_;
  std::vector<int64_t> flat_;
  bool padded_;
};

// Of each element of a plane the last window that holds it, by dimension, and how many windows do at most: an index that is in
// none of them was not chosen by the window it stands at.
struct HoldingWindows {
  std::vector<std::array<uint32_t, 3>> last;
  std::array<uint32_t, 3> most;

  explicit HoldingWindows(const ConvShape& s) {
    for (int d = 0; d < 3; ++d) most[size_t(d)] = uint32_t(ceil_div(s.kernel[d], s.stride[d]));
    last.reserve(size_t(count(s.in)));
    auto window = [&](int d, int64_t place) { return uint32_t((place + s.padding[d]) / s.stride[d]); };
    for (int64_t z = 0; z < s.in[0]; ++z)
      for (int64_t y = 0; y < s.in[1]; ++y)
        for (int64_t x = 0; x < s.in[2]; ++x) last.push_back({window(0, z), window(1, y), window(2, x)});
  }
  bool hold(int64_t place, int64_t z, int64_t y, int64_t x) const {
    auto& at = last[size_t(place)];
    return at[0] - uint32_t(z) < most[0] && at[1] - uint32_t(y) < most[1] && at[2] - uint32_t(x) < most[2];
  }
};

void check_isa(CpuIsa isa) {
  check(isa == best_cpu_isa() || cpu_supports(isa), "pool: this machine lacks the instruction set asked for");
}

}  // namespace

void max_pool(const ConvShape& shape, const void* x, GemmType type, void* out, CpuIsa isa) {
  check_isa(isa);
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    combine<T>(shape, x, type, -std::numeric_limits<T>::infinity(), &ConvCore<T>::max, out, isa);
  });
}

void max_pool_indices(const ConvShape& s, const void* x, GemmType type, int64_t* out, CpuIsa isa) {
  check_isa(isa);
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const Cores<T> cores = cores_of<T>(isa);
    const Plane plane(s);
    const Places places(s);
    const int64_t slice = s.out[1] * s.out[2];
    each_plane(plane, cores, x, type, -std::numeric_limits<T>::infinity(), [&](int64_t i, T* padded) {
      auto* taps = static_cast<IndexOf<T>*>(thread_scratch().plane.reserve(slice * int64_t(sizeof(T))));
      for (int64_t z = 0; z < s.out[0]; ++z) {
        cores.conv->argmax(windows_of(plane, padded, z, static_cast<T*>(nullptr)), taps);
        for (int64_t y = 0; y < s.out[1]; ++y)
          places.store(z, y, taps + y * s.out[2], out + (i * s.out[0] + z) * slice + y * s.out[2]);
      }
    });
  });
}

void max_pool_grad(const ConvShape& s, const void* grad, const int64_t* indices, GemmType type, void* out) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const Cores<T> cores = cores_of<T>(best_cpu_isa());
    const int64_t in = count(s.in), positions = count(s.out);
    const ConvOperand operand{grad, {positions, positions, s.out[1] * s.out[2], s.out[2], 1}, type};
    const bool direct = storage_of(type) == gemm_detail::kNative;
    const HoldingWindows windows(s);
    const int64_t grain = std::max<int64_t>(1, 32768 / (in + positions + 1));
    parallel_for(0, s.images, grain, [&](int64_t begin, int64_t end) {
      T* from = reserve<T>(thread_scratch().image, positions);
      for (int64_t i = begin; i < end; ++i) {
        T* to = direct ? static_cast<T*>(out) + i * in : reserve<T>(thread_scratch().plane, in);
        copy_plane(cores, operand, i, 0, s.out, from);
        std::fill(to, to + in, T(0));
        const int64_t* chosen = indices + i * positions;
        const T* value = from;
        for (int64_t z = 0; z < s.out[0]; ++z)
          for (int64_t y = 0; y < s.out[1]; ++y)
            for (int64_t x = 0; x < s.out[2]; ++x, ++chosen, ++value)
              if (uint64_t(*chosen) < uint64_t(in) && windows.hold(*chosen, z, y, x)) to[*chosen] += *value;
        finish_plane(cores, to, i, in, out, type, {});
      }
    });
  });
}

void window_sum(const ConvShape& shape, const void* x, GemmType type, void* out, CpuIsa isa) {
  check_isa(isa);
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    combine<T>(shape, x, type, T(0), &ConvCore<T>::sum, out, isa);
  });
}

void window_sum_transposed(const ConvShape& shape, const void* x, GemmType type, void* out, CpuIsa isa) {
  check_isa(isa);
  ConvShape s = shape;
  s.groups = 1;
  s.channels = s.filters = 1;
  const std::vector<float> ones(size_t(count(s.kernel)), 1.f);
  const std::vector<double> wide_ones(ones.begin(), ones.end());
  const int64_t plane = count(s.out);
  const ConvOperand operand{x, {plane, plane, s.out[1] * s.out[2], s.out[2], 1}, type};
  const void* weight = type == GemmType::f64 ? static_cast<const void*>(wide_ones.data()) : ones.data();
  convolution_transposed(s, operand, weight, type == GemmType::f64 ? GemmType::f64 : GemmType::f32, out, type,
                         {.epilogue = nullptr, .isa = isa});
}

}  // namespace sinter::runtime
