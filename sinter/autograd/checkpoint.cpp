#include "sinter/autograd/checkpoint.h"

#include "sinter/autograd/autograd.h"
#include "sinter/autograd/history.h"
#include "sinter/autograd/tape.h"
#include "sinter/ops/autocast.h"
#include "sinter/ops/rerun.h"
#include "sinter/tensor/tracer.h"

namespace sinter::autograd {

namespace {

// What runs on this thread: the first run of a checkpoint, or its second, whose items are gathered.
struct Run {
  IntrusivePtr<Checkpoint> checkpoint;
  bool second;
};
thread_local std::vector<Run> runs;

// Calls of checkpoint() under a tracer: how deep, and which is the outermost.
thread_local int traced_depth = 0, traced_calls = 0;

template <class T>
class Changed {
 public:
  Changed(T& place, T value) : place_(place), before_(std::exchange(place, std::move(value))) {}
  ~Changed() { place_ = std::move(before_); }
  Changed(const Changed&) = delete;

 private:
  T& place_;
  T before_;
};

}  // namespace

int checkpoint_region() { return traced_depth > 0 ? traced_calls : 0; }

Tensor argument_again(const Tensor& argument, TensorList& arguments) {
  if (!argument.defined() || Tracer::current() || !grad_enabled()) return argument;
  Tensor again = detached(argument);
  again.impl().requires_grad = needs_gradient(argument);
  return arguments.emplace_back(std::move(again));
}

TensorList argument_again(const TensorList& argument, TensorList& arguments) {
  TensorList again;
  for (auto& each : argument) again.push_back(argument_again(each, arguments));
  return again;
}

Checkpoint::Checkpoint(std::function<void()> again, const TensorList& arguments)
    : again_{std::move(again), {}}, draws_(default_generator().position()), autocast_(autocast::fingerprint()) {
  for (auto& argument : arguments) again_.arguments.push_back({argument, version_of(argument)});
}

void Checkpoint::wait_for(IntrusivePtr<Checkpoint> outer, size_t index) {
  outer_ = std::move(outer);
  index_ = index;
  again_ = {};
}

void Checkpoint::note(const IntrusivePtr<OpNode>& node) {
  if (runs.empty() || Tracer::current()) return;
  auto& [checkpoint, second] = runs.back();
  if (second)
    checkpoint->items_.push_back({node, nullptr});
  else
    node->drop_kept(checkpoint, checkpoint->count_++);
}

IntrusivePtr<OpNode> Checkpoint::op_again(size_t index) {
  auto node = std::move(item_again(index).node);
  check(bool(node), "checkpoint: the second run does not do what the first did: the function must do the same both times");
  return node;
}

Checkpoint::Item& Checkpoint::item_again(size_t index) {
  if (items_.empty()) run_again();
  check(items_.size() == count_,
        "checkpoint: {} ops were recorded in the first run and {} in the second: the function must do the same both times",
        count_, items_.size());
  return items_[index];
}

void Checkpoint::run_again() {
  if (!again_.run) {
    auto inner = std::move(outer_->item_again(index_).inner);
    check(bool(inner), "checkpoint: the second run does not do what the first did: the function must do the same both times");
    again_ = std::move(inner->again_);
  }
  for (auto& [argument, version] : again_.arguments)
    check(version_of(argument) == version,
          "checkpoint: an argument of shape {} has been changed by an in-place write since, so that the function cannot run on "
          "it a second time: clone() it before the write",
          argument.sizes());
  auto before = default_generator().position();
  TracerScope eager(nullptr);
  EnableGradGuard recorded;
  autocast::Pause as_then(autocast_);
  Changed rerun(is_rerun, true);
  runs.push_back({IntrusivePtr<Checkpoint>::share(this), true});
  forget_low_weights();  // each run converts its own
  default_generator().set_position(draws_);
  auto restore = [&] {
    default_generator().set_position(before);
    forget_low_weights();
    runs.pop_back();
  };
  try {
    again_.run();
  } catch (...) {
    restore();
    items_.clear();
    throw;
  }
  restore();
  again_ = {};
}

CheckpointScope::CheckpointScope(std::function<void()> again, const TensorList& arguments) : traced_(Tracer::current()) {
  if (traced_) {
    if (traced_depth++ == 0) ++traced_calls;
    return;
  }
  auto made = make_intrusive<Checkpoint>(std::move(again), arguments);
  if (!runs.empty()) {
    auto& [around, second] = runs.back();
    if (second)
      around->items_.push_back({nullptr, made});
    else
      made->wait_for(around, around->count_++);
  }
  forget_low_weights();
  runs.push_back({std::move(made), false});
}

CheckpointScope::~CheckpointScope() {
  if (traced_)
    --traced_depth;
  else
    runs.pop_back();
}

}  // namespace sinter::autograd
