#include "sinter/data/data_loader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "sinter/base/thread_pool.h"
#include "sinter/tensor/buffer.h"

namespace sinter::data::detail {

namespace {

constexpr int64_t kMostWorkers = 1024;

// What the loader and the loop under way both know. Only the thread that uses the loader touches it.
struct Progress {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t position = 0;    // examples that the batches given so far have taken
  bool under_way = false;  // a loop has begun this epoch
};

struct Plan {
  DataLoaderOptions options;
  std::shared_ptr<const Sampler> sampler;
  BatchLoader::Batches batches;
  bool pins = false;
};

int64_t batch_count(int64_t examples, const DataLoaderOptions& options) {
  return examples / options.batch_size() + (!options.drop_last() && examples % options.batch_size() != 0);
}

// Also where a device is not here.
bool has_pinned_memory(Device device) {
  try {
    return pinned_allocator_for(device) != nullptr;
  } catch (const Error&) {
    return false;
  }
}

// The batches of one loop, each a function of its number.
class Stream : public BatchStream {
 public:
  Stream(std::shared_ptr<const Plan> plan, std::shared_ptr<Progress> progress)
      : plan_(std::move(plan)),
        progress_(std::move(progress)),
        seed_(progress_->seed),
        epoch_(progress_->epoch),
        first_(progress_->position),
        count_(batch_count(plan_->sampler->size() - first_, plan_->options)) {}

  std::shared_ptr<void> next() final {
    check(!ended_, "DataLoader: another loop over the loader, or its end, has ended this one");
    if (given_ == count_) {
      *progress_ = {seed_, epoch_ + 1, 0, false};
      ended_ = true;
      return nullptr;
    }
    const int64_t number = given_++;
    std::shared_ptr<void> batch = take(number);
    if (Device device = plan_->options.device(); !device.is_cpu())
      plan_->batches.visit(batch.get(), [&](Tensor& t) { t = t.to(device, /*non_blocking=*/true); });
    progress_->position = end_of(number);
    return batch;
  }

  // Nobody asks for batches any more.
  virtual void end() { ended_ = true; }

 protected:
  // Waits for a batch, or makes it. In order, each once.
  virtual std::shared_ptr<void> take(int64_t number) = 0;

  int64_t count() const { return count_; }

  // From any thread.
  std::shared_ptr<void> make(int64_t number) const {
    std::vector<int64_t> indices;
    for (int64_t at = first_ + number * plan_->options.batch_size(); at < end_of(number); ++at)
      indices.push_back(plan_->sampler->index(seed_, epoch_, at));
    auto batch = plan_->batches.make(indices, seed_, epoch_);
    if (plan_->pins) {
      const Device device = plan_->options.device().is_cpu() ? Device(kCUDA) : plan_->options.device();
      plan_->batches.visit(batch.get(), [&](Tensor& t) {
        if (t.device().is_cpu()) t = t.pin_memory(device);
      });
    }
    return batch;
  }

 private:
  int64_t end_of(int64_t number) const {
    return std::min(first_ + (number + 1) * plan_->options.batch_size(), plan_->sampler->size());
  }

  const std::shared_ptr<const Plan> plan_;
  const std::shared_ptr<Progress> progress_;
  const uint64_t seed_;
  const int64_t epoch_, first_, count_;
  int64_t given_ = 0;
  bool ended_ = false;
};

// On the thread that asks.
class SerialStream final : public Stream {
 public:
  using Stream::Stream;

 private:
  std::shared_ptr<void> take(int64_t number) override { return make(number); }
};

// By threads, which take the numbers of batches in order and put each into the slot of its number; a number is taken
// when its slot is sure to be free.
class ThreadedStream final : public Stream {
 public:
  ThreadedStream(std::shared_ptr<const Plan> plan, std::shared_ptr<Progress> progress, int64_t workers, int64_t slots)
      : Stream(std::move(plan), std::move(progress)), slots_(size_t(slots)) {
    for (int64_t i = 0; i < std::min(workers, count()); ++i)
      threads_.emplace_back([this](std::stop_token stop) { work(stop); });
  }
  ~ThreadedStream() override { join(); }

  void end() override {
    Stream::end();
    join();
  }

 private:
  struct Slot {
    bool ready = false;
    std::shared_ptr<void> batch;
    std::exception_ptr error;
  };

  std::shared_ptr<void> take(int64_t number) override {
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[size_t(number) % slots_.size()];
    ready_.wait(lock, [&] { return slot.ready; });
    Slot taken = std::exchange(slot, {});
    ++taken_;
    lock.unlock();
    room_.notify_one();
    if (taken.error) std::rethrow_exception(std::move(taken.error));
    return std::move(taken.batch);
  }

