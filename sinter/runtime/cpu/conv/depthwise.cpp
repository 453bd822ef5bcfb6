// Convolutions with one channel a group: direct, a plane at a time, at the speed of memory.
#include "sinter/base/thread_pool.h"
#include "sinter/runtime/cpu/conv/image.h"
#include "sinter/runtime/cpu/flush_denormals.h"

namespace sinter::runtime::conv_detail {

namespace {

// Planes handed out together: small ones are not worth a hand-over each.
int64_t plane_grain(const Plane& plane, int64_t filters) {
  return std::max<int64_t>(1, 32768 / (plane.size() + filters * plane.positions() + 1));
}

// The weights in the computing type.
template <class T>
std::vector<T> wide_weights(const Cores<T>& cores, const void* weight, GemmType type, int64_t count) {
  std::vector<T> out(static_cast<size_t>(count));
  cores.gemm->load(weight, storage_of(type), count, 1, 1, count, out.data(), count);
  return out;
}

// Without strides the way back is a convolution too, by the window turned round.
bool turns_round(const ConvShape& s, ConvShape* turned) {
  if (s.filters != 1) return false;
  *turned = s;
  for (int d = 0; d < 3; ++d) {
    turned->in[d] = s.out[d];
    turned->out[d] = s.in[d];
    turned->padding[d] = s.dilation[d] * (s.kernel[d] - 1) - s.padding[d];
    if (s.stride[d] != 1 || turned->padding[d] < 0) return false;
  }
  return true;
}

}  // namespace

template <class T>
void depthwise(const ConvShape& s, const ConvOperand& x, const void* weight, GemmType weight_type, void* out,
               GemmType out_type, const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  const Plane plane(s);
  const int64_t taps = int64_t(plane.taps.size()), positions = plane.positions();
  const std::vector<T> weights = wide_weights(cores, weight, weight_type, s.groups * s.filters * taps);
  const bool direct = storage_of(out_type) == gemm_detail::kNative;
  parallel_for(0, s.images * s.groups, plane_grain(plane, s.filters), [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    T* padded = reserve<T>(thread_scratch().image, plane.size());
    T* result = direct ? nullptr : reserve<T>(thread_scratch().plane, positions);
    for (int64_t map = begin; map < end; ++map) {
      load_plane(plane, cores, plane_at(x, map / s.groups, map % s.groups), x.type, x.strides + 2, T(0), padded);
      for (int64_t f = 0; f < s.filters; ++f) {
        const int64_t row = map * s.filters + f;
        if (direct) result = static_cast<T*>(out) + row * positions;
        for (int64_t z = 0; z < s.out[0]; ++z) {
          WindowArgs<T> args = windows_of(plane, padded, z, result);
          args.weights = weights.data() + (map % s.groups * s.filters + f) * taps;
          cores.conv->weighted(args);
        }
        finish_plane(cores, result, row, positions, out, out_type, options);
      }
    }
  });
}

template <class T>
void depthwise_transposed(const ConvShape& s, const ConvOperand& x, const void* weight, GemmType weight_type, void* out,
                          GemmType out_type, const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  if (ConvShape turned; turns_round(s, &turned)) {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    std::vector<T> weights = wide_weights(cores, weight, weight_type, s.groups * taps);
    for (auto at = weights.begin(); at != weights.end(); at += taps) std::reverse(at, at + taps);
    return depthwise<T>(turned, x, weights.data(), sizeof(T) == 8 ? GemmType::f64 : GemmType::f32, out, out_type,
                        options);
  }
  const Plane plane(s);
  const int64_t taps = int64_t(plane.taps.size()), from = plane.positions(), to = s.in[0] * s.in[1] * s.in[2];
  const std::vector<T> weights = wide_weights(cores, weight, weight_type, s.groups * s.filters * taps);
  const bool direct = storage_of(out_type) == gemm_detail::kNative;
  parallel_for(0, s.images * s.groups, plane_grain(plane, s.filters), [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    T* padded = reserve<T>(thread_scratch().image, plane.size());
    T* given = reserve<T>(thread_scratch().columns, from);
    T* result = direct ? nullptr : reserve<T>(thread_scratch().plane, to);
    for (int64_t map = begin; map < end; ++map) {
      cores.conv->fill(padded, plane.size(), T(0));
      for (int64_t f = 0; f < s.filters; ++f) {
        const int64_t filter = map % s.groups * s.filters + f;
        copy_plane(cores, x, map / s.groups, filter, s.out, given);
        for (int64_t z = 0; z < s.out[0]; ++z)
          cores.conv->spread({given + z * s.out[1] * s.out[2], s.out[2], plane.taps.data(),
                              weights.data() + filter * taps, taps, s.out[1], s.out[2], padded + plane.window(z, 0),
                              s.stride[1] * plane.line()});
      }
      if (direct) result = static_cast<T*>(out) + map * to;
      store_plane(plane, cores, padded, result);
      finish_plane(cores, result, map, to, out, out_type, options);
    }
  });
}

template <class T>
void depthwise_weight_grad(const ConvShape& s, const ConvOperand& x, const ConvOperand& grad, void* out,
                           GemmType out_type, const ConvOptions& options) {
  const Cores<T> cores = cores_of<T>(options.isa);
  const Plane plane(s);
  const int64_t taps = int64_t(plane.taps.size());
  // A channel's sums run over all images in their order.
  parallel_for(0, s.groups, 1, [&](int64_t begin, int64_t end) {
    const FlushDenormals flush;
    T* padded = reserve<T>(thread_scratch().image, plane.size());
    T* given = reserve<T>(thread_scratch().columns, plane.positions());
    std::vector<T> sums(static_cast<size_t>(s.filters * taps));
    for (int64_t group = begin; group < end; ++group) {
      std::fill(sums.begin(), sums.end(), T(0));
      for (int64_t image = 0; image < s.images; ++image) {
        load_plane(plane, cores, plane_at(x, image, group), x.type, x.strides + 2, T(0), padded);
        for (int64_t f = 0; f < s.filters; ++f) {
          copy_plane(cores, grad, image, group * s.filters + f, s.out, given);
          for (int64_t z = 0; z < s.out[0]; ++z)
            cores.conv->dots(windows_of(plane, padded, z, given), sums.data() + f * taps);
        }
      }
      const int64_t count = s.filters * taps;
      cores.gemm->store(sums.data(), count, 1, count, element(out, group * count, out_type), storage_of(out_type),
                        count, 1);
    }
  });
}

#define SINTER_DEPTHWISE(T)                                                                                           \
  template void depthwise<T>(const ConvShape&, const ConvOperand&, const void*, GemmType, void*, GemmType,            \
                             const ConvOptions&);                                                                     \
  template void depthwise_transposed<T>(const ConvShape&, const ConvOperand&, const void*, GemmType, void*, GemmType, \
                                        const ConvOptions&);                                                          \
  template void depthwise_weight_grad<T>(const ConvShape&, const ConvOperand&, const ConvOperand&, void*, GemmType,   \
                                         const ConvOptions&);
SINTER_DEPTHWISE(float)
SINTER_DEPTHWISE(double)
#undef SINTER_DEPTHWISE

}  // namespace sinter::runtime::conv_detail
