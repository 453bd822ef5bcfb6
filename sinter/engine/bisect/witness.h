#pragma once
// What a function computes and on what, without a kernel of the compiler: programs that are compiled meanwhile run op by op.

#include "sinter/engine/bisect/bisect.h"
#include "sinter/engine/executable.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/engine/referee/checking.h"

namespace sinter::bisection {

// The first call of a program: the graph as captured and its operands, copied where the call changes them.
struct WitnessedCall {
  CapturedProgram program;
  std::vector<TensorArg> inputs;
  std::vector<int64_t> sizes;
};

class Witness {
 public:
  Witness();
  ~Witness();
  Witness(const Witness&) = delete;

  // The one of this thread; null when there is none.
  static Witness* current();
  const std::vector<WitnessedCall>& calls() const { return calls_; }

  // A program in the place of one that would be compiled: noted here when it is first run, as long as this lives.
  static std::shared_ptr<Executable> watch(Program program);

 private:
  friend class Watched;
  std::vector<WitnessedCall> calls_;
  Witness* const previous_;
  PassWatch watch_passes_;
};

// Of the first of the calls in which something is found.
Bisection bisect(const std::vector<WitnessedCall>& calls, const BisectOptions& options = {});

}  // namespace sinter::bisection
