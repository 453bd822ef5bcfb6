#include "sinter/runtime/cpu/conv/image.h"

namespace sinter::runtime::conv_detail {

namespace {

template <class T>
const ConvCore<T>* conv_core(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa == CpuIsa::kAvx512) return avx512_core<T>();
  if (isa == CpuIsa::kAvx2) return avx2_core<T>();
#endif
  return isa == CpuIsa::kScalar || isa == CpuIsa::kNeon ? scalar_core<T>() : nullptr;
}

}  // namespace

template <>
Cores<float> cores_of(CpuIsa isa) {
  return {conv_core<float>(isa), gemm_detail::core_f32(isa)};
}
template <>
Cores<double> cores_of(CpuIsa isa) {
  return {conv_core<double>(isa), gemm_detail::core_f64(isa)};
}

Storage storage_of(GemmType type) {
  return type == GemmType::bf16  ? gemm_detail::kBFloat16
         : type == GemmType::f16 ? gemm_detail::kHalf
                                 : gemm_detail::kNative;
}

ThreadScratch& thread_scratch() {
  thread_local ThreadScratch scratch;
  return scratch;
}

Plane::Plane(const ConvShape& s) : shape(s) {
  // Along each dimension whichever is longer: what the windows reach or, for the way back, the padded input itself.
  int64_t extent[3];
  for (int d = 0; d < 3; ++d)
    extent[d] = std::max((std::max<int64_t>(s.out[d], 1) - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1,
                         s.in[d] + s.padding[d]);
  depth = extent[0];
  rows = extent[1];
  phases = s.stride[2];
  pitch = ceil_div(extent[2], phases);
  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      for (int64_t x = 0; x < s.kernel[2]; ++x) {
        const int64_t along = x * s.dilation[2];
        taps.push_back((z * s.dilation[0] * rows + y * s.dilation[1]) * line() + along % phases * pitch +
                       along / phases);
      }
}

template <class T>
void load_plane(const Plane& plane, const Cores<T>& cores, const void* x, GemmType type, const int64_t* strides,
                T padding, T* dst) {
  const ConvShape& s = plane.shape;
  const ConvCore<T>& core = *cores.conv;
  const int64_t line = plane.line(), front = s.padding[2], width = s.in[2], slice = plane.rows * line;
  const Storage storage = storage_of(type);
  const bool direct = storage == gemm_detail::kNative && strides[2] == 1;
  T* unsplit = plane.phases > 1 && !direct ? reserve<T>(thread_scratch().line, width) : nullptr;
  for (int64_t z = 0; z < plane.depth; ++z) {
    T* to = dst + z * slice;
    const int64_t from_z = z - s.padding[0];
    if (from_z < 0 || from_z >= s.in[0]) {
      core.fill(to, slice, padding);
      continue;
    }
    core.fill(to, s.padding[1] * line, padding);
    core.fill(to + (s.padding[1] + s.in[1]) * line, (plane.rows - s.padding[1] - s.in[1]) * line, padding);
    to += s.padding[1] * line;
    const char* from = element(x, from_z * strides[0], type);
    if (plane.phases == 1) {
      cores.gemm->load(from, storage, strides[1], strides[2], s.in[1], width, to + front, line);
      const int64_t behind = line - front - width;
      if (front + behind == 0) continue;
      // The end of a line and the beginning of the next lie together.
      for (int64_t i = 0; i < front; ++i) to[i] = padding;
      for (int64_t y = 0; y < s.in[1]; ++y, to += line) {
        T* gap = to + front + width;
        const int64_t count = behind + (y + 1 < s.in[1] ? front : 0);
        for (int64_t i = 0; i < count; ++i) gap[i] = padding;
      }
      continue;
    }
    for (int64_t y = 0; y < s.in[1]; ++y, to += line) {
      const char* row = from + y * strides[1] * size_of(type);
      const T* values = reinterpret_cast<const T*>(row);
      if (!direct) {
        cores.gemm->load(row, storage, 0, strides[2], 1, width, unsplit, width);
        values = unsplit;
      }
      core.fill(to, line, padding);
      core.split(values, width, plane.phases, front, to, plane.pitch);
    }
  }
}

template <class T>
void store_plane(const Plane& plane, const Cores<T>& cores, const T* src, T* dst) {
  const ConvShape& s = plane.shape;
  for (int64_t z = 0; z < s.in[0]; ++z)
    for (int64_t y = 0; y < s.in[1]; ++y, dst += s.in[2])
      cores.conv->join(src + ((z + s.padding[0]) * plane.rows + y + s.padding[1]) * plane.line(), plane.pitch,
                       plane.phases, s.padding[2], s.in[2], dst);
}

template void load_plane(const Plane&, const Cores<float>&, const void*, GemmType, const int64_t*, float, float*);
template void load_plane(const Plane&, const Cores<double>&, const void*, GemmType, const int64_t*, double, double*);
template void store_plane(const Plane&, const Cores<float>&, const float*, float*);
template void store_plane(const Plane&, const Cores<double>&, const double*, double*);

}  // namespace sinter::runtime::conv_detail
