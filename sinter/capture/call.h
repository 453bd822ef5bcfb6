#pragma once
// One call of a captured program: its slots, and how segments run on them.
#include "sinter/capture/function.h"
#include "sinter/capture/segment.h"
#include "sinter/capture/sizes.h"

namespace sinter::capture {

struct Call {
  explicit Call(const Frame& frame) : frame(frame) { slots.reserve(frame.tensors.size() + 8); }

  const Frame& frame;
  std::vector<Tensor> slots;
  SmallVector<int64_t, 8> sizes;  // of the symbols, by place
  std::vector<Scalar> numbers;    // the host's in the next segment, where the function is called; else as captured
  std::vector<double> read_numbers;  // that the host has read before the segment: see HostAction

  Tensor& slot(int index) {
    if (size_t(index) >= slots.size()) slots.resize(size_t(index) + 1);
    return slots[size_t(index)];
  }
};

// The tensor that a slot begins with.
Tensor meet(Call& call, const SlotSource& source);
// Runs the segment: slots take its results, which become part of the tape where they are differentiable. Gives the bits of
// the answer to its question. `has_met`: by a capture, so that the slots that the program meets here hold their tensors
// already, and the host has acted.
int64_t run(const Segment& segment, Call& call, bool has_met = false);
// The outputs of a segment's graph, computed op by op beside the program. Nothing is recorded for gradients.
std::vector<Tensor> evaluate(const Segment& segment, const Graph& graph, const SizeTable& sizes, Call& call);
// What has to be made ready before a call like this one can run the segment and its backward: see
// Executable::preparation. Nothing is run or drawn.
void add_preparations(const Segment& segment, Call& call, bool has_met, std::vector<std::function<void()>>& work);
// What the last segment leaves to do: gradients into leaves, results to the caller.
void set_grads(const Segment& segment, Call& call);
void collect_results(const Segment& segment, Call& call, Results& results);

}  // namespace sinter::capture
