// Which way an op of each kind runs.
#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/results.h"
#include "sinter/runtime/refusal.h"

namespace sinter::eager {

namespace {

TensorList as_tensors(std::span<const TensorArg> inputs) {
  TensorList tensors;
  for (auto& arg : inputs) tensors.push_back(arg.is_scalar() ? scalar_tensor(arg.scalar()) : arg.tensor());
  return tensors;
}

// What an op that reads host memory makes of operands that lie elsewhere.
TensorList run_on_host(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, Device device) {
  log(LogTopic::kPerf, "{}: runs on the host; its operands are copied there from {}, its results back", op.name, device);
  std::vector<TensorArg> on_host;
  for (auto& t : as_tensors(inputs)) on_host.emplace_back(t.to(Device()));
  TensorList results = execute(op, on_host, attrs);
  for (auto& t : results) t = t.to(device);
  return results;
}

}  // namespace

Device device_of(std::span<const TensorArg> inputs) {
  for (auto& arg : inputs)
    if (!arg.is_scalar() && !arg.tensor().impl().device.is_cpu()) return arg.tensor().impl().device;
  return {};
}

Tensor at_address(const TensorImpl& geometry, int64_t address) {
  auto impl = make_intrusive<TensorImpl>(geometry);
  impl->buffer =
      make_intrusive<Buffer>(reinterpret_cast<void*>(uintptr_t(address)), size_t(1) << 40, geometry.device, [] {});
  impl->offset = 0;
  return Tensor(std::move(impl));
}

void copy(const TensorArg& from, const Tensor& to) { run_pointwise(known_ops().clone, {&from, 1}, {}, &to); }

TensorList execute(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out) {
  if (op.kind == OpKind::kPointwise) return {run_pointwise(op, inputs, attrs, out)};
  // A hand-written kernel may call ops of its own (a contiguous copy): they are no part of the user's history.
  const Device device = device_of(inputs);
  if (auto take_whole = find_template(op, device)) {
    NoGradGuard no_history;
    TensorList outputs;
    try {
      if (take_whole(op, inputs, attrs, out, outputs)) return outputs;
    } catch (const runtime::Refused& refusal) {
      if (runtime::is_strict()) throw;
      runtime::warn_refused(refusal, format("{} runs by its own loops, or on the host", op.name));
    }
  }
  const bool moves = op.reads_host_memory && !device.is_cpu();
  if (moves || op.run_cpu) {
    auto types = operand_types(inputs);
    op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
    NoGradGuard no_history;
    return moves ? run_on_host(op, inputs, attrs, device) : op.run_cpu(as_tensors(inputs), attrs);
  }
  switch (op.kind) {
    case OpKind::kComposite: {
      auto types = operand_types(inputs);
      op.infer(OpCall{op, types, attrs});
      // Its gradient is its own, so its results must be too: a body may give an operand back.
      NoGradGuard no_history;
      return fresh_results(op.decompose(inputs, attrs), as_tensors(inputs));
    }
    case OpKind::kView:
      return {run_view(op, inputs, attrs)};
    case OpKind::kReduce:
      return {run_reduce(op, inputs, attrs, out)};
    case OpKind::kLoop:
    case OpKind::kScatter:
    case OpKind::kScan:
      return {run_loops(op, inputs, attrs, out)};
    default:
      break;
  }
  SINTER_INTERNAL_ASSERT(false, "{} has no eager form", op.name);
}

}  // namespace sinter::eager
