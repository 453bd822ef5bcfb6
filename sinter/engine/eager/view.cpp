// Views, eagerly: an alias of the operand's memory with another geometry.
#include "sinter/autograd/tape.h"
#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"

namespace sinter::eager {

namespace {

// Runs a view's definition on numbers and records which element of the operand it asks for.
class Probe : public ElementBuilder {
 public:
  Probe(const OpCall& call, const IntList& strides) : ElementBuilder(call), strides_(strides) {}

  int64_t offset_at(const Index& result) {
    i = result;
    call.op.element(*this);
    return offset_;
  }

  Elem load(int, const Index& at) override {
    offset_ = 0;
    for (size_t d = 0; d < at.size(); ++d) offset_ += at[d].number() * strides_[d];
    return {0};
  }
  Elem load_if(const Conditions&, int, const Index&, const Scalar&) override { return refuse(); }
  Dim load_index(int, const Index&, const Dim&) override { return refuse().id; }
  Elem select(const Conditions&, Elem, Elem) override { return refuse(); }
  Elem apply(const Op&, DType, std::initializer_list<Elem>) override { return refuse(); }
  Elem number(const Dim&) override { return refuse(); }
  Elem constant(const Scalar&) override { return refuse(); }

 private:
  Elem refuse() { SINTER_INTERNAL_ASSERT(false, "view {} does more than load", call.op.name); }

  const IntList& strides_;
  int64_t offset_ = 0;
};

}  // namespace

std::optional<ViewGeometry> find_view(const OpCall& call, const IntList& in_strides) {
  ViewGeometry out;
  auto& [sizes, strides, offset, dtype] = out;
  Type type = call.op.infer(call)[0];
  sizes = type.shape.numbers();
  dtype = type.dtype;
  if (call.op.alias) {
    if (!call.op.alias(call, in_strides, strides, offset)) return std::nullopt;
  } else {
    // Affine by contract: the offset at the origin and one step along each axis tell all.
    Probe probe(call, in_strides);
    Index at;
    bool empty = false;
    for (int64_t size : sizes) {
      at.push_back(0);
      empty = empty || size == 0;
    }
    offset = empty ? 0 : probe.offset_at(at);
    for (size_t d = 0; d < sizes.size(); ++d) {
      at[d] = 1;
      strides.push_back(empty ? 0 : probe.offset_at(at) - offset);
      at[d] = 0;
    }
    if (empty) strides = contiguous_strides(sizes);
  }
  return out;
}

ViewGeometry view_geometry(const OpCall& call, const IntList& in_strides) {
  auto found = find_view(call, in_strides);
  check(found.has_value(),
        "{}: a tensor of shape {} and strides {} has no view of shape {} without a copy. Call reshape() or contiguous() first",
        call.op.name, call.inputs[0].shape, in_strides, found ? Shape() : call.op.infer(call)[0].shape);
  return *found;
}

int64_t first_element(const ViewGeometry& view, const TensorImpl& of) {
  if (view.dtype == of.dtype) return of.offset + view.offset;
  const int64_t from = item_size(of.dtype), to = item_size(view.dtype);
  check(of.offset * from % to == 0, "view: the first element of the tensor of {} does not begin an element of {}: clone() it first",
        of.dtype, view.dtype);
  return of.offset * from / to + view.offset;
}

Tensor run_view(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  auto types = operand_types(inputs);
  const Tensor& base = inputs[0].tensor();
  auto geometry = view_geometry(OpCall{op, types, attrs}, base.impl().strides);
  Tensor view = make_view(base, geometry.sizes, geometry.strides, first_element(geometry, base.impl()));
  view.impl().dtype = geometry.dtype;
  autograd::note_view(view, base);
  return view;
}

}  // namespace sinter::eager
