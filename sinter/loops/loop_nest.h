#pragma once
// LoopNest: one kernel as data. Axes with symbolic extents, a straight-line scalar body in SSA form, one store.
//
//   for i0 < n0 (parallel)
//     for k0 < n1 (sum)
//       %0 = load f32 in0[i0*n1 + k0]
//     store f32 out[i0] = sum %0
#include <string>
#include <vector>

#include "sinter/graph/op.h"

namespace sinter {

struct Axis {
  Dim symbol, extent;
};

// A tensor (by pointer) or a plain number (by value) that the kernel is given.
struct KernelOperand {
  DType dtype;
  bool scalar = false;
  bool output = false;
};

enum class InstrKind : uint8_t {
  kLoad,       // an element of `operand` at `offset`; `value` instead where a condition fails
  kLoadIndex,  // an integer element as a coordinate: wrapped when negative, checked against `extent`, bound to `symbol`;
               // in a fused kernel it is args[0], where the conditions hold, else 0
  kConstant,   // `value`
  kIndex,      // the coordinate `offset` as an i64
  kApply,      // `op`'s body, computing in `compute`
  kSelect,     // args[0] where the conditions hold, else args[1]
  kTile,       // the element that is being finished of a contraction's result: `operand` counts contractions
  kOuter       // the number that an earlier sweep of a fused kernel has found for this row: `operand` counts them
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

enum class NestKind : uint8_t {
  kMap,      // store the value at every point of the parallel axes
  kReduce,   // combine over the sequential axes, store once per point of the parallel axes
  kScan,     // combine along the sequential axis, store every step
  kScatter   // combine the value into memory at every point; sequential axes may collide
};

struct LoopNest {
  std::string name;
  NestKind kind = NestKind::kMap;
  std::vector<KernelOperand> operands;  // inputs, then the output
  std::vector<Axis> parallel, sequential;
  std::vector<Instr> body;
  int value = -1;      // the instruction whose result is stored or combined
  int payload = -1;    // argmax, argmin: what is kept of the winner
  Combine combine = Combine::kNone;
  DType accumulator = kFloat32;
  int output = -1;     // operand stored to
  Dim offset;          // where, in elements

  // Free symbols (sizes and strides) in text order: the kernel takes their values after its operands.
  std::vector<std::string> params() const;
  std::string text() const;
};

// "sum"; empty for none.
const char* combine_name(Combine combine);
// One instruction of the nest's body as a line.
std::string instr_text(const LoopNest& nest, const Instr& instr, int id);

// The type a pointwise op computes in, given the promoted type of its operands and its result type.
DType pointwise_compute_dtype(Typing typing, DType operands, DType result);

}  // namespace sinter
