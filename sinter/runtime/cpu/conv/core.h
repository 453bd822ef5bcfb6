#pragma once
// What one instruction set offers to convolutions and pools beside its GEMM kernels. Internal to conv/.
#include <cstdint>
#include <type_traits>

namespace sinter::runtime::conv_detail {

// Kernels may read up to this many elements behind the last one they are given.
inline constexpr int64_t kSlack = 64;

// A run of output positions that lie in one line: where it begins in an image, and how many.
struct Segment {
  int64_t offset, count;
};

// Rows of a gathered panel: row k is channel k / taps, tap k % taps, or, taps first, channel k % channels, tap k / channels;
// its columns are the segments one after the other.
template <class T>
struct GatherArgs {
  const T* image;
  int64_t channel_stride;
  const int64_t* taps;  // offsets
  int64_t tap_count, channels;
  bool taps_first;
  int64_t first_row, rows;
  const Segment* segments;
  int64_t segment_count;
  int64_t cols, panel;  // of `panel` columns those from `cols` on become zero
  T* dst;
};

// For every line and i < count: dst[i] = the combination over t of src[taps[t] + i].
template <class T>
struct WindowArgs {
  const T* src;
  int64_t src_stride;
  const int64_t* taps;
  const T* weights;  // read by `weighted` and `spread`
  int64_t tap_count;
  int64_t lines, count;
  T* dst;
  int64_t dst_stride;
};

template <class T>
using IndexOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class T>
struct ConvCore {
  void (*fill)(T* dst, int64_t count, T value);
  // Element i of src goes to phase (first + i) % stride, place (first + i) / stride; phases are `pitch` apart.
  void (*split)(const T* src, int64_t count, int64_t stride, int64_t first, T* dst, int64_t pitch);
  // The reverse of split.
  void (*join)(const T* src, int64_t pitch, int64_t stride, int64_t first, int64_t count, T* dst);
  void (*gather)(const GatherArgs<T>& args);
  void (*weighted)(const WindowArgs<T>& args);  // sums of weights[t] * element
  void (*sum)(const WindowArgs<T>& args);
  void (*max)(const WindowArgs<T>& args);  // NaN wins
  // The first t with the largest element; NaN is larger than all. `dst` is not used.
  void (*argmax)(const WindowArgs<T>& args, IndexOf<T>* best);
  // The reverse of weighted: dst[taps[t] + i] += weights[t] * src[i]. Writes what it reads behind dst back as it was.
  void (*spread)(const WindowArgs<T>& args);
  // sums[t] += the sum over lines and i of dst[i] * src[taps[t] + i]; dst is read only.
  void (*dots)(const WindowArgs<T>& args, T* sums);
};

// Those of an instruction set the build has no support for are null.
template <class T>
const ConvCore<T>* scalar_core();
template <class T>
const ConvCore<T>* avx2_core();
template <class T>
const ConvCore<T>* avx512_core();

}  // namespace sinter::runtime::conv_detail
