#pragma once
// The text of codegen/cuda/tile.embed, compiled for the host as far as it is arithmetic.
#pragma GCC system_header  // its pragmas are those of another compiler

// What the text uses of CUDA and of the prelude.
#define __device__
#define __forceinline__ inline
#define __noinline__ inline
#define __shared__
#define __align__(bytes)
namespace k {
typedef long i64;
typedef unsigned long long u64;
typedef float f32;
template <int N>
struct Vectors {};
template <class X, class T>
void store1(void* p, i64 at, T v);
inline unsigned long __cvta_generic_to_shared(const void*) { return 0; }
struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
struct Index {
  unsigned x = 0;
};
inline Index threadIdx;
inline void __syncwarp() {}
}  // namespace k
#include "sinter/codegen/cuda/tile.embed"
