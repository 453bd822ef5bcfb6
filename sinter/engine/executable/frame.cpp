#include "sinter/engine/executable/frame.h"

#include <algorithm>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/eager_step.h"
#include "sinter/engine/executable/step_observer.h"
#include "sinter/engine/profile_timer.h"
#include "sinter/engine/report.h"
#include "sinter/graph/run.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/runtime/refusal.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

// What a profile says of a step.
Profile::KernelRow describe(const Plan& plan, const Step& step) {
  KernelReport report = report_of(plan, step);
  std::string ops;
  for (auto& op : report.ops) ops += (ops.empty() ? "" : ", ") + op;
  return {.name = report.name, .ops = ops, .where = report.where, .program = plan.name, .device = plan.device, .cost = report.cost};
}

}  // namespace

Frame::Frame(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), engine_(engine_of(plan_->device)), arena_(allocate_buffer(size_t(plan_->arena_bytes), plan_->device)) {
  make_tensors();
  make_calls();
  make_replay();
  make_rearranged();
  size_t first = plan_->input_slots.size() - plan_->captured.size();
  for (size_t i = 0; i < plan_->captured.size(); ++i) {
    auto& impl = plan_->captured[i].impl();
    bind(plan_->slots[size_t(plan_->input_slots[first + i])].storage, impl.buffer, impl.offset);
  }
}

void Frame::make_rearranged() {
  for (size_t c = 0; c < calls_.size(); ++c) {
    auto& step = *calls_[c].step;
    if (!step.code || step.code->rearranged_bytes() == 0) continue;
    Rearranged made(step.code, plan_->device);
    bool promised = !step.code->shared_order().empty() && !step.code->needs_rearranged();
    if (!std::all_of(made.from().begin(), made.from().end(), [&](int i) {
          int slot = step.inputs[size_t(i)].slot;
          return promised ? is_captured(slot) : stays(slot);
        }))
      continue;
    calls_[c].rearranged = int(rearranged_.size());
    rearranged_.push_back({c, std::move(made)});
  }
}

void Frame::refresh_rearranged() {
  if (rearranged_.empty()) return;
  void* stream = engine_.stream();
  for (auto& each : rearranged_) {
    const Call& call = calls_[each.call];
    each.made.refresh(call.args, [&] { return arguments(call); }, stream);
  }
}

// Results are new in every call.
void Frame::make_replay() {
  if (!plan_->records) return;
  std::vector<bool> moving(plan_->storages.size() + plan_->input_slots.size() - plan_->captured.size(), false);
  for (size_t s = 0; s < plan_->storages.size(); ++s) moving[s] = plan_->storages[s].kind == Storage::Kind::kOutput;
  replay_ = engine_.make_replay(plan_->name, std::move(moving));
}

void Frame::make_tensors() {
  bound_.resize(plan_->storages.size());
  for (auto& slot : plan_->slots) {
    auto impl = make_intrusive<TensorImpl>(slot.geometry.impl());
    if (is_outside(slot.storage)) {
      bound_[size_t(slot.storage)].push_back({impl.get(), impl->offset});
    } else {
      impl->buffer = arena_;
      impl->offset += plan_->storages[size_t(slot.storage)].block.offset / item_size(impl->dtype);
    }
    tensors_.emplace_back(std::move(impl));
  }
}

TensorArg Frame::argument(const Operand& operand) const {
  return operand.slot < 0 ? TensorArg(operand.number) : TensorArg(tensors_[size_t(operand.slot)]);
}

void Frame::make_calls() {
  for (auto& step : plan_->steps) {
    if (step.kind == Step::Kind::kView) continue;
    Call call{.step = &step, .args = {}, .stays = {}, .out = {}, .target = {}, .results = {}};
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i].number_input >= 0) numbers_.push_back({size_t(step.inputs[i].number_input), calls_.size(), i});
      call.args.push_back(argument(step.inputs[i]));
      call.stays.push_back(step.inputs[i].slot >= 0 && stays(step.inputs[i].slot));
    }
    if (step.kind == Step::Kind::kFused)
      for (int slot : step.results) call.results.push_back(tensors_[size_t(slot)]);
    else if (step.kind != Step::Kind::kOpaque)
      call.out = tensors_[size_t(step.results[0])];
    if (step.target >= 0) call.target = tensors_[size_t(step.target)];
    calls_.push_back(std::move(call));
  }
}

