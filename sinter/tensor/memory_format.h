#pragma once
// The order of elements in memory: strides of the memory formats, and elements packed row by row.
#include "sinter/tensor/tensor.h"

namespace sinter {

// "contiguous", "channels_last", …
std::string to_string(MemoryFormat format);

// Strides of these sizes without gaps. The channels-last formats are for 4 and 5 dimensions; the Error names `op`.
IntList format_strides(const char* op, std::span<const int64_t> sizes, MemoryFormat format);

// Whether the elements lie in that order without gaps. Dimensions of size 1 may have any stride.
bool has_format(std::span<const int64_t> sizes, std::span<const int64_t> strides, MemoryFormat format);

// The strides of a copy that keeps the order of these elements: the same where they fill their memory without gaps or
// overlaps, in whatever order, else row by row.
IntList preserved_strides(const IntList& sizes, const IntList& strides);

// Whether two elements lie in one place, as in an expanded tensor, or where the windows of unfold() overlap.
bool overlaps_itself(const IntList& sizes, const IntList& strides);
// An Error where they do in a tensor that the op writes to.
void check_apart(std::string_view op, const TensorImpl& written);

// The elements of an eager tensor in row-major order, without gaps; `out` has room for them all.
void copy_packed(const Tensor& tensor, void* out);

}  // namespace sinter
