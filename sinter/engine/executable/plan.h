#pragma once
// Plan: a program at one tuple of sizes and one set of input layouts, as steps over tensors whose places in memory are
// known: in an arena of temporaries, in the caller's inputs, or in the fresh memory of outputs.
#include <memory>

#include "sinter/engine/executable.h"
#include "sinter/engine/executable/pack.h"
#include "sinter/engine/report.h"
#include "sinter/engine/step/compiled_step.h"

namespace sinter {

// Memory that one value, its views, and the values that took it over share.
struct Storage {
  enum class Kind : uint8_t {
    kArena,   // at block.offset of the arena
    kInput,   // of the caller; captured tensors count on from the inputs
    kOutput,  // fresh at each call
    kLoose    // brought along by a kernel that makes its own results
  };
  Kind kind = Kind::kArena;
  int index = -1;  // of the input or output
  Block block;     // size and lifetime
};

// A tensor of the plan: its geometry, in a TensorImpl without a buffer whose offset counts from the storage's start.
struct Slot {
  Tensor geometry;
  int storage = -1;
};

// What a step reads: a tensor, a number of the program, or a number that the caller gives.
struct Operand {
  int slot = -1;
  int number_input = -1;
  Scalar number = 0;
};

struct Step {
  enum class Kind : uint8_t {
    kView,       // nothing to do: another look at a slot's memory
    kPointwise,  // into slot results[0]
    kKernel,     // the same for every other op whose result has a place
    kOpaque,     // results are loose
    kFused,      // a kernel of several ops, into all its results
    kWrite,      // inputs[0] (unless in place), then inputs[1] into `target`
    kCopy        // inputs[0] into results[0]
  };
  Kind kind = Kind::kKernel;
  const Op* op = nullptr;
  Attrs attrs = {};
  std::vector<Operand> inputs = {};
  std::vector<int> results = {};
  int target = -1;         // kWrite: the slot that the value goes to, a view of the result
  bool in_place = false;   // the result took over the memory of an operand, or of an input that the program changes
  std::string where = {};  // the user's line
  std::shared_ptr<const CompiledStep> code = {};  // kFused
  std::string candidate = {};                      // kFused: what tuning chose in place of the default
  std::vector<TriedCandidate> tried = {};          // kFused: what it chose from
};

// How an output comes about once all steps have run.
struct PlannedOutput {
  enum class Kind : uint8_t {
    kFresh,    // the tensor of a slot in memory made for it
    kWritten,  // the input itself: its memory holds the value
    kNumber
  };
  Kind kind = Kind::kFresh;
  int slot = -1;   // kFresh
  int input = -1;  // kWritten
  Operand number = {};
};

struct Plan {
  std::vector<Slot> slots;
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<PlannedOutput> outputs;
  std::vector<int> input_slots;  // by input, captured ones behind; -1 for numbers and for inputs that nothing reads
  TensorList captured;
  std::vector<int> changed_inputs;  // those whose memory the plan writes, whenever it does
  std::vector<int> changed_early;   // those among them that are written while steps may still read other inputs
  Device device;     // of all steps
  bool records = false;  // on a GPU: steps become one CUDA graph
  bool strict = false;   // a refused kernel is an error
  std::string name;  // the program's
  int64_t arena_bytes = 0;
  int64_t live_bytes = 0;    // the largest sum of blocks of the arena in use at one step: no arena can be smaller
  int64_t copied_bytes = 0;  // moved by writes and copies in one call
  double untuned_seconds = 0, tuned_seconds = 0;  // where tuning compared the whole program

  // One line a step.
  std::string text() const;
};

struct PlanOptions {
  // By input: strides in elements; empty for row-major tensors and numbers.
  std::vector<IntList> input_strides;
  // Whether inputs that the program changes may be written before the end: not where they overlap with others.
  bool write_inputs_early = true;
  // Spent at most on each choice between several candidates for a step; 0: the defaults, whatever was remembered.
  double tune_seconds = 0;
};

std::shared_ptr<const Plan> make_plan(const Program& program, std::span<const int64_t> sizes,
                                      const PlanOptions& options);

}  // namespace sinter
