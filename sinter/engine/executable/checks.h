#pragma once
// What every backend refuses.
#include "sinter/engine/executable.h"

namespace sinter {

// An Error when the program cannot be: a written output that names no input, or one of another type.
void check_program(const Program& program);
// An Error when a call brings too many or too few operands, sizes or places, or a number where a tensor belongs.
void check_counts(const Program& program, std::span<const TensorArg> inputs, std::span<const int64_t> sizes,
                  std::span<Tensor> outputs);

}  // namespace sinter
