#pragma once
// An executable whose calls are looked at by the referee now and then.
#include "sinter/engine/executable.h"

namespace sinter {

struct CheckOptions {
  int64_t every = 0;    // the first call is checked, and every so many after it; 0: none is
  bool throws = false;  // what is wrong is an Error once the call is over, not a warning
};

// What a program was before the passes changed it.
struct CapturedProgram {
  std::string name;
  std::string graph;  // its text
  std::vector<std::string> symbols;
  std::vector<int> writes;
};

// A checked call runs step by step, each beside the referee (engine/referee/check_steps.h); where all steps are right, its
// results are compared with those of the graph as captured. The results are the executable's own either way. There is one
// warning for each kernel. Calls that are profiled are not checked.
std::shared_ptr<Executable> make_checking(std::shared_ptr<Executable> executable, CapturedProgram captured,
                                          const CheckOptions& options);

}  // namespace sinter
