#pragma once
// What a right kernel may give: the referee's values of a graph, and for every element how far a kernel may be off.
//
// Errors are followed from op to op. Each op adds what its Tolerance allows, and hands on what its operands may be off by:
// the op is evaluated again on operands moved by that much, so that what magnifies an error magnifies the bound, and a
// comparison, a rounding or a search that another rounding decides otherwise lets its result be either. Sums may be off by
// the rounding of their terms. Intermediate values may or may not be rounded to their dtypes: kernels do either.
#include "sinter/engine/referee/one_op.h"

namespace sinter::referee {

struct Bounded {
  Known value;
  std::vector<double> error = {};  // by element; empty: it is exact. Infinite: it may be anything
};

// Sizes of the graph are numbers; operands are exact.
std::vector<Bounded> evaluate_bounded(const Graph& graph, std::vector<Known> inputs);

// An op that was applied to these operands.
std::vector<Bounded> evaluate_bounded(const OpCall& call, std::span<const Bounded* const> inputs);

}  // namespace sinter::referee
