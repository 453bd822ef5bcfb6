#pragma once
// Eager execution, one function a kind of op. Inputs are eager tensors or plain numbers, already checked to be on one
// device; results are fresh tensors, or `out` where one is given: of the result's dtype and shape, row-major but for
// pointwise ops, which write any layout and convert to its dtype, and for templates (DeviceEngine::result_strides).
#include <bit>
#include <optional>
#include <span>

#include "sinter/engine/device/op_kernel.h"
#include "sinter/graph/op.h"

namespace sinter::eager {

Tensor run_pointwise(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out);
Tensor run_reduce(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out);
// kLoop, kScatter, kScan, and views that cannot alias: the op's own loops, compiled for this class of shapes. A scatter
// whose `out` is its first operand works in place.
Tensor run_loops(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out);
Tensor run_view(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs);
// An op of any kind, by the best of these ways. `out` is for ops of one result; those that bring a kernel
// of their own (`run_cpu`) and views pass over it.
TensorList execute(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out = nullptr);

// Where a view looks: sizes and strides, and its first element as seen from the operand's.
struct ViewGeometry {
  IntList sizes, strides;
  int64_t offset = 0;
  DType dtype = kFloat32;
};
// Nothing where there is no such view without a copy.
std::optional<ViewGeometry> find_view(const OpCall& call, const IntList& in_strides);
// The same; then an Error.
ViewGeometry view_geometry(const OpCall& call, const IntList& in_strides);
// The offset of the view from the start of the buffer, in its own elements: a look at pairs has others than its operand.
int64_t first_element(const ViewGeometry& view, const TensorImpl& of);
// The strides of a fresh pointwise result of these sizes: as the first operand of full shape, where that is dense. Null
// stands for a number.
IntList pointwise_strides(std::span<const TensorImpl* const> operands, const IntList& sizes);

// The first element of a tensor.
inline char* data_of(const TensorImpl& t) { return static_cast<char*>(t.buffer->data()) + t.offset * item_size(t.dtype); }
// An operand as a kernel takes it: the address of a tensor, the bits of a number.
inline int64_t slot_of(const TensorImpl& t) { return int64_t(reinterpret_cast<uintptr_t>(data_of(t))); }
inline int64_t slot_of(const Scalar& s) { return s.is_floating() ? std::bit_cast<int64_t>(s.to_double()) : s.to_int(); }

// A tensor over memory that somebody else keeps.
Tensor at_address(const TensorImpl& geometry, int64_t address);
// Into any layout.
void copy(const TensorArg& from, const Tensor& to);

// Whether two tensors reach over common memory.
bool share_memory(const TensorImpl& a, const TensorImpl& b);

// Where an op runs: on the device of its operands. Numbers and single numbers of the host go along.
Device device_of(std::span<const TensorArg> inputs);

// The types of eager operands.
std::vector<Type> operand_types(std::span<const TensorArg> inputs);

// An op that an ahead-of-time kernel takes whole; null where there is none.
Template find_template(const Op& op, Device device);
// "gemm", "attention", …; null where there is none.
const char* template_name(const Op& op, Device device);
// Whether the device of its operands takes a composite op whole (passes/target_kernels.h).
bool has_own_kernel(const OpCall& call);

}  // namespace sinter::eager
