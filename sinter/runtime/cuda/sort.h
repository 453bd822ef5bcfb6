#pragma once
// Sorting and searching on a GPU with kernels of our own, over plain device memory. NaN counts as the largest, both
// zeros as equal; equal elements keep their order. Everything is queued on this thread's stream, and what takes a
// workspace needs it until that work is done; nothing here takes memory by itself.
#include <cstdint>
#include <span>
#include <string>

#include "sinter/tensor/dtype.h"

namespace sinter::runtime {

// The lines of a row-major tensor along one dimension: `inner` is the product of the sizes behind it.
struct CudaLines {
  int64_t rows = 1, length = 0;
  int64_t inner = 1;
};

// The first `keep` elements of every line in order, and where they were: a sort when keep is the length, else top-k.
// The results have lines of `keep` elements; either pointer may be null.
struct CudaSort {
  DType dtype = kFloat32;
  CudaLines lines;
  int64_t keep = 0;
  bool descending = false;
  const void* x = nullptr;
  void* values = nullptr;
  int64_t* positions = nullptr;
};
int64_t cuda_sort_workspace(const CudaSort& sort);  // bytes
void cuda_sort(int device, const CudaSort& sort, void* workspace);

// Coordinates of the elements that are not zero, in row-major order. First the count, for which the host waits; then,
// with the same workspace, `count` rows of as many coordinates as there are sizes (16 at most).
int64_t cuda_nonzero_workspace(int64_t numel);
int64_t cuda_nonzero_count(int device, DType dtype, const void* x, int64_t numel, void* workspace);
void cuda_nonzero(int device, DType dtype, const void* x, std::span<const int64_t> sizes, void* workspace,
                  int64_t* coordinates);

// The different elements in order, the place of each element among them, and how often each occurs; NaNs all differ.
// First the count, for which the host waits; then the results, with the same workspace.
int64_t cuda_unique_workspace(DType dtype, int64_t numel);
int64_t cuda_unique_count(int device, DType dtype, const void* x, int64_t numel, void* workspace);
void cuda_unique(int device, DType dtype, int64_t numel, int64_t count, void* workspace, void* values, int64_t* inverse,
                 int64_t* counts);

// For each value the number of elements of its sorted line that come before it (with `right`: or equal it). `row`
// values in turn belong to one line of `length`.
struct CudaSearch {
  DType dtype = kFloat32;
  const void *sorted = nullptr, *values = nullptr;
  int64_t length = 0, numel = 0, row = 1;
  bool right = false;
  int64_t* places = nullptr;
};
void cuda_searchsorted(int device, const CudaSearch& search);

// The program of all these kernels for one type.
std::string cuda_sort_text(DType dtype);

}  // namespace sinter::runtime