  void work(std::stop_token stop) {
    InlineLoops alone;
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, stop, [&] { return begun_ == count() || begun_ < taken_ + int64_t(slots_.size()); });
      if (stop.stop_requested() || begun_ == count()) return;
      const int64_t number = begun_++;
      lock.unlock();
      Slot made{.ready = true, .batch = nullptr, .error = nullptr};
      try {
        made.batch = make(number);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slots_[size_t(number) % slots_.size()] = std::move(made);
      ready_.notify_one();
      // The others wait for room that the last batch need not wait for: they are done.
      if (begun_ == count()) room_.notify_all();
    }
  }

  void join() {
    for (auto& thread : threads_) thread.request_stop();
    threads_.clear();
  }

  std::mutex mutex_;  // guards all below but the threads
  std::condition_variable_any room_, ready_;
  std::vector<Slot> slots_;
  int64_t begun_ = 0, taken_ = 0;  // batches
  std::vector<std::jthread> threads_;
};

// A number of a state dict.
int64_t number_of(const NamedTensors& state, std::string_view name) {
  for (auto& [key, tensor] : state) {
    if (key != name) continue;
    check(tensor.defined() && tensor.dtype() == kInt64 && tensor.numel() == 1,
          "DataLoader: '{}' of the state is not one integer", name);
    return tensor.item<int64_t>();
  }
  throw_error(format("DataLoader: the state has no '{}'", name));
}

}  // namespace

struct BatchLoader::State {
  std::shared_ptr<Plan> plan = std::make_shared<Plan>();
  std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  std::weak_ptr<Stream> stream;  // of the last loop

  void end_loop() {
    if (auto last = stream.lock()) last->end();
  }
};

BatchLoader::BatchLoader(const DataLoaderOptions& options, std::shared_ptr<const Sampler> sampler, Batches batches)
    : state_(std::make_unique<State>()) {
  check(options.batch_size() > 0, "DataLoader: a batch size of {}", options.batch_size());
  check(options.workers() >= 0 && options.workers() <= kMostWorkers, "DataLoader: {} workers", options.workers());
  check(options.prefetch() >= 0, "DataLoader: a prefetch of {}", options.prefetch());
  Plan& plan = *state_->plan;
  plan.options = options;
  plan.sampler = std::move(sampler);
  plan.batches = std::move(batches);
  if (!options.device().is_cpu()) {
    allocator_for(options.device());  // an Error where the device is not here
    plan.pins = true;
  } else if (options.pin_memory()) {
    plan.pins = has_pinned_memory(kCUDA);
  }
  state_->progress->seed = options.seed();
}

BatchLoader::~BatchLoader() { state_->end_loop(); }

std::shared_ptr<BatchStream> BatchLoader::start() {
  state_->end_loop();
  Progress& progress = *state_->progress;
  if (progress.under_way) progress = {progress.seed, progress.epoch + 1, 0, false};
  progress.under_way = true;
  const DataLoaderOptions& options = state_->plan->options;
  std::shared_ptr<Stream> stream;
  if (options.workers() == 0)
    stream = std::make_shared<SerialStream>(state_->plan, state_->progress);
  else
    stream = std::make_shared<ThreadedStream>(state_->plan, state_->progress, options.workers(),
                                              options.prefetch() ? options.prefetch() : 2 * options.workers());
  state_->stream = stream;
  return stream;
}

int64_t BatchLoader::size() const { return batch_count(state_->plan->sampler->size(), state_->plan->options); }

int64_t BatchLoader::epoch() const { return state_->progress->epoch; }

NamedTensors BatchLoader::state_dict() const {
  const Progress& progress = *state_->progress;
  return {{"epoch", tensor(progress.epoch)},
          {"position", tensor(progress.position)},
          {"seed", tensor(int64_t(progress.seed))},
          {"size", tensor(state_->plan->sampler->size())}};
}

void BatchLoader::load_state_dict(const NamedTensors& state) {
  const int64_t size = number_of(state, "size"), position = number_of(state, "position"),
                epoch = number_of(state, "epoch");
  check(size == state_->plan->sampler->size(), "DataLoader: the state is of an epoch of {} examples, this one has {}",
        size, state_->plan->sampler->size());
  check(position >= 0 && position <= size && epoch >= 0, "DataLoader: the state has position {} of {}, epoch {}",
        position, size, epoch);
  state_->end_loop();
  *state_->progress = {uint64_t(number_of(state, "seed")), epoch, position, false};
}

void rethrow_for_example(int64_t index) {
  auto message = [&](const char* what) { return format("DataLoader: example {}: {}", index, what); };
  try {
    throw;
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(message(error.what()));
  } catch (const std::exception& error) {
    throw Error(message(error.what()));
  } catch (...) {
    throw Error(message("something that is no std::exception was thrown"));
  }
}

}  // namespace sinter::data::detail
