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

// Whether some size of the graph is none of the symbols, so that it is known only once the data is.
bool depends_on_data(const Graph& graph, std::span<const std::string> symbols);

// Where the graph's values are: a device if any is there. `is_on_one_device`: whether all are.
Device device_of(const Graph& graph);
bool is_on_one_device(const Graph& graph);

// Whether a plan can be made of a program with this graph and these symbols: no size depends on data, and all memory is on
// one device.
bool is_plannable(const Graph& graph, std::span<const std::string> symbols);

// The program's graph with every size a number and composite ops spelled out, but for those that a template takes.
Specialized specialize(const Program& program, std::span<const int64_t> sizes);

}  // namespace sinter
