#pragma once
// The one thread pool of the process: every parallel loop of the library runs on it.
#include <cstdint>

#include "sinter/base/api.h"
#include "sinter/base/function_ref.h"

namespace sinter SINTER_API {

// Threads a parallel loop may use, the caller included. At first SINTER_NUM_THREADS, or else the number of cores in the
// process's affinity mask.
int num_threads();
inline int get_num_threads() { return num_threads(); }
// Takes effect from the next loop on; may be called at any time from any thread. 1 <= n <= 1024.
void set_num_threads(int n);

namespace detail {
void parallel_for_pieces(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);
}

// Calls body(b, e) on pieces that cover [begin, end) exactly once, and returns when all are done.
//
// The pieces depend on (begin, end, grain) alone, never on the number of threads: each is a run of whole chunks
// [begin + k*grain, begin + (k+1)*grain), the same number in each but the last, at most 1024 pieces in all. Which
// thread runs a piece, and in what order, is not fixed. A body that keeps one partial result a piece is reproducible.
//
// The caller takes part. A range of at most `grain`, a loop inside another loop's body, and a pool of one thread run on
// the caller alone. While another thread's loop has the workers, a caller works through its pieces alone and is joined
// as soon as the workers are free, so any number of threads may call at once. The first exception thrown by `body`
// stops the handing out of pieces and is rethrown here. Idle workers spin for about 2 ms, then sleep.
inline void parallel_for(int64_t begin, int64_t end, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (begin >= end) return;
  if (end - begin <= grain) return body(begin, end);
  detail::parallel_for_pieces(begin, end, grain, body);
}

// While alive, loops begun on this thread run on it alone: for work that must not take the threads of others.
class InlineLoops {
 public:
  InlineLoops();
  ~InlineLoops();
  InlineLoops(const InlineLoops&) = delete;

 private:
  const bool before_;
};

}  // namespace sinter
