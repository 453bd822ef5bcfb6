#pragma once
// FusedNest: a group of ops as one kernel. For every row, sweeps over the inner axes one after the other: each finds the
// row's reductions that the next ones need, the last stores elements. Intermediates live in registers.
//
//   for i0 < n0 (parallel)
//     sweep i1 < n1
//       %0 = load f32 in0[i0*n1 + i1]
//       row value 0 = max %0
//     sweep i1 < n1
//       …
//       store f32 out1[i0*n1 + i1] = %5
#include <optional>

#include "sinter/loops/lower.h"
#include "sinter/ops/fused.h"

namespace sinter {

struct FusedStore {
  int operand;
  Dim offset;
  int value;
};

struct FusedReduction {
  int outer;  // the row value that it becomes
  int value;
  Combine combine;
  DType accumulator;
  DType dtype;  // of the result
};

struct Sweep {
  bool once = false;  // for the row as a whole: no inner axes
  std::vector<Instr> body;
  std::vector<FusedReduction> reductions;
  std::vector<FusedStore> stores;
};

struct FusedNest {
  std::string name;
  std::string indexing;  // the ops that read by an index, for the message when one is out of range
  int tiles = 0;  // contractions whose results it works on, piece by piece: rows are counted by `r`
  int back = -1;  // the output that goes back into the first tile
  std::vector<KernelOperand> operands;  // inputs, then outputs
  std::vector<Axis> rows, inner;
  std::vector<Sweep> sweeps;

  std::vector<std::string> params() const;
  std::string text() const;
  // A sweep as a nest of its own, for the parts that schedules and dialects share.
  LoopNest as_nest(const Sweep& sweep) const;
};

// Matrix products and convolutions.
bool is_contraction(const Node& node);
// Those of a body, in its order.
std::vector<const Node*> contractions_of(const Graph& body);

// By input of a fused body: whether an element of a result depends on another element of it than the one in its own place,
// other than through a reduction.
std::vector<bool> read_elsewhere(const Graph& body);

// The nest of a fused node whose only result is a reduction over other than the last dimensions, a search or a scan:
// everything before it is computed where it is read. Nothing for other nodes; `indexing` is as in FusedNest.
struct SinkNest {
  LoopNest nest;
  std::string indexing;
};
std::optional<SinkNest> lower_sink(const FusedAttrs& attrs, std::span<const Layout> layouts);

// The nest of a fused node. `layouts`: of its operands, then of its results. Axes that every access walks as one are
// joined. `order` has the dimensions of the domain from the outermost loop to the innermost; it counts only where nothing
// is reduced, and may be left out.
FusedNest lower_fused(const FusedAttrs& attrs, std::span<const Layout> layouts, const IntList& order = {});

}  // namespace sinter
