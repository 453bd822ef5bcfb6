#pragma once
// Images as the kernels read them: padded, in the computing type, and each line split into phases of the stride, so
// that neighbouring outputs read neighbouring elements. Internal to conv/.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "sinter/runtime/cpu/conv/conv.h"
#include "sinter/runtime/cpu/conv/core.h"
#include "sinter/runtime/cpu/gemm/blocked.h"

namespace sinter::runtime::conv_detail {

using gemm_detail::GemmCore;
using gemm_detail::Scratch;
using gemm_detail::Storage;

// What the computing type T has on one instruction set.
template <class T>
struct Cores {
  const ConvCore<T>* conv;
  const GemmCore<T>* gemm;
};
template <class T>
Cores<T> cores_of(CpuIsa isa);

Storage storage_of(GemmType type);
inline int64_t size_of(GemmType type) { return type == GemmType::f64 ? 8 : type == GemmType::f32 ? 4 : 2; }
inline const char* element(const void* data, int64_t index, GemmType type) {
  return static_cast<const char*>(data) + index * size_of(type);
}
inline char* element(void* data, int64_t index, GemmType type) {
  return static_cast<char*>(data) + index * size_of(type);
}
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Memory of a thread, kept from call to call; the uses of one call lie apart.
struct ThreadScratch {
  Scratch image, line, plane, weights, columns;
};
ThreadScratch& thread_scratch();
template <class T>
T* reserve(Scratch& scratch, int64_t elements) {
  return static_cast<T*>(scratch.reserve((elements + kSlack) * int64_t(sizeof(T))));
}

// The geometry of one plane of an image.
struct Plane {
  int64_t depth, rows;        // lines, padding included
  int64_t phases, pitch;      // of a line
  std::vector<int64_t> taps;  // offsets of the window's elements from its first
  ConvShape shape;

  explicit Plane(const ConvShape& shape);
  int64_t line() const { return phases * pitch; }
  int64_t size() const { return depth * rows * line(); }
  int64_t positions() const { return shape.out[0] * shape.out[1] * shape.out[2]; }
  // Where the window of the first output of a line begins.
  int64_t window(int64_t z, int64_t y) const { return (z * shape.stride[0] * rows + y * shape.stride[1]) * line(); }
};

// Fills dst with one plane of x; `strides` are those of its three dimensions.
template <class T>
void load_plane(const Plane& plane, const Cores<T>& cores, const void* x, GemmType type, const int64_t* strides,
                T padding, T* dst);
// The reverse: what lies inside the padding, row-major.
template <class T>
void store_plane(const Plane& plane, const Cores<T>& cores, const T* src, T* dst);

// Where element [image, channel] begins.
inline const char* plane_at(const ConvOperand& x, int64_t image, int64_t channel) {
  return element(x.data, image * x.strides[0] + channel * x.strides[1], x.type);
}

// Epilogue and store of one finished plane of a result, which may lie in its place already.
template <class T>
void finish_plane(const Cores<T>& cores, T* plane, int64_t row, int64_t positions, void* out, GemmType type,
                  const ConvOptions& options) {
  if (options.epilogue) options.epilogue->function(options.epilogue->context, plane, row, 0, 1, positions, positions);
  void* to = element(out, row * positions, type);
  if (plane != to) cores.gemm->store(plane, positions, 1, positions, to, storage_of(type), positions, 1);
}

// A plane copied to row-major positions in the computing type.
template <class T>
void copy_plane(const Cores<T>& cores, const ConvOperand& x, int64_t image, int64_t channel, const int64_t* sizes,
                T* to) {
  const int64_t* strides = x.strides + 2;
  const char* from = plane_at(x, image, channel);
  const Storage storage = storage_of(x.type);
  const int64_t slice = sizes[1] * sizes[2];
  if (strides[2] == 1 && strides[1] == sizes[2])
    for (int64_t z = 0; z < sizes[0]; ++z)
      cores.gemm->load(from + z * strides[0] * size_of(x.type), storage, slice, 1, 1, slice, to + z * slice, slice);
  else
    for (int64_t z = 0; z < sizes[0]; ++z)
      cores.gemm->load(from + z * strides[0] * size_of(x.type), storage, strides[1], strides[2], sizes[1], sizes[2],
                       to + z * slice, sizes[2]);
}

// The outputs of output slice z as windows over a plane; dst is row-major.
template <class T>
WindowArgs<T> windows_of(const Plane& plane, const T* src, int64_t z, T* dst) {
  return {src + plane.window(z, 0),   plane.shape.stride[1] * plane.line(),
          plane.taps.data(),          nullptr,
          int64_t(plane.taps.size()), plane.shape.out[1],
          plane.shape.out[2],         dst + z * plane.shape.out[1] * plane.shape.out[2],
          plane.shape.out[2]};
}

// Calls body(type) with a value of the computing type.
template <class F>
void with_type(GemmType type, F body) {
  if (type == GemmType::f64)
    body(double());
  else
    body(float());
}

// Depthwise convolutions: one channel a group. In depthwise.cpp.
template <class T>
void depthwise(const ConvShape& shape, const ConvOperand& x, const void* weight, GemmType weight_type, void* out,
               GemmType out_type, const ConvOptions& options);
template <class T>
void depthwise_transposed(const ConvShape& shape, const ConvOperand& x, const void* weight, GemmType weight_type,
                          void* out, GemmType out_type, const ConvOptions& options);
template <class T>
void depthwise_weight_grad(const ConvShape& shape, const ConvOperand& x, const ConvOperand& grad, void* out,
                           GemmType out_type, const ConvOptions& options);

}  // namespace sinter::runtime::conv_detail
