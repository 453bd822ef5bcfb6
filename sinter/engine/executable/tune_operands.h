#pragma once
// Operands of a step in memory of their own, made when a candidate first runs: remembered choices need none. Large ones
// are made several times and used in turn: in a program each step finds the caches full of what other steps read, and a
// way that is fast on weights in the cache need not be fast on weights in memory.
#include "sinter/engine/executable/plan.h"

namespace sinter {

class TuneOperands {
 public:
  TuneOperands(const Plan& plan, const Step& step) : plan_(plan), step_(step) {}

  struct Set {
    std::vector<TensorArg> inputs;
    TensorList results;
    StepArguments arguments;  // of both: what is read stays
  };
  const Set& next();

 private:
  Set make_set();
  Tensor tensor(int slot);

  const Plan& plan_;
  const Step& step_;
  std::vector<Set> sets_;
  size_t at_ = 0;
  int64_t bytes_ = 0;  // of the sets made so far
};

}  // namespace sinter