// --- memory of one call ----------------------------------------------------------------------------------------------

void Frame::bind(int storage, const BufferPtr& buffer, int64_t offset) {
  for (auto& bound : bound_[size_t(storage)]) {
    bound.impl->buffer = buffer;
    bound.impl->offset = offset + bound.offset;
  }
}

// Lets the caller's memory go, whatever way the call ends. Captured tensors stay.
class Frame::Unbind {
 public:
  explicit Unbind(Frame& frame) : frame_(frame) {}
  ~Unbind() {
    auto& plan = *frame_.plan_;
    int inputs = int(plan.input_slots.size() - plan.captured.size());
    for (size_t s = 0; s < plan.storages.size(); ++s) {
      bool captured = plan.storages[s].kind == Storage::Kind::kInput && plan.storages[s].index >= inputs;
      if (captured) continue;
      for (auto& bound : frame_.bound_[s]) bound.impl->buffer.reset();
    }
  }

 private:
  Frame& frame_;
};

void Frame::bind_inputs(std::span<const TensorArg> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    int slot = plan_->input_slots[i];
    if (slot < 0) continue;
    auto& given = inputs[i].tensor().impl();
    auto& expected = plan_->slots[size_t(slot)].geometry.impl();
    check(given.device == plan_->device, "input {} is on {}, the program was compiled for {}", i, given.device, plan_->device);
    check(given.dtype == expected.dtype && given.sizes == expected.sizes, "input {} is {}{}, the program takes {}{}", i,
          given.dtype, given.sizes, expected.dtype, expected.sizes);
    bind(plan_->slots[size_t(slot)].storage, given.buffer, given.offset);
  }
  for (auto& place : numbers_) calls_[place.call].args[place.arg] = TensorArg(inputs[place.input].scalar());
}

void Frame::bind_outputs() {
  for (size_t s = 0; s < plan_->storages.size(); ++s) {
    auto& storage = plan_->storages[s];
    if (storage.kind == Storage::Kind::kOutput) bind(int(s), allocate_buffer(size_t(storage.block.bytes), plan_->device), 0);
  }
}

void Frame::hand_out(std::span<const TensorArg> inputs, std::span<Tensor> outputs) const {
  for (size_t j = 0; j < outputs.size(); ++j) {
    auto& output = plan_->outputs[j];
    if (output.kind == PlannedOutput::Kind::kWritten)
      outputs[j] = inputs[size_t(output.input)].tensor();
    else if (output.kind == PlannedOutput::Kind::kFresh)
      outputs[j] = Tensor(make_intrusive<TensorImpl>(tensors_[size_t(output.slot)].impl()));
    else
      outputs[j] = scalar_tensor(output.number.number_input < 0 ? output.number.number
                                                                : inputs[size_t(output.number.number_input)].scalar());
  }
  for (int i : plan_->changed_inputs)
    inputs[size_t(i)].tensor().impl().buffer->version.fetch_add(1, std::memory_order_relaxed);
}

// --- running ---------------------------------------------------------------------------------------------------------

void Frame::run(std::span<const TensorArg> inputs, std::span<Tensor> outputs) {
  NoGradGuard no_history;
  TracerScope no_tracer(nullptr);
  runtime::StrictScope strict(plan_->strict);
  Unbind unbind(*this);
  bind_inputs(inputs);
  bind_outputs();
  refresh_rearranged();
  if (auto* profile = Profile::current()) [[unlikely]] {
    Profile::Timer timer(*profile);
    run_calls();
    timer.program(plan_->name);
  } else if (replay_ && !StepObserver::current()) {
    run_recorded(inputs);
  } else {
    run_calls();
  }
  hand_out(inputs, outputs);
}

// --- recordings ------------------------------------------------------------------------------------------------------

