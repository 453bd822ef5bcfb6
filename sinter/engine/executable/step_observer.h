#pragma once
// Somebody who looks at each step of the programs that this thread runs: what it reads, and what it gives.
#include <span>
#include <string>
#include <utility>

#include "sinter/graph/op.h"

namespace sinter {

struct Plan;
struct Step;

// One step while it is under way. Under a planned executable it has a plan; an eager one runs node by node.
struct ObservedStep {
  const Op& op;
  const Attrs& attrs;
  const std::string& where;  // the user's line
  std::span<const TensorArg> inputs;
  std::span<const Tensor> results;  // before it runs: where they will be, as far as that is known
  const Plan* plan = nullptr;
  const Step* step = nullptr;
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void before(const ObservedStep& step) = 0;
  virtual void after(const ObservedStep& step) = 0;

  // The one of this thread; null when there is none. While there is, plans run step by step.
  static StepObserver* current() { return current_; }

 private:
  friend class ObserverScope;
  static inline thread_local StepObserver* current_ = nullptr;
};

class ObserverScope {
 public:
  explicit ObserverScope(StepObserver* observer) : previous_(std::exchange(StepObserver::current_, observer)) {}
  ~ObserverScope() { StepObserver::current_ = previous_; }
  ObserverScope(const ObserverScope&) = delete;

 private:
  StepObserver* previous_;
};

}  // namespace sinter
