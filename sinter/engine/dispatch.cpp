// The Dispatcher: where every public op ends. Decides between recording and running, and keeps the autograd tape.
#include <chrono>

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/tape.h"
#include "sinter/base/error.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/profile.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// Eager tensors on a device that has kernels; anything else is the user's mistake.
void check_operands(const Op& op, std::span<const TensorArg> inputs) {
  for (auto& arg : inputs) {
    if (arg.is_scalar()) continue;
    check(arg.tensor().defined(), "{}: an operand is an undefined tensor", op.name);
    auto& impl = arg.tensor().impl();
    if (!impl.traced && impl.device.is_cpu()) [[likely]]
      continue;
    check(!impl.traced, "{}: a traced tensor is used outside the capture that made it", op.name);
    check(false, "{}: device {} has no kernels in this build", op.name, impl.device);
  }
}

int64_t bytes_of(const Tensor& t) { return t.impl().numel * item_size(t.dtype()); }

TensorList execute(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) {
  if (op.kind == OpKind::kPointwise) return {eager::run_pointwise(op, inputs, attrs, nullptr)};
  // A hand-written kernel may call ops of its own (a contiguous copy): they are no part of the user's history.
  if (auto take_whole = eager::find_template(op)) {
    NoGradGuard no_history;
    TensorList outputs;
    if (take_whole(op, inputs, attrs, outputs)) return outputs;
  }
  if (op.run_cpu) {
    auto types = eager::operand_types(inputs);
    op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
    NoGradGuard no_history;
    TensorList tensors;
    for (auto& arg : inputs) tensors.push_back(arg.is_scalar() ? scalar_tensor(arg.scalar()) : arg.tensor());
    return op.run_cpu(tensors, attrs);
  }
  switch (op.kind) {
    case OpKind::kView: return {eager::run_view(op, inputs, attrs)};
    case OpKind::kReduce: return {eager::run_reduce(op, inputs, attrs)};
    case OpKind::kLoop:
    case OpKind::kScatter:
    case OpKind::kScan: return eager::run_loops(op, inputs, attrs);
    default: break;
  }
  SINTER_INTERNAL_ASSERT(false, "{} has no eager form", op.name);
}

TensorList execute_profiled(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, OpProfile& profile) {
  auto begin = std::chrono::steady_clock::now();
  TensorList outputs = execute(op, inputs, attrs);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  int64_t bytes = 0;
  if (op.kind != OpKind::kView) {
    for (auto& arg : inputs)
      if (!arg.is_scalar()) bytes += bytes_of(arg.tensor());
    for (auto& t : outputs) bytes += bytes_of(t);
  }
  profile.add(op.name, seconds, bytes);
  return outputs;
}

class Engine : public Dispatcher {
 public:
  TensorList run(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override {
    Tracer* tracer = Tracer::current();
    if (op.kind == OpKind::kComposite && (!tracer || autograd::is_recording(inputs))) {
      auto types = eager::operand_types(inputs);
      op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
      return op.decompose(inputs, attrs);
    }
    TensorList outputs;
    if (tracer) {
      outputs = tracer->record(op, inputs, attrs);
    } else {
      check_operands(op, inputs);
      auto* profile = OpProfile::current();
      outputs = profile ? execute_profiled(op, inputs, attrs, *profile) : execute(op, inputs, attrs);
    }
    if (autograd::is_recording(inputs)) autograd::record(op, inputs, attrs, outputs);
    return outputs;
  }

  Tensor run_one(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override {
    if (op.kind != OpKind::kPointwise || Tracer::current() || OpProfile::current()) return run(op, inputs, attrs)[0];
    check_operands(op, inputs);
    Tensor output = eager::run_pointwise(op, inputs, attrs, nullptr);
    if (autograd::is_recording(inputs)) autograd::record(op, inputs, attrs, {&output, 1});
    return output;
  }

  void run_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) override {
    check(!Tracer::current(), "{}: writing a tensor in place cannot be captured yet", op.name);
    check_operands(op, inputs);
    TensorArg written[] = {TensorArg(out)};
    check_operands(op, written);
    bool taped = autograd::is_recording(inputs) || autograd::is_recording(written);
    if (taped) autograd::check_writable(op, out);
    if (op.kind == OpKind::kPointwise) {
      eager::run_pointwise(op, inputs, attrs, &out);
    } else {
      static const Op& copy = *find_op("clone");
      TensorArg value[] = {TensorArg(execute(op, inputs, attrs)[0])};
      eager::run_pointwise(copy, value, {}, &out);
    }
    out.impl().buffer->version.fetch_add(1, std::memory_order_relaxed);
    if (taped) autograd::record_into(op, inputs, attrs, out);
  }
};

}  // namespace

Dispatcher& Dispatcher::instance() {
  static Engine engine;
  return engine;
}

}  // namespace sinter
