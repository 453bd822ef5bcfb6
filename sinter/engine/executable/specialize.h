#pragma once
// A program at one tuple of sizes.
#include <optional>
#include <span>

#include "sinter/engine/executable.h"

namespace sinter {

struct Specialized {
  std::optional<Graph> graph;  // absent where the program's own is already what is asked for
  // Frozen inputs and tensors that decompositions brought along; they follow the program's inputs.
  TensorList captured;
};

// Whether some size is known only once the data is: such a program has no specialised form.
bool depends_on_data(const Program& program);

// Where the graph's values are: a device if any is there. `is_on_one_device`: whether all are.
Device device_of(const Graph& graph);
bool is_on_one_device(const Graph& graph);

// Whether a plan can be made of the program: no size depends on data, and all memory is on one device.
bool is_plannable(const Program& program);

// The program's graph with every size a number and composite ops spelled out, but for those that a template takes.
Specialized specialize(const Program& program, std::span<const int64_t> sizes);

}  // namespace sinter