// Cells of the parameter block: one a storage, then one an input for those that are numbers.
std::vector<int64_t> Frame::cells(std::span<const TensorArg> inputs) const {
  std::vector<int64_t> out(plan_->storages.size() + inputs.size(), 0);
  for (size_t s = 0; s < bound_.size(); ++s)
    if (!bound_[s].empty() && bound_[s][0].impl->buffer) {
      auto& [impl, offset] = bound_[s][0];
      out[s] = eager::slot_of(*impl) - offset * item_size(impl->dtype);
    }
  for (auto& place : numbers_) out[plan_->storages.size() + place.input] = eager::slot_of(inputs[place.input].scalar());
  return out;
}

// While alive, tensors over memory that moves from call to call lie in places of the parameter block.
class Frame::Places {
 public:
  explicit Places(Frame& frame) {
    for (size_t s = 0; s < frame.bound_.size(); ++s) {
      if (frame.bound_[s].empty() || !frame.replay_->is_moving(s)) continue;
      auto* place = reinterpret_cast<void*>(uintptr_t(place_of_cell(int(s))));
      auto buffer = make_intrusive<Buffer>(place, size_t(frame.plan_->storages[s].block.bytes), frame.plan_->device, [] {});
      for (auto& bound : frame.bound_[s]) {
        real_.push_back({bound.impl, bound.impl->buffer, bound.impl->offset});
        bound.impl->buffer = buffer;
        bound.impl->offset = bound.offset;
      }
    }
  }
  ~Places() {
    for (auto& [impl, buffer, offset] : real_) {
      impl->buffer = buffer;
      impl->offset = offset;
    }
  }

 private:
  struct Real {
    TensorImpl* impl;
    BufferPtr buffer;
    int64_t offset;
  };
  std::vector<Real> real_;
};

void Frame::run_recorded(std::span<const TensorArg> inputs) {
  auto now = cells(inputs);
  switch (replay_->next(now)) {
    case Replay::Next::kRun:
      return run_calls();
    case Replay::Next::kRecord: {
      bool recorded;
      {
        Places places(*this);
        recorded = replay_->record([&] { run_calls(); });
      }
      if (!recorded) return run_calls();
      break;
    }
    case Replay::Next::kReplay:
      break;
  }
  replay_->launch(now);
}

// An input that no step writes.
bool Frame::stays(int slot) const {
  auto& storage = plan_->storages[size_t(plan_->slots[size_t(slot)].storage)];
  auto& changed = plan_->changed_inputs;
  return storage.kind == Storage::Kind::kInput && std::find(changed.begin(), changed.end(), storage.index) == changed.end();
}

// A tensor that the program was compiled with: nobody is to change it.
bool Frame::is_captured(int slot) const {
  auto& storage = plan_->storages[size_t(plan_->slots[size_t(slot)].storage)];
  return storage.kind == Storage::Kind::kInput && storage.index >= int(plan_->input_slots.size() - plan_->captured.size());
}

StepArguments Frame::arguments(const Call& call) const {
  StepArguments slots;
  for (size_t i = 0; i < call.args.size(); ++i) {
    auto& arg = call.args[i];
    int input = call.step->inputs[i].number_input;
    size_t cell = plan_->storages.size() + size_t(std::max(input, 0));
    if (!arg.is_scalar())
      slots.add_address(eager::slot_of(arg.tensor().impl()), call.stays[i]);
    else if (input >= 0 && Recording::current() && replay_->is_moving(cell))
      slots.add_cell(int(cell));
    else
      slots.add_number(eager::slot_of(arg.scalar()));
  }
  for (auto& result : call.results) slots.add_address(eager::slot_of(result.impl()));
  if (call.rearranged >= 0) slots.add_address(rearranged_[size_t(call.rearranged)].made.address(), true);
  return slots;
}

// Numbers of the caller that go to other than generated kernels would stay as they were recorded.
void Frame::check_recordable(const Call& call) const {
  if (!Recording::current() || call.step->kind == Step::Kind::kFused) return;
  for (auto& operand : call.step->inputs)
    check(operand.number_input < 0 || !replay_->is_moving(plan_->storages.size() + size_t(operand.number_input)),
          "{} takes a number that changes from call to call", call.step->op->name);
}

