#include "sinter/engine/executable/planned.h"

#include <algorithm>
#include <mutex>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/checks.h"
#include "sinter/engine/executable/frame.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/engine/report.h"

namespace sinter {

namespace {

// A plan that is not among the last so many is made anew when its sizes come again.
constexpr size_t kMaxPlans = 64;
// Frames kept for the next call. More threads than this may be under way at once; their frames are freed afterwards.
constexpr size_t kMaxIdleFrames = 8;

// What a plan depends on: the sizes, where inputs may be written, and for each input whether it is row-major, or its
// strides. Ranks are the program's, so the numbers can be told apart.
using Key = SmallVector<int64_t, 48>;

class Planned final : public Executable, public std::enable_shared_from_this<Planned> {
 public:
  explicit Planned(Program program) : program_(std::move(program)) {}

  void run(std::span<const TensorArg> inputs, std::span<const int64_t> sizes, std::span<Tensor> outputs) override {
    check_counts(program_, inputs, sizes, outputs);
    Key key = key_of(inputs, sizes);
    Lease lease(*this, key, inputs, sizes);
    if (overlap(lease->plan()->changed_early, inputs)) {
      key[0] = false;
      Lease careful(*this, key, inputs, sizes);
      careful->run(inputs, outputs);
    } else {
      lease->run(inputs, outputs);
    }
  }

  std::function<void()> preparation(std::span<const TensorArg> inputs, std::span<const int64_t> sizes) override {
    Key key = key_of(inputs, sizes);
    {
      std::lock_guard lock(mutex_);
      auto plan = find(key);
      if (plan && overlap(plan->changed_early, inputs)) {
        key[0] = false;
        plan = find(key);
      }
      if (plan) return {};
    }
    return [self = shared_from_this(), key, strides = strides_of(inputs), sizes = IntList(sizes.begin(), sizes.end())] {
      self->give_back(std::make_unique<Frame>(self->plan(key, strides, sizes)));
    };
  }

  std::string text() const override {
    auto latest = latest_plan();
    return latest ? latest->text() : "planned when it is first called:\n" + program_.graph.text();
  }

  std::shared_ptr<const PlanReport> report() const override {
    auto latest = latest_plan();
    if (!latest) return nullptr;
    auto out = std::make_shared<PlanReport>(report_of(*latest));
    out->graph = program_.graph.text(true);
    return out;
  }

  int64_t arena_bytes() const override {
    std::lock_guard lock(mutex_);
    return largest_;
  }

 private:
  // Of the call before; where there was none, the only one there can be, if sizes are numbers.
  std::shared_ptr<const Plan> latest_plan() const {
    {
      std::lock_guard lock(mutex_);
      if (!plans_.empty()) return plans_.front().plan;
    }
    return program_.symbols.empty() ? make_plan(program_, {}, {}) : nullptr;
  }

  struct Entry {
    Key key;
    std::shared_ptr<const Plan> plan;
  };

  // A frame for the time of one call.
  class Lease {
   public:
    Lease(Planned& owner, const Key& key, std::span<const TensorArg> inputs, std::span<const int64_t> sizes)
        : owner_(owner), frame_(owner.take(key, inputs, sizes)) {}
    ~Lease() { owner_.give_back(std::move(frame_)); }
    Lease(const Lease&) = delete;
    Frame* operator->() { return frame_.get(); }

   private:
    Planned& owner_;
    std::unique_ptr<Frame> frame_;
  };

  static Key key_of(std::span<const TensorArg> inputs, std::span<const int64_t> sizes) {
    Key key;
    key.push_back(true);
    key.append(sizes);
    for (auto& arg : inputs) {
      if (arg.is_scalar()) continue;
      auto& impl = arg.tensor().impl();
      key.push_back(impl.contiguous);
      if (!impl.contiguous) key.append(impl.strides);
    }
    return key;
  }

  // Whether an input that is written while others are still to be read shares memory with one of them.
  static bool overlap(const std::vector<int>& written, std::span<const TensorArg> inputs) {
    for (int w : written)
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (int(i) == w || inputs[i].is_scalar()) continue;
        const TensorImpl &a = inputs[size_t(w)].tensor().impl(), &b = inputs[i].tensor().impl();
        if (a.buffer && b.buffer && eager::share_memory(a, b)) return true;
      }
    return false;
  }

  std::unique_ptr<Frame> take(const Key& key, std::span<const TensorArg> inputs, std::span<const int64_t> sizes) {
    std::shared_ptr<const Plan> plan;
    {
      std::lock_guard lock(mutex_);
      plan = find(key);
      if (auto frame = plan ? take_idle(*plan) : nullptr) return frame;
    }
    return std::make_unique<Frame>(plan ? plan : this->plan(key, strides_of(inputs), sizes));
  }

  // A new plan. Outside the lock: a second thread may make the same, and the first to come back is kept.
  std::shared_ptr<const Plan> plan(const Key& key, const std::vector<IntList>& strides, std::span<const int64_t> sizes) {
    auto made = make_plan(program_, sizes, {strides, key[0] != 0, program_.tune_seconds});
    std::lock_guard lock(mutex_);
    auto known = find(key);
    return known ? known : remember(key, made);
  }

  // The three below hold the lock.
  std::shared_ptr<const Plan> find(const Key& key) {
    for (auto it = plans_.begin(); it != plans_.end(); ++it)
      if (it->key == key) {
        std::rotate(plans_.begin(), it, it + 1);  // most recently used in front
        return plans_.front().plan;
      }
    return nullptr;
  }

  std::shared_ptr<const Plan> remember(const Key& key, std::shared_ptr<const Plan> plan) {
    if (plans_.size() == kMaxPlans) {
      std::erase_if(idle_, [&](auto& frame) { return frame->plan() == plans_.back().plan; });
      plans_.pop_back();
    }
    plans_.insert(plans_.begin(), {key, plan});
    largest_ = std::max(largest_, plan->arena_bytes);
    return plan;
  }

  std::unique_ptr<Frame> take_idle(const Plan& plan) {
    for (size_t i = idle_.size(); i-- > 0;)
      if (idle_[i]->plan().get() == &plan) {
        auto frame = std::move(idle_[i]);
        idle_.erase(idle_.begin() + int64_t(i));
        return frame;
      }
    return nullptr;
  }

  void give_back(std::unique_ptr<Frame> frame) noexcept {
    std::unique_ptr<Frame> oldest;  // freed outside the lock
    std::lock_guard lock(mutex_);
    if (idle_.size() == kMaxIdleFrames) {
      oldest = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
    idle_.push_back(std::move(frame));
  }

  static std::vector<IntList> strides_of(std::span<const TensorArg> inputs) {
    std::vector<IntList> out;
    for (auto& arg : inputs)
      out.push_back(arg.is_scalar() || arg.tensor().impl().contiguous ? IntList() : arg.tensor().impl().strides);
    return out;
  }

  const Program program_;
  mutable std::mutex mutex_;
  std::vector<Entry> plans_;
  std::vector<std::unique_ptr<Frame>> idle_;
  int64_t largest_ = 0;
};

}  // namespace

std::shared_ptr<Executable> make_planned(Program program) {
  if (!program.grouped) program.graph = group_kernels(std::move(program.graph));
  program.grouped = true;
  return std::make_shared<Planned>(std::move(program));
}

}  // namespace sinter
