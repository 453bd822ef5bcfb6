#include "sinter/graph/interpreter/kinds.h"

#include "sinter/graph/interpreter/combine.h"
#include "sinter/graph/interpreter/elements.h"

namespace sinter::interpreter {

namespace {

void store(Array& array, int64_t at, Number value) {
  if (value.floating)
    array.set(at, value.f);
  else
    array.set(at, value.i);
}

Number element(const Array& array, int64_t at) {
  return array.floating() ? Number(array.f[size_t(at)]) : Number(array.i[size_t(at)]);
}

}  // namespace

Array run_loop(const OpCall& call, Arrays inputs, const Type& type) {
  Array out(type.dtype, type.shape.numbers());
  ConcreteElements b(call, inputs);
  int64_t at = 0;
  if (call.op.combine == Combine::kNone) {
    for_each_coordinate(out.sizes, b.i, [&] { store(out, at++, b.evaluate()); });
    return out;
  }
  IntList extents = call.op.reduction(call).numbers();
  for_each_coordinate(out.sizes, b.i, [&] {
    Combiner total(call.op.combine, type.dtype);
    for_each_coordinate(extents, b.k, [&] {
      Number value = b.evaluate();
      total.add(value, call.op.payload ? call.op.payload(b).number() : 0);
    });
    store(out, at++, total.value(call.op.name));
  });
  return out;
}

Array run_scatter(const OpCall& call, Arrays inputs, const Type& type) {
  Array out(type.dtype, type.shape.numbers());
  SINTER_INTERNAL_ASSERT(inputs[0]->sizes == out.sizes, "{} gives shape {} from a first operand of shape {}",
                         call.op.name, out.sizes, inputs[0]->sizes);
  for (int64_t at = 0; at < out.numel(); ++at) store(out, at, element(*inputs[0], at));
  Combine combine = call.op.scatter_combine(call);
  IntList strides = contiguous_strides(out.sizes);
  ConcreteElements b(call, inputs);
  for_each_coordinate(call.op.domain(call).numbers(), b.i, [&] {
    Number value = b.evaluate();
    Index target = call.op.target(b);
    SINTER_INTERNAL_ASSERT(target.size() == out.sizes.size(), "{} writes shape {} by {} coordinates", call.op.name,
                           out.sizes, target.size());
    int64_t at = 0;
    for (size_t d = 0; d < target.size(); ++d) {
      int64_t coordinate = target[d].number();
      check(coordinate >= 0 && coordinate < out.sizes[d], "{}: index {} is out of range for size {}", call.op.name,
            coordinate, out.sizes[d]);
      at += coordinate * strides[d];
    }
    Combiner total(combine, type.dtype);
    total.add(element(out, at));
    total.add(value.as(type.dtype));
    store(out, at, total.value(call.op.name));
  });
  return out;
}

Array run_scan(const OpCall& call, Arrays inputs, const Type& type) {
  Array out(type.dtype, type.shape.numbers());
  ConcreteElements b(call, inputs);
  if (out.sizes.empty()) {
    Combiner total(call.op.combine, type.dtype);
    Number value = b.evaluate();
    total.add(value, call.op.payload ? call.op.payload(b).number() : 0);
    store(out, 0, total.value(call.op.name));
    return out;
  }
  size_t dim = size_t(call.op.scan_dim(call));
  int64_t stride = contiguous_strides(out.sizes)[dim], length = out.sizes[dim];
  // One running total per line along the dimension, found by the offset without it.
  std::vector<Combiner> totals(size_t(length == 0 ? 0 : out.numel() / length), {call.op.combine, type.dtype});
  int64_t at = 0;
  for_each_coordinate(out.sizes, b.i, [&] {
    auto& total = totals[size_t(at / (stride * length) * stride + at % stride)];
    Number value = b.evaluate();
    total.add(value, call.op.payload ? call.op.payload(b).number() : 0);
    store(out, at++, total.value(call.op.name));
  });
  return out;
}

}  // namespace sinter::interpreter