void Frame::run_timed(Profile& profile) {
  auto seconds = engine_.time_each(calls_.size(), [&](size_t i) { run(calls_[i]); });
  for (size_t i = 0; i < calls_.size(); ++i) {
    const Step& step = *calls_[i].step;
    Profile::Timer(profile).kernel(&step, [&] { return describe(*plan_, step); }, seconds[i]);
  }
}

void Frame::run_calls() {
  auto* profile = Profile::current();
  if (profile && engine_.queues()) return run_timed(*profile);
  run_calls_in_order();
}

void Frame::run_calls_in_order() {
  engine_.begin_program();
  auto* profile = engine_.queues() ? nullptr : Profile::current();
  auto* observer = StepObserver::current();
  size_t at = 0;
  try {
    for (; at < calls_.size(); ++at) {
      if (observer) [[unlikely]] {
        run_observed(calls_[at], *observer);
        continue;
      }
      if (!profile) [[likely]] {
        run(calls_[at]);
        continue;
      }
      Profile::Timer timer(*profile);
      run(calls_[at]);
      const Step& step = *calls_[at].step;
      timer.kernel(&step, [&] { return describe(*plan_, step); });
    }
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const Error& error) {
    const std::string& where = calls_[at].step->where;
    if (where.empty() || !error.where().empty()) throw;
    throw Error(format("{}\n  at {}", error.message(), where));
  }
}

void Frame::run_observed(const Call& call, StepObserver& observer) {
  const Step& step = *call.step;
  TensorList results;
  for (int slot : step.results) results.push_back(tensors_[size_t(slot)]);
  ObservedStep observed{*step.op, step.attrs, step.where, call.args, results, plan_.get(), &step};
  observer.before(observed);
  run(call);
  observer.after(observed);
}

void Frame::run(const Call& call) {
  const Step& step = *call.step;
  if (replay_) check_recordable(call);
  switch (step.kind) {
    case Step::Kind::kView:
      return;
    case Step::Kind::kOpaque:
      return run_opaque(call);
    case Step::Kind::kFused:
      return run_fused(call);
    default:
      return run_eager_step(step, call.args, call.out, call.target);
  }
}

void Frame::run_fused(const Call& call) {
  const Step& step = *call.step;
  if (call.by_ops) [[unlikely]]
    return run_by_ops(call);
  try {
    step.code->launch(arguments(call));
  } catch (const runtime::Refused& refusal) {
    // In place, a part of it may have overwritten what the ops would read.
    if (plan_->strict || step.in_place || Recording::current()) throw;
    runtime::warn_refused(refusal, "its ops run one by one");
    call.by_ops = true;
    run_by_ops(call);
  }
}

void Frame::run_by_ops(const Call& call) {
  TensorList results = run_graph(*call.step->attrs.as<FusedAttrs>().body, call.args);
  for (size_t r = 0; r < results.size(); ++r) {
    TensorArg source[] = {TensorArg(results[r])};
    eager::run_pointwise(known_ops().clone, source, {}, &call.results[r]);
  }
}

void Frame::run_opaque(const Call& call) {
  TensorList results = eager::execute(*call.step->op, call.args, call.step->attrs);
  for (size_t r = 0; r < results.size(); ++r) {
    Tensor result = std::move(results[r]);
    int slot = call.step->results[r];
    if (plan_->storages[size_t(plan_->slots[size_t(slot)].storage)].kind != Storage::Kind::kLoose) {
      TensorArg source[] = {TensorArg(result)};
      eager::run_pointwise(known_ops().clone, source, {}, &tensors_[size_t(slot)]);
      continue;
    }
    // An operand's memory, or another result's, must not be taken for its own.
    bool own = result.impl().use_count() == 1 && result.impl().buffer.use_count() == 1;
    if (!own || !result.impl().contiguous) result = result.clone(MemoryFormat::kContiguous);
    bind(plan_->slots[size_t(slot)].storage, result.impl().buffer, result.impl().offset);
  }
}

}  // namespace sinter
