#pragma once
// Pairs: the result of every op of the list into every kind of consumer; and chains of three where ops that select meet ops
// that work on bits. Compiled, against the referee.
#include <string_view>
#include <vector>

#include "sinter/graph/op.h"
#include "tests/pairs/stages.h"

namespace sinter::pairs {

// Which pairs are run: one of so many, drawn from the seed. SINTER_PAIRS_ONE_OF and SINTER_PAIRS_SEED choose others;
// SINTER_PAIRS_ONLY="elu of f32 into plus_number" those whose names have this in them, and names them as they begin.
struct Slice {
  uint64_t one_of = 1;
  uint64_t seed = 1;
  Device device = {};

  static Slice from_environment(uint64_t one_of, Device device = {});
  bool takes(std::string_view what) const;
};

// Every op that computes something.
std::vector<const Op*> producers();
// The ops of the list whose bodies select, and those whose bodies come to work on the bits of a number.
std::vector<const Op*> selecting_ops();
std::vector<const Op*> bit_ops();

// Runs what the slice takes of an op's pairs, with every dtype; failures are reported to GoogleTest.
void run_pairs(const Op& op, const Slice& slice);
// Runs what the slice takes of the chains in which this selecting op meets every bit operation.
void run_chains(const Op& op, const Slice& slice);
// Prints how many have run since the last report, and where.
void report(const char* what, const Slice& slice);

}  // namespace sinter::pairs
