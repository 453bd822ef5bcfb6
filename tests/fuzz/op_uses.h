#pragma once
// Calls of the registry's ops: operands and attributes are made from what the op's own samples say.
#include <functional>
#include <span>

#include "tests/fuzz/program.h"

namespace sinter::fuzz {

// A number below the one given.
using Draw = std::function<int(int)>;

// The ops that a program can call: all but those whose attributes are graphs.
std::span<const Op* const> drawn_ops();
// Pairs of a producer and a consumer. Each program tries to bring a few together: seeds one after another walk through
// all pairs, evenly.
struct OpPair {
  const Op *producer, *consumer;
};
size_t pair_count();
inline constexpr int kPairs = 2;
OpPair pair_of(uint32_t seed, int k);

// How an op is to be used.
struct Wish {
  std::optional<int> first = {};  // this variable is one of its operands
  bool exact = false;     // operands have the sample's own sizes; else one stays as it is, and the others follow it
  std::string text = {};  // the sample; any where there is none
  std::optional<IntList> sizes = {};  // those of all operands of a pointwise op
};
// The op on some of the variables. Nothing where the wish cannot be met or the sample is too large.
std::optional<OpUse> draw_use(const Op& op, const TensorList& variables, const Wish& wish, const Draw& draw);
// A sample, and the sizes that it has for the operand which a wish's `first` becomes.
std::pair<std::string, IntList> draw_sample(const Op& op, const Draw& draw);

}  // namespace sinter::fuzz
