// The Dispatcher: where every public op ends. Decides between recording and running, and keeps the autograd tape.
#include "sinter/autograd/autograd.h"
#include "sinter/autograd/tape.h"
#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/lazy_numbers.h"
#include "sinter/engine/profile_timer.h"
#include "sinter/ops/known_ops.h"
#include "sinter/tensor/memory_format.h"
#include "sinter/tensor/program_tracer.h"

namespace sinter {

namespace {

// Eager tensors on a device that has kernels; anything else is the user's mistake.
void check_operands(const Op& op, std::span<const TensorArg> inputs) {
  for (auto& arg : inputs) {
    if (arg.is_scalar()) continue;
    check(arg.tensor().defined(), "{}: an operand is an undefined tensor", op.name);
    check(!arg.tensor().impl().traced, "{}: a traced tensor is used outside the capture that made it; return it from the "
                                       "captured function instead", op.name);
  }
}

// Single numbers of the host that go along with operands on a device are brought there: kernels read the device's memory.
class OnOneDevice {
 public:
  OnOneDevice(const Op& op, std::span<const TensorArg> inputs) : OnOneDevice(op, inputs, eager::device_of(inputs)) {}
  OnOneDevice(const Op& op, std::span<const TensorArg> inputs, Device device) : inputs_(inputs) {
    if (device.is_cpu()) [[likely]]
      return;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_scalar() || inputs[i].tensor().impl().device == device) continue;
      auto& impl = inputs[i].tensor().impl();
      check(impl.device.is_cpu() && impl.sizes.empty(), "{}: operands are on {} and {}: move them to one device with .to(device)",
            op.name, device, impl.device);
      if (moved_.empty()) moved_.assign(inputs.begin(), inputs.end());
      moved_[i] = TensorArg(inputs[i].tensor().to(device), inputs[i].where());
    }
    if (!moved_.empty()) inputs_ = moved_;
  }
  operator std::span<const TensorArg>() const { return inputs_; }

 private:
  std::span<const TensorArg> inputs_;
  std::vector<TensorArg> moved_;
};

TensorList execute_profiled(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, Profile& profile) {
  Profile::Timer timer(profile);
  TensorList outputs = eager::execute(op, inputs, attrs);
  // A GPU's time is told by waiting for it.
  engine_of(eager::device_of(inputs)).synchronize();
  timer.eager(op, inputs, attrs, outputs);
  return outputs;
}

// Writes the op's result into `out`.
void execute_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) {
  if (op.kind == OpKind::kPointwise) {
    eager::run_pointwise(op, inputs, attrs, &out);
    return;
  }
  const Op& copy = known_ops().clone;
  TensorArg value[] = {TensorArg(eager::execute(op, inputs, attrs)[0])};
  eager::run_pointwise(copy, value, {}, &out);
}

// Whether the body of a composite runs, or is recorded, in its place. A gradient or a kernel of its own keeps it whole.
bool becomes_its_body(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tracer* tracer) {
  if (autograd::is_recording(inputs)) return !op.grad;
  if (tracer || op.run_cpu) return tracer && op.inlines;
  auto types = eager::operand_types(inputs);
  return !eager::has_own_kernel(OpCall{op, types, attrs});
}

class Engine : public Dispatcher {
 public:
  TensorList run(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override {
    Tracer* tracer = Tracer::current();
    if (auto* program = ProgramTracer::current()) {
      auto operands = program->operands(op, inputs, attrs);
      LazyNumbers numbers(op, operands, attrs);
      TensorList outputs = run_on(op, operands, attrs, tracer);
      program->recorded(op, outputs);
      numbers.finish(outputs);
      return outputs;
    }
    return run_on(op, inputs, attrs, tracer);
  }

  TensorList run_on(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, Tracer* tracer) {
    if (op.kind == OpKind::kComposite && becomes_its_body(op, inputs, attrs, tracer)) {
      auto types = eager::operand_types(inputs);
      op.infer(OpCall{op, types, attrs});  // refuses operands that do not fit
      return op.decompose(inputs, attrs);
    }
    TensorList outputs;
    if (tracer) {
      outputs = tracer->record(op, inputs, attrs);
    } else {
      check_operands(op, inputs);
      auto* profile = Profile::current();
      OnOneDevice operands(op, inputs);
      outputs = profile ? execute_profiled(op, operands, attrs, *profile) : eager::execute(op, operands, attrs);
    }
    if (autograd::is_recording(inputs)) autograd::record(op, inputs, attrs, outputs);
    return outputs;
  }

  Tensor run_one(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) override {
    if (op.kind != OpKind::kPointwise || Tracer::current() || Profile::current()) return run(op, inputs, attrs)[0];
    check_operands(op, inputs);
    Tensor output = eager::run_pointwise(op, OnOneDevice(op, inputs), attrs, nullptr);
    if (autograd::is_recording(inputs)) autograd::record(op, inputs, attrs, {&output, 1});
    return output;
  }

  void run_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) override {
    if (out.defined()) check_apart(op.name, out.impl());
    if (auto* tracer = Tracer::current()) return trace_into(*tracer, op, inputs, attrs, out);
    check_operands(op, inputs);
    TensorArg written[] = {TensorArg(out)};
    check_operands(op, written);
    OnOneDevice operands(op, inputs, out.device());
    bool taped = autograd::is_recording(inputs) || autograd::is_recording(written);
    if (taped) autograd::check_writable(op, out);
    if (auto* profile = Profile::current()) [[unlikely]] {
      Profile::Timer timer(*profile);
      execute_into(op, operands, attrs, out);
      timer.eager(op, operands, attrs, {&out, 1});
    } else {
      execute_into(op, operands, attrs, out);
    }
    out.impl().buffer->version.fetch_add(1, std::memory_order_relaxed);
    if (taped) autograd::record_into(op, inputs, attrs, out);
  }

 private:
  // A write under capture: the op's own value, fitted to the tensor, becomes what it holds.
  void trace_into(Tracer& tracer, const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs,
                  const Tensor& out) {
    check(out.defined(), "{}: an operand is an undefined tensor", op.name);
    TensorArg written[] = {TensorArg(out)};
    if (autograd::is_recording(inputs) || autograd::is_recording(written)) autograd::check_writable(op, out);
    Tensor value = run(op, inputs, attrs)[0];
    if (value.dtype() != out.dtype()) value = value.to(out.dtype());
    if (!value.sizes().same_as(out.sizes())) value = value.expand(out.sizes());
    tracer.write(out, value);
  }
};

}  // namespace

Dispatcher& Dispatcher::instance() {
  static Engine engine;
  return engine;
}

}  // namespace sinter
