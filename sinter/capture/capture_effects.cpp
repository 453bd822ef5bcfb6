// What the host changes while a function is captured, and what library code may ask of the capture under way.
#include "sinter/capture/capture.h"

namespace sinter::capture {

void Capture::perform(const char*, const std::function<void()>& apply, std::function<void()> undo) {
  if (is_tracing()) undo_.push_back(std::move(undo));
  {
    // What it calls in turn is part of it.
    HostEffects::Scope none(nullptr);
    TracerScope untraced(nullptr);
    apply();
  }
  if (is_tracing()) recorder_.add_host_action(apply);
}

void Capture::call_every_time(const char* what) {
  if (!is_tracing()) return;
  auto* where = UserPosition::current();
  Question question{.kind = Question::Kind::kMemory, .what = what, .where = where ? to_string(*where) : std::string()};
  check(!function_.options().fullgraph,
        "compile: {} asked for fullgraph, but {} has to happen in every call, for which the function itself is called. Move "
        "it out of the function", function_.name(), what);
  must_follow(question);
}

void Capture::fits_once(const char* what, std::function<void()> undo) {
  if (!is_tracing()) return;
  if (undo) undo_.push_back(std::move(undo));
  if (once_.empty()) once_ = what;
}

void Capture::settle_draws(const char* what) {
  if (is_tracing() && recorder_.has_draws()) recorder_.step_aside(what);
}

void Capture::refuse(const char* what) {
  if (is_tracing()) throw CannotCapture{format("{} inside of it", what)};
}

bool Capture::grad_flag_changes(TensorImpl& tensor, bool on) {
  if (!is_tracing()) return false;
  if (recorder_.changes_argument(tensor, on)) refuse("requires_grad_() on an argument");
  if (tensor.traced) return on && recorder_.make_leaf(tensor);  // of the program's own making
  call_every_time("requires_grad_()");
  if (tensor.requires_grad == on) return false;
  recorder_.settle_use(tensor);
  undo_.push_back([kept = IntrusivePtr<TensorImpl>::share(&tensor), on] {
    kept->requires_grad = !on;
    TensorImpl::geometry_clock.fetch_add(1, std::memory_order_relaxed);
  });
  return false;
}

void Capture::undo_effects() {
  HostEffects::Scope none(nullptr);
  TracerScope untraced(nullptr);
  while (!undo_.empty()) {
    undo_.back()();
    undo_.pop_back();
  }
}

Scalar host_number(std::function<double()> read) {
  return is_capturing() ? Capture::current()->recorder().add_host_number(std::move(read)) : Scalar(read());
}

bool is_capturing() { return Capture::current() && Tracer::current() == &Capture::current()->recorder(); }

void step_aside(const char* what) {
  if (is_capturing()) Capture::current()->recorder().step_aside(what);
}

Tensor real_tensor(const Tensor& tensor) {
  return is_capturing() && tensor.defined() ? Capture::current()->recorder().real_of(tensor) : tensor;
}

Tensor enter_tensor(const Tensor& tensor) {
  return is_capturing() && tensor.defined() ? Capture::current()->recorder().enter(tensor) : tensor;
}

void depend_on(const IntrusivePtr<HostState>& state) {
  if (is_capturing()) Capture::current()->add_state(state);
}

void changes_unforeseen(const IntrusivePtr<HostState>& state) {
  if (is_capturing()) Capture::current()->add_unforeseen(state);
}

}  // namespace sinter::capture
