#pragma once
// LoopNest: one kernel as data, of one op or of a fused group of them. For every row, sweeps over the inner axes one after
// the other: straight-line scalar bodies in SSA form that find the row's values, which later sweeps read, or store elements.
//
//   for i0 < n0 (parallel)
//     sweep k0 < n1
//       %0 = load f32 in0[i0*n1 + k0]
//       row value 0 = sum %0
//     once
//       %0 = row value 0
//       store f32 out1[i0] = %0
//
// A map is one sweep that stores; a reduction is a sweep that combines and one that stores once; a search keeps something
// of the winner; a scan stores what it has combined so far; a scatter combines into memory.
#include <string>
#include <vector>

#include "sinter/graph/op.h"
#include "sinter/loops/parameters.h"

namespace sinter {

struct Axis {
  Dim symbol, extent;
  int dim = -1;  // the dimension of the domain that it counts; -1: an op's own, such as what a reduction of one op runs over
};

// A tensor (by pointer) or a plain number (by value) that the kernel is given.
struct KernelOperand {
  DType dtype;
  bool scalar = false;
  bool output = false;
};

enum class InstrKind : uint8_t {
  kLoad,       // an element of `operand` at `offset`; `value` instead where a condition fails
  kLoadIndex,  // an integer as a coordinate, wrapped when negative, checked against `extent`, bound to `symbol`: an element of
               // `operand` at `offset`, or args[0] where the conditions hold, else 0
  kConstant,   // `value`
  kIndex,      // the coordinate `offset` as an i64
  kApply,      // `op`'s body, computing in `compute`
  kSelect,     // args[0] where the conditions hold, else args[1]
  kTile,       // the element that is being finished of a contraction's result: `operand` counts contractions
  kOuter       // the number that an earlier sweep has found for this row: `operand` counts them
};

struct Instr {
  InstrKind kind;
  DType dtype;  // of the result; half types hold f32, rounded by a cast alone; narrow integers wrap
  int operand = -1;
  Dim offset = {}, extent = {}, symbol = {};
  Conditions conditions = {};
  Scalar value = {};
  const Op* op = nullptr;
  DType compute = kFloat32;
  SmallVector<int, 4> args = {};
};

// Over all steps of a sweep.
struct RowReduction {
  int outer;  // the row value that it becomes
  int value;
  Combine combine;
  DType accumulator;
  DType dtype;       // of the result
  int payload = -1;  // argmax, argmin: what is kept of the winner, and is the result
};

struct Store {
  int operand;
  Dim offset;
  int value;
  // Other than none: with what is there already, step after step in the order of the inner axes.
  Combine combine = Combine::kNone;
  DType accumulator = kFloat32;
  int running = -1;  // instead of `value`: what this row value has come to so far
};

struct Sweep {
  bool once = false;  // for the row as a whole: no inner axes
  std::vector<Instr> body;
  std::vector<RowReduction> reductions;
  std::vector<Store> stores;

  bool scans() const { return !stores.empty() && stores[0].running >= 0; }
  bool searches() const { return !reductions.empty() && reductions[0].payload >= 0; }
  // Elements meet in memory.
  bool scatters() const { return !stores.empty() && stores[0].combine != Combine::kNone; }
};

struct LoopNest {
  std::string name;
  std::string indexing;  // the ops of a fused group that read by an index, for the message when one is out of range
  int tiles = 0;  // contractions whose results it works on, piece by piece: rows are counted by `r`
  int back = -1;  // the output that goes back into the first tile
  std::vector<KernelOperand> operands;  // inputs, then outputs
  std::vector<Axis> rows, inner;        // rows are independent of each other
  std::vector<Sweep> sweeps;
  std::vector<Parameter> parameters;    // in the order in which the kernel takes their values, after its operands

  std::string text() const;

  // Lists the symbols that nothing in the nest binds, by name.
  void take_parameters(const Parameters& named);

  bool reduces() const;     // some sweep finds a row value
  bool reads_index() const;  // some coordinate is read from memory
  // Elements are stored, each by itself: the inner axes run in any order too.
  bool is_map() const;
  // A reduction that an op defines over axes of its own.
  bool reduces_own_axes() const;
};

// "sum"; empty for none.
const char* combine_name(Combine combine);

// The type a pointwise op computes in, given the promoted type of its operands and its result type.
DType pointwise_compute_dtype(Typing typing, DType operands, DType result);

}  // namespace sinter
