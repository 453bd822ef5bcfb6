#include "sinter/engine/executable/background.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/engine/executable/function.h"
#include "sinter/engine/executable/plan_geometry.h"

namespace sinter {

namespace {

// Operands as a preparation looks at them: without memory.
struct Request {
  Request(std::span<const TensorArg> inputs, std::span<const int64_t> given) : sizes(given.begin(), given.end()) {
    for (auto& input : inputs) {
      if (input.is_scalar()) {
        operands.push_back(input);
        continue;
      }
      auto& impl = input.tensor().impl();
      operands.push_back(TensorArg(geometry_of(impl.dtype, impl.sizes, impl.strides, impl.device)));
    }
  }

  std::vector<TensorArg> operands;
  IntList sizes;
};

class Background final : public Executable, public std::enable_shared_from_this<Background> {
 public:
  Background(Program program, std::function<std::shared_ptr<Executable>()> compile, std::shared_ptr<BackgroundTasks> tasks)
      : name_(program.name), compile_(std::move(compile)), tasks_(std::move(tasks)), eager_(make_eager(std::move(program))) {}

  void run(std::span<const TensorArg> inputs, std::span<const int64_t> sizes, std::span<Tensor> outputs) override {
    auto* compiled = ready_.load(std::memory_order_acquire);
    if (compiled && !compiled->preparation(inputs, sizes)) return compiled->run(inputs, sizes, outputs);
    request(inputs, sizes);
    eager_->run(inputs, sizes, outputs);
  }

  std::function<void()> preparation(std::span<const TensorArg> inputs, std::span<const int64_t> sizes) override {
    if (auto* compiled = ready_.load(std::memory_order_acquire)) return compiled->preparation(inputs, sizes);
    return [self = shared_from_this(), request = Request(inputs, sizes)] { self->make_ready(request); };
  }

  std::string text() const override {
    auto* compiled = ready_.load(std::memory_order_acquire);
    return compiled ? compiled->text() : "until it is compiled: " + eager_->text();
  }
  int64_t arena_bytes() const override {
    auto* compiled = ready_.load(std::memory_order_acquire);
    return compiled ? compiled->arena_bytes() : 0;
  }
  std::shared_ptr<const PlanReport> report() const override {
    auto* compiled = ready_.load(std::memory_order_acquire);
    return compiled ? compiled->report() : nullptr;
  }

 private:
  // One at a time: a call that needs something else asks again when it comes back.
  void request(std::span<const TensorArg> inputs, std::span<const int64_t> sizes) {
    if (is_asked_.exchange(true, std::memory_order_relaxed)) return;
    tasks_->submit([weak = weak_from_this(), request = Request(inputs, sizes)] {
      auto self = weak.lock();
      if (!self) return;  // nobody is left who would call it
      try {
        self->make_ready(request);
      } catch (const std::exception& error) {
        warn("{} was not compiled in the background and runs op by op: {}", self->name_, error.what());
        throw;
      }
      self->is_asked_.store(false, std::memory_order_relaxed);
    });
  }

  void make_ready(const Request& request) {
    {
      std::lock_guard lock(mutex_);
      if (!compiled_) {
        check(bool(compile_), "{} could not be compiled before", name_);
        compiled_ = std::exchange(compile_, nullptr)();
      }
    }
    while (auto work = compiled_->preparation(request.operands, request.sizes)) work();
    ready_.store(compiled_.get(), std::memory_order_release);
  }

  const std::string name_;
  std::function<std::shared_ptr<Executable>()> compile_;
  const std::shared_ptr<BackgroundTasks> tasks_;
  const std::shared_ptr<Executable> eager_;
  std::mutex mutex_;  // of compile_ and compiled_
  std::shared_ptr<Executable> compiled_;
  std::atomic<Executable*> ready_{nullptr};  // compiled_, once it can serve some call
  std::atomic<bool> is_asked_{false};        // stays so after a failure
};

}  // namespace

std::shared_ptr<Executable> make_background(Program program, std::function<std::shared_ptr<Executable>()> compile,
                                            std::shared_ptr<BackgroundTasks> tasks) {
  return std::make_shared<Background>(std::move(program), std::move(compile), std::move(tasks));
}

}  // namespace sinter
