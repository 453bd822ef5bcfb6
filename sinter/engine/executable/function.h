#pragma once
// Executables that hand the whole graph to a function.
#include "sinter/engine/executable.h"

namespace sinter {

// One tensor a graph output; the function may give operands back, or change those that the program writes.
using SizedGraphFunction = std::function<TensorList(std::span<const TensorArg> inputs, std::span<const int64_t> sizes)>;

// Runs the function outside all history and brings what it gives to where the program says. `text` is what people see.
std::shared_ptr<Executable> make_function(std::shared_ptr<const Program> program, SizedGraphFunction function,
                                          std::string text);

// Node by node through the eager ops.
std::shared_ptr<Executable> make_eager(Program program);
// The referee, in double precision.
std::shared_ptr<Executable> make_interpreted(Program program);

}  // namespace sinter
