// The op `write`: a base with the elements at the end of a path of views replaced.
#include "sinter/graph/interpreter.h"
#include "sinter/ops/complex_call.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/view.h"
#include "sinter/ops/view_path.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

struct Write : Opaque {
  static constexpr auto name = "write";
  static constexpr int inputs = 2;
  using Attributes = WriteAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    const Type &base = call.inputs[0], &value = call.inputs[1];
    check(!base.weak && !value.weak, "write: takes tensors, not plain numbers");
    Type place = base;
    for (auto& step : call.as<WriteAttrs>().path.steps) place = infer_types(*step.op, {&place, 1}, step.attrs)[0];
    bool fits = place.rank() == value.rank();
    for (size_t d = 0; fits && d < place.shape.size(); ++d) fits = place.shape[d] == value.shape[d];
    check(fits, "write: the value has shape {}, the place for it in {} has shape {}", value.shape, base.shape,
          place.shape);
    check(base.dtype == value.dtype, "write: a value of dtype {} is written into {}", value.dtype, base.dtype);
    check(base.device == value.device, "write: a value on {} is written into a tensor on {}", value.device,
          base.device);
    return {base};
  }

  // The views move positions instead of elements: what arrives at the end is where each element of the value goes.
  static void interpret(InterpretCall& c) {
    const Array &base = *c.inputs[0], &value = *c.inputs[1];
    Graph graph;
    Value positions = graph.add_input({.dtype = kInt64, .shape = Shape(base.sizes), .device = {}});
    graph.set_outputs({apply(c.call.as<WriteAttrs>().path, graph, positions)});
    Array counted(kInt64, base.sizes);
    for (int64_t at = 0; at < counted.numel(); ++at) counted.set(at, at);
    Array target = sinter::interpret(graph, {&counted, 1})[0];
    Array& out = c.outputs[0];
    out = base;
    for (int64_t at = 0; at < value.numel(); ++at) {
      if (value.floating())
        out.f[size_t(target.i[size_t(at)])] = value.f[size_t(at)];
      else
        out.i[size_t(target.i[size_t(at)])] = value.i[size_t(at)];
    }
  }

  // Row-major, as paths that were recorded in a graph take their base to be. A path that was a look at another layout may
  // be none at this one: the positions of the elements, which may be copied, tell where these are.
  static TensorList run_cpu(std::span<const Tensor> inputs, const Attrs& attrs) {
    auto& path = attrs.as<WriteAttrs>().path;
    Tensor out = inputs[0].clone(MemoryFormat::kContiguous);
    Tensor place = read_at(path, out);
    if (place.is_alias_of(out)) {
      place.copy_(inputs[1]);
      return {out};
    }
    Tensor positions = read_at(path, arange(out.numel()).view(out.sizes())).reshape({-1});
    return {scatter(out.view({-1}), 0, positions.to(out.device()), inputs[1].reshape({-1})).view(out.sizes())};
  }

  // What the path leads to, copied on the way where there is no such look.
  static Tensor read_at(const ViewPath& path, Tensor value) {
    for (auto& step : path.steps) {
      Type type{value.dtype(), value.sizes(), value.device()};
      IntList strides;
      int64_t offset = 0;
      OpCall call{*step.op, {&type, 1}, step.attrs};
      if (!value.is_traced() && step.op->alias && !step.op->alias(call, value.impl().strides, strides, offset))
        value = value.contiguous();
      value = apply({{step}}, value);
    }
    return value;
  }

  static TensorList grad(const GradCall& c) {
    auto& path = c.as<WriteAttrs>().path;
    return c.each([&] { return write(c.grad(), zeros_like(c[1]), path); },
                  [&] { return read_at(path, c.grad().contiguous()); });
  }

  // Between pairs: a path from a complex base begins at its pairs, and one to a complex place ends where they are looked at so.
  static TensorList on_complex(const ComplexCall& c) {
    auto path = c.as<WriteAttrs>().path;
    Tensor base = c[0].tensor(), value = c[1].tensor();
    if (is_complex(base.dtype())) path.steps.erase(path.steps.begin());
    if (is_complex(value.dtype())) path.steps.pop_back();
    auto pairs = [](const Tensor& t) { return is_complex(t.dtype()) ? view_as_real(t) : t; };
    Tensor out = write(pairs(base), pairs(value), path);
    return {is_complex(base.dtype()) ? look_at_pairs(out) : out};
  }
  SINTER_SAMPLES("x[4, 5], x[5] | path=[slice{start=1}, select{index=2}]",
                 "x[3, 20], x[20, 3] | path=[permute{dims=[1, 0]}]",
                 "x[2, 6], x[2, 3] | path=[slice{dim=1, start=1, step=2}]", "x[4, 4], x[4] | path=[diagonal]",
                 "x[2, 6], x[4] | path=[view{size=[3, 4]}, select{index=-1}]", "x[3], x[3] | path=[]",
                 "x[2, 3], x[2, 0] | path=[slice{dim=1, end=0}]", "x[5], x[] | path=[select{index=4}]")
};

}  // namespace

Tensor write(const TensorArg& base, const TensorArg& value, const ViewPath& path) {
  return path.empty() ? value.tensor() : call<Write>({base, value}, WriteAttrs{path});
}

const Op& write_op() { return op_of<Write>; }

}  // namespace sinter
