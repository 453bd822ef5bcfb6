#pragma once
// Runs the graph of an exported program, node by node, through Sinter's public functions: eagerly, or recorded by whoever
// captures the caller.
#include <memory>
#include <string>
#include <vector>

#include "sinter/interop/program.h"

namespace sinter::interop {

class GraphRunner {
 public:
  // An Error that names every function that Sinter has not, and how often the program calls it; `file` stands for it there, and
  // `reader` for who reads it.
  GraphRunner(const ProgramGraph& graph, const std::string& file, const char* reader = "load_exported");

  // One value for each input of the graph, to one for each output. What the program makes lies on `device`, whatever device it
  // was exported on.
  ValueList run(ValueList inputs, Device device) const;

 private:
  struct Prepared;
  std::shared_ptr<const Prepared> graph_;
};

// A function that a program calls, how often, those of nested graphs counted in, and whether Sinter has it.
struct CalledFunction {
  std::string name;
  int64_t count = 0;
  bool is_known = false;
};
std::vector<CalledFunction> called_functions(const ProgramGraph& graph);

}  // namespace sinter::interop
