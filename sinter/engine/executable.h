#pragma once
// Executable: a graph made ready to run, made by a backend (engine/backend.h).
#include <functional>
#include <memory>
#include <string>
#include <span>
#include <vector>

#include "sinter/graph/graph.h"

namespace sinter {

struct PlanReport;

// What is to be made ready.
struct Program {
  Graph graph;
  // The symbolic sizes of the graph, in the order in which `run` is told their values.
  std::vector<std::string> symbols;
  // For each output the graph input in whose memory it belongs (an argument that the program changes), or -1: a tensor
  // of its own. Every other output is fresh memory, even when it equals an input or another output.
  std::vector<int> writes;
  std::string name;  // for profiles and logs
  // By input, or empty: the tensor that it is in every call, whose values do not change; undefined for others.
  std::vector<Tensor> frozen = {};
  // Time to spend on each choice between several candidates for a step, when it is first met; 0: none are tried.
  double tune_seconds = 0;
  // On a GPU: the steps of a call are recorded once and launched as one graph.
  bool records = false;
  // A kernel that a toolchain refuses is an error; else it falls apart into smaller ones, with a warning.
  bool strict = false;
  // The graph's ops are grouped into kernels already (engine/executable/ready_graph.h).
  bool grouped = false;

  int written_into(size_t output) const { return output < writes.size() ? writes[output] : -1; }
};

// Where the graph of a program is kept when it is ready to be planned (engine/executable/ready_graph.h), and the user's
// lines of the captured one.
struct StoredGraph {
  std::string key;  // empty: it is not
  std::vector<std::string> lines;
};

class Executable {
 public:
  virtual ~Executable() = default;
  // One operand a graph input: a tensor, or a number where the input's type is weak. `outputs` has one place a graph
  // output; a written one becomes the input itself. Called from any number of threads at once.
  virtual void run(std::span<const TensorArg> inputs, std::span<const int64_t> sizes, std::span<Tensor> outputs) = 0;
  // What a call on such operands needs and does not have yet (a plan, kernels), as work for any thread; empty: nothing.
  // Nothing of the program runs in it. Of the operands only types, sizes and strides count: it keeps none of them, and
  // where they have memory, that tells which of them overlap.
  virtual std::function<void()> preparation(std::span<const TensorArg> inputs, std::span<const int64_t> sizes) {
    (void)inputs, (void)sizes;
    return {};
  }
  // The plan, for people: one line a step.
  virtual std::string text() const = 0;
  // Bytes of temporary memory of the largest call so far; 0 where the backend does not plan memory.
  virtual int64_t arena_bytes() const { return 0; }
  // What it does in numbers (engine/report.h), for the sizes of the latest call; null where the backend does not plan.
  virtual std::shared_ptr<const PlanReport> report() const { return nullptr; }
};

// Makes the program ready with the backend of this name; an Error lists the known ones.
std::shared_ptr<Executable> compile_program(Program program, const std::string& backend = "sinter");

}  // namespace sinter
