// Other looks at the elements of a tensor, and copies in which such a look is written to.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/linalg.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

namespace {

// Ends as exported programs write them: the largest number stands for the end.
std::optional<Dim> end_of(MaybeDim end) {
  if (end && end->is_number() && end->number() == INT64_MAX) return std::nullopt;
  return end;
}

Tensor detached(const Tensor& x) { return x.detach(); }

Tensor reversed(const Tensor& x) {
  IntList dims;
  for (int64_t d = x.dim(); d-- > 0;) dims.push_back(d);
  return permute(x, dims);
}

TensorList split_into(In x, const Shape& sizes, Int dim) { return split_with_sizes(x, sizes, dim); }

}  // namespace

std::span<const Function> view_functions() {
  static const Function kList[] = {
      {"alias(Tensor(a) self) -> Tensor(a)", alias},
      {"detach(Tensor(a) self) -> Tensor(a)", detached},
      {"detach_(Tensor(a!) self) -> Tensor(a!)", detached},
      {"view(Tensor(a) self, SymInt[] size) -> Tensor(a)", [](In x, Sizes size) { return view(x, size); }},
      {"view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
       [](In x, DType dtype) { return view(x, GivenDType(dtype)); }},
      {"_unsafe_view(Tensor self, SymInt[] size) -> Tensor", reshape},
      {"reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", reshape},
      {"view_as(Tensor(a) self, Tensor other) -> Tensor(a)", view_as},
      {"reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", reshape_as},
      {"flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", flatten},
      {"ravel(Tensor(a) self) -> Tensor(a)", ravel},
      {"unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)", unflatten},
      {"permute(Tensor(a) self, int[] dims) -> Tensor(a)", permute},
      {"transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose},
      {"swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", swapaxes},
      {"swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", swapdims},
      {"t(Tensor(a) self) -> Tensor(a)", t},
      {"numpy_T(Tensor(a) self) -> Tensor(a)", reversed},
      {"mT(Tensor(a) self) -> Tensor(a)", [](In x) { return transpose(x, -2, -1); }},
      {"adjoint(Tensor(a) self) -> Tensor(a)", [](In x) { return adjoint(x); }},
      {"mH(Tensor(a) self) -> Tensor(a)", [](In x) { return adjoint(x); }},
      {"matrix_H(Tensor(a) self) -> Tensor(a)", [](In x) { return adjoint(x); }},
      {"movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
       [](In x, Ints source, Ints destination) { return movedim(x, source, destination); }},
      {"movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
       [](In x, Int source, Int destination) { return movedim(x, source, destination); }},
      {"moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
       [](In x, Ints source, Ints destination) { return movedim(x, source, destination); }},
      {"moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
       [](In x, Int source, Int destination) { return movedim(x, source, destination); }},
      {"expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
       [](In x, Sizes size, Ignored) { return expand(x, size); }},
      {"expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", expand_as},
      {"broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)", broadcast_to},
      {"broadcast_tensors(Tensor[] tensors) -> Tensor[]",
       [](const TensorList& tensors) { return broadcast_tensors(tensors); }},
      {"squeeze(Tensor(a) self) -> Tensor(a)", [](In x) { return squeeze(x); }},
      {"squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", [](In x, Int dim) { return squeeze(x, dim); }},
      {"squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", [](In x, Ints dims) { return squeeze(x, dims); }},
      {"unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze},
      {"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", select},
      {"slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
       [](In x, Int dim, MaybeDim start, MaybeDim end, Int step) { return slice(x, dim, start, end_of(end), step); }},
      {"narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
       [](In x, Int dim, const Dim& start, const Dim& length) { return narrow(x, dim, start, length); }},
      {"narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
       [](In x, Int dim, const Tensor& start, const Dim& length) {
         return narrow(x, dim, start.item<int64_t>(), length);
       }},
      {"narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
       [](In x, Int dim, const Dim& start, const Dim& length) { return narrow_copy(x, dim, start, length); }},
      {"diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)", diagonal},
      {"linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
       [](In x, Int offset, Int dim1, Int dim2) { return linalg::diagonal(x, offset, dim1, dim2); }},
      {"unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", unfold},
      {"as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
       [](In x, Ints size, Ints strides, MaybeInt offset) { return as_strided(x, size, strides, offset); }},

      // --- pieces
      {"split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
       [](In x, const Dim& size, Int dim) { return split(x, size, dim); }},
      {"split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", split_into},
      {"split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", split_into},
      {"unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
       [](In x, const Dim& size, Int dim) { return split(x, size, dim); }},
      {"unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", split_into},
      {"chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", chunk},
      {"unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", chunk},
      {"unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", unbind},
      {"tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
       [](In x, Int sections, Int dim) { return tensor_split(x, sections, dim); }},
      {"tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
       [](In x, Ints indices, Int dim) { return tensor_split(x, indices, dim); }},
      {"tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> "
       "Tensor(a)[]",
       [](In x, const Tensor& indices, Int dim) { return tensor_split(x, indices, dim); }},
      {"hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
       [](In x, Int sections) { return hsplit(x, sections); }},
      {"hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
       [](In x, Ints indices) { return hsplit(x, indices); }},
      {"vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
       [](In x, Int sections) { return vsplit(x, sections); }},
      {"vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
       [](In x, Ints indices) { return vsplit(x, indices); }},
      {"dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
       [](In x, Int sections) { return dsplit(x, sections); }},
      {"dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
       [](In x, Ints indices) { return dsplit(x, indices); }},
      {"atleast_1d(Tensor self) -> Tensor", [](In x) { return atleast_1d(x); }},
      {"atleast_2d(Tensor self) -> Tensor", [](In x) { return atleast_2d(x); }},
      {"atleast_3d(Tensor self) -> Tensor", [](In x) { return atleast_3d(x); }},
      {"atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
       [](const TensorList& tensors) { return atleast_1d(tensors); }},
      {"atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
       [](const TensorList& tensors) { return atleast_2d(tensors); }},
      {"atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
       [](const TensorList& tensors) { return atleast_3d(tensors); }},

      // --- a piece replaced
      {"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor", select_scatter},
      {"slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
       "Tensor",
       [](In x, In source, Int dim, MaybeDim start, MaybeDim end, Int step) {
         return slice_scatter(x, source, dim, start, end_of(end), step);
       }},
      {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", diagonal_scatter},
      {"as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
       "Tensor",
       [](In x, In source, Ints size, Ints strides, MaybeInt offset) {
         return as_strided_scatter(x, source, size, strides, offset.value_or(0));
       }},
  };
  return kList;
}

}  // namespace sinter::interop
