#pragma once
// One function per kind of op. `type` is the result's, with static sizes.
#include "sinter/graph/interpreter.h"

namespace sinter::interpreter {

using Arrays = std::span<const Array* const>;

Array run_pointwise(const OpCall& call, Arrays inputs, const Type& type);
// kView, kLoop and kReduce.
Array run_loop(const OpCall& call, Arrays inputs, const Type& type);
Array run_scatter(const OpCall& call, Arrays inputs, const Type& type);
Array run_scan(const OpCall& call, Arrays inputs, const Type& type);

}  // namespace sinter::interpreter
