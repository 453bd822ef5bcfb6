#pragma once
// One change of a trial: what becomes of values, sizes and operands.
#include "sinter/engine/bisect/trial.h"

namespace sinter::bisection {

struct Edit {
  struct Hash {
    size_t operator()(const Value& v) const { return std::hash<const void*>()(v.node) * 31 + size_t(v.index); }
  };
  // By value of the old graph: another one that takes its place, or a tensor that it is from now on.
  std::unordered_map<Value, Value, Hash> instead = {};
  std::unordered_map<Value, Tensor, Hash> given = {};
  // The outputs that stay; empty: all.
  std::vector<Value> outputs = {};
  std::function<Dim(const Dim& size)> sizes = {};
  // The operand that takes the place of an input.
  std::function<TrialInput(size_t i, const TrialInput& before)> inputs = {};
};

// The trial after the change, without what nothing needs any more; nothing where ops refuse it.
std::optional<Trial> edited(const Trial& trial, const Edit& edit);

}  // namespace sinter::bisection
