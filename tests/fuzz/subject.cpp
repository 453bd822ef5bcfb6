#include "tests/fuzz/subject.h"

#include "sinter/base/format.h"

namespace sinter::fuzz {

namespace {

// The program as a module, whose parts are its layers.
struct ProgramModuleImpl : nn::Module {
  const Program& program;
  TensorList captured;
  State state;

  ProgramModuleImpl(const Program& program, const TensorList& captured, const State& state)
      : program(program), captured(captured), state(state) {
    for (size_t k = 0; k < program.state.layers.size(); ++k) register_module(format("layer{}", k), state.layers[k]);
  }
  TensorList forward(const TensorList& arguments, const Scalar& s) {
    return run(program, arguments, captured, s, state);
  }
};
SINTER_MODULE(ProgramModule);

Seen look(std::string name, const Tensor& tensor, bool layout) {
  Seen seen{.name = std::move(name), .sizes = {}, .strides = {}, .values = {}};
  seen.defined = tensor.defined();
  if (!seen.defined) return seen;
  seen.requires_grad = tensor.requires_grad();
  seen.dtype = tensor.dtype();
  seen.sizes = tensor.impl().sizes;
  if (layout)
    for (size_t d = 0; d < seen.sizes.size(); ++d)  // the stride of a dimension of one element means nothing
      seen.strides.push_back(seen.sizes[d] == 1 || tensor.impl().numel == 0 ? 0 : tensor.impl().strides[d]);
  seen.values = tensor.detach().to_vector<double>();
  return seen;
}

bool is_expanded(const Tensor& tensor) {
  for (size_t d = 0; d < tensor.impl().sizes.size(); ++d)
    if (tensor.impl().sizes[d] > 1 && tensor.impl().strides[d] == 0) return true;
  return false;
}

template <class F>
void attempt(Observation& seen, bool& failed, F f) {
  try {
    f();
  } catch (const std::exception& error) {
    failed = true;
    seen.broken = seen.broken || !dynamic_cast<const Error*>(&error) || dynamic_cast<const InternalError*>(&error);
    seen.error = error.what();
  }
}

std::string sharing(const TensorList& tensors) {
  std::string out;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (tensors[i].defined() && tensors[j].defined() && tensors[i].impl().numel > 0 &&
          tensors[i].is_alias_of(tensors[j]))
        out += format("{}~{} by {}, ", i, j, tensors[i].storage_offset() - tensors[j].storage_offset());
  return out;
}

}  // namespace

Subject::Subject(const Program& program, const CompileOptions* options, double disturbance)
    : program_(program),
      captured_(make_inputs(program.captured, Round(), 1)),
      state_(make_state(program.state, disturbance)) {
  ProgramModule module(program, captured_.tensors, state_);
  auto f = [&program, captured = captured_.tensors, state = state_](const TensorList& arguments, const Scalar& s) {
    return run(program, arguments, captured, s, state);
  };
  if (!options)
    call_ = f;
  else if (program.as_module)
    call_ = compile(module, *options);
  else
    call_ = compile(f, *options);
}

Observation Subject::operator()(const Round& round) {
  restore(round);
  Data arguments = make_inputs(program_.arguments, round, 0);
  Observation seen;
  TensorList results, leaves = arguments.leaves;
  for (auto& more : {captured_.leaves, state_.parameters}) leaves.insert(leaves.end(), more.begin(), more.end());
  manual_seed(1);
  attempt(seen, seen.failed, [&] { results = call_(arguments.tensors, make_number(round)); });
  if (!seen.failed) seen.numbers = numbers();
  attempt(seen, seen.backward_failed, [&] {
    if (Tensor loss = weighted_sum(RoundingScope::weighted(results)); loss.defined()) loss.backward();
    if (program_.state.steps_around) step();
  });
  TensorList all;
  auto note = [&](const char* what, const TensorList& tensors, bool layout) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      seen.tensors.push_back(look(format("{} {}", what, i), tensors[i], layout));
      if (layout) all.push_back(tensors[i]);
    }
  };
  note("result", results, true);
  note("argument", arguments.tensors, true);
  note("captured tensor", captured_.tensors, true);
  note("parameter", state_.parameters, true);
  note("buffer", state_.buffers(), true);
  TensorList grads, kept;
  for (auto& leaf : leaves) grads.push_back(leaf.grad());
  note("gradient", grads, false);
  for (auto& [name, tensor] : state_.optimizer->state_dict()) kept.push_back(tensor);
  note("state of the optimiser", kept, false);
  seen.sharing = sharing(all);
  return seen;
}

// The captured tensors as they were, in the memory in which they are.
void Subject::restore(const Round& round) {
  NoGradGuard none;
  Round first;
  first.disturbance = round.disturbance;
  Data fresh = make_inputs(program_.captured, first, 1);
  for (size_t i = 0; i < fresh.tensors.size(); ++i) {
    if (is_expanded(captured_.tensors[i])) continue;
    captured_.tensors[i].detach().copy_(fresh.tensors[i].detach());
  }
  for (auto& leaf : captured_.leaves) leaf.set_grad({});
  state_.train(round.training);
  clear_gradients();
}

void Subject::clear_gradients() {
  using Before = StateSpec::Before;
  if (program_.state.before == Before::kNothing) return;
  bool set_to_none = program_.state.before == Before::kSetToNone;
  if (program_.state.optimizer >= 0) return state_.optimizer->zero_grad(set_to_none);
  for (auto& layer : state_.layers) layer.ptr()->zero_grad(set_to_none);
}

void Subject::step() {
  if (program_.state.clips) nn::utils::clip_grad_norm_(state_.parameters, 1.0);
  state_.optimizer->step();
  if (program_.state.schedule >= 0) state_.schedule->step();
}

std::string Subject::numbers() const {
  auto [seed, offset] = default_generator().next();
  std::string out = format("seed {}, draw {}, rate {}, schedule {}", seed, offset, state_.optimizer->lr(),
                           state_.schedule->last_epoch());
  for (auto& layer : state_.layers)
    for (auto* module : layer.ptr()->modules()) out += module->is_training() ? ", training" : ", evaluating";
  return out;
}

}  // namespace sinter::fuzz
