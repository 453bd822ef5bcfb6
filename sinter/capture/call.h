#pragma once
// One call of a captured program: its cells, and how segments run on them.
#include "sinter/capture/function.h"
#include "sinter/capture/segment.h"
#include "sinter/capture/sizes.h"

namespace sinter::capture {

struct CallState {
  explicit CallState(const Invocation& invocation) : invocation(invocation) { cells.reserve(invocation.tensors.size() + 8); }

  const Invocation& invocation;
  std::vector<Tensor> cells;
  SmallVector<int64_t, 8> sizes;  // of the symbols, by place
  std::vector<Scalar> numbers;    // the host's in the next segment, where the function is called; else as captured
  std::vector<double> read_numbers;  // that the host has read before the segment: see HostAction

  Tensor& cell(int index) {
    if (size_t(index) >= cells.size()) cells.resize(size_t(index) + 1);
    return cells[size_t(index)];
  }
};

// The tensor that a cell begins with.
Tensor bind(CallState& call, const CellSource& source);
// Runs the segment: cells take its results, which become part of the tape where they are differentiable. Gives the bits of
// the answer to its question. `is_bound`: by a capture, so that the cells that the program meets here hold their tensors
// already, and the host has acted.
int64_t run(const Segment& segment, CallState& call, bool is_bound = false);
// The outputs of a segment's graph, computed op by op beside the program. Nothing is recorded for gradients.
std::vector<Tensor> evaluate(const Segment& segment, const Graph& graph, const SizeTable& sizes, CallState& call);
// What has to be made ready before a call like this one can run the segment and its backward: see
// Executable::preparation. Nothing is run or drawn.
void add_preparations(const Segment& segment, CallState& call, bool is_bound, std::vector<std::function<void()>>& work);
// What the last segment leaves to do: gradients into leaves, results to the caller.
void set_grads(const Segment& segment, CallState& call);
void collect_results(const Segment& segment, CallState& call, Results& results);

}  // namespace sinter::capture
