#include "sinter/engine/eager/last_resort.h"

#include <cstring>

#include "sinter/base/error.h"
#include "sinter/engine/device/recording.h"
#include "sinter/engine/kernel.h"
#include "sinter/graph/interpreter.h"
#include "sinter/tensor/tracer.h"

namespace sinter::eager {

namespace {

// Bytes from the first element to the end of the last.
size_t reach_bytes(const TensorImpl& t) {
  int64_t last = 0;
  for (size_t d = 0; d < t.sizes.size(); ++d) last += (t.sizes[d] - 1) * t.strides[d];
  return t.numel ? size_t((last + 1) * item_size(t.dtype)) : 0;
}

// The same elements, with the same strides, in memory of the host; a copy where they lie elsewhere.
Tensor on_host(const Tensor& tensor) {
  auto& from = tensor.impl();
  if (from.device.is_cpu()) return tensor;
  auto impl = make_intrusive<TensorImpl>(from);
  impl->device = Device();
  impl->offset = 0;
  impl->buffer = allocate_buffer(reach_bytes(from), Device());
  if (from.numel) copy_bytes(impl->buffer->data(), Device(), data_of(from), from.device, reach_bytes(from));
  return Tensor(std::move(impl));
}

// Writes row-major elements, repeated along dimensions that they do not have, to where `to` has its own.
void write(const TensorImpl& from, const TensorImpl& to) {
  const size_t item = size_t(item_size(to.dtype)), shift = to.sizes.size() - from.sizes.size();
  IntList at(to.sizes.size(), 0);
  for (int64_t n = 0; n < to.numel; ++n) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      target += at[d] * to.strides[d];
      if (d >= shift && from.sizes[d - shift] != 1) source += at[d] * from.strides[d - shift];
    }
    std::memcpy(data_of(to) + size_t(target) * item, data_of(from) + size_t(source) * item, item);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == to.sizes[d];) at[d] = 0;
  }
}

std::string described(const Op& op, std::span<const TensorArg> inputs) {
  std::string out(op.name);
  for (auto& arg : inputs)
    out += arg.is_scalar() ? " number" : format(" {}{}", arg.tensor().impl().dtype, arg.tensor().impl().sizes);
  return out;
}

Array compute(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  Graph graph;
  std::vector<Value> operands;
  std::vector<Array> arrays;
  for (auto& arg : inputs) {
    if (arg.is_scalar()) {
      operands.push_back(graph.add_scalar(arg.scalar()));
      continue;
    }
    auto& impl = arg.tensor().impl();
    operands.push_back(graph.add_input({impl.dtype, Shape(impl.sizes), impl.device, false}));
    arrays.push_back(to_array(on_host(arg.tensor())));
  }
  graph.set_outputs({graph.add(op, std::move(operands), attrs).result()});
  return interpret(graph, arrays)[0];
}

}  // namespace

Tensor run_by_referee(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out,
                      const runtime::Refused& refusal) {
  const std::string what = described(op, inputs);
  if (runtime::is_strict()) throw_error(format("{}: {}", what, refusal.message()));
  check(!Recording::current(), "{}: its kernel is refused, and the host computes it", what);
  runtime::warn_refused(refusal, what + " is computed element by element on the host");
  TracerScope untraced(nullptr);
  auto types = operand_types(inputs);
  Type type = op.infer(OpCall{op, types, attrs})[0];
  Tensor result = out ? *out : empty(type.shape, TensorOptions(type.dtype).device(type.device));
  if (launches_are_off() || result.impl().numel == 0) return result;
  Tensor values = to_tensor(compute(op, inputs, attrs), result.dtype()), target = on_host(result);
  write(values.impl(), target.impl());
  if (!result.device().is_cpu())
    copy_bytes(data_of(result.impl()), result.device(), data_of(target.impl()), Device(), reach_bytes(result.impl()));
  return result;
}

}  // namespace sinter::eager
