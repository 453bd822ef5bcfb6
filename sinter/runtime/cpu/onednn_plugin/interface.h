#pragma once
// The C interface between the library and its oneDNN plugin (libsinter_onednn.so), which is loaded when tuning first
// asks for it. Nothing here depends on oneDNN or on the C++ runtime. Shapes are words only, so that their bytes are keys.
#include <stdint.h>

namespace sinter::runtime {

enum OnednnType : int64_t { kOnednnF32 = 0, kOnednnBf16 = 1, kOnednnF16 = 2 };

// C[batch, m, n] = A[batch, m, k] . B[batch, k, n]. Strides count elements: batch, row, column.
struct OnednnMatmul {
  int64_t type, out_type;
  int64_t batch, m, n, k;
  int64_t a[3], b[3], c[3];
};

// Row-major images, filters and results. Channels and filters are those of one group; unused dimensions in front have
// size 1.
struct OnednnConvolution {
  int64_t type;
  int64_t own_layouts;  // operands are brought into oneDNN's layouts in each call, and the result back
  int64_t images, groups, channels, filters;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

struct OnednnApi {
  const char* version;  // "2.6.3"
  // Null where oneDNN has no fast code for it. Owned by the caller.
  void* (*make_matmul)(const OnednnMatmul* shape);
  void* (*make_convolution)(const OnednnConvolution* shape);
  // On the calling thread alone, whatever OpenMP is set to; by any number of threads at once. False when it failed.
  bool (*run)(const void* primitive, const void* a, const void* b, void* c);
  void (*free)(void* primitive);
};

// The one symbol of the plugin. Renamed whenever this interface changes. Null with a reason when it cannot be used here.
using OnednnOpen = const OnednnApi* (*)(const char** problem);
inline constexpr char kOnednnOpenSymbol[] = "sinter_onednn_open_v1";

}  // namespace sinter::runtime
