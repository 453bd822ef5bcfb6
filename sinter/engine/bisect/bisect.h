#pragma once
// Which pass, kernel or plan makes a program give other results than its captured graph: found by taking the way of the
// compiler in steps and comparing each with the referee.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/function_ref.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {

struct BisectOptions {
  bool slower_than_eager = false;  // looks for kernels that take longer than their ops one by one, not for wrong ones
  bool backward = false;           // also the gradients: backward() is called on the sum of the results
  double seconds = 60;             // for making what was found smaller
  // Told what is being done.
  std::function<void(const std::string& text)> on_progress = {};
};

struct Bisection {
  enum class Fault : uint8_t {
    kNone,    // the results agree
    kPass,    // a pass makes another program of the graph
    kKernel,  // a kernel computes other than its ops
    kPlan,    // graph and kernels are right, the results are not: memory is used twice
    kSlow     // a kernel is slower than its ops one by one
  };
  Fault fault = Fault::kNone;
  std::string program;   // "f0@main.cpp:3.0"
  std::string culprit;   // the pass, or the kernel
  std::string how;       // "wrong", "crashes", "fails", "hangs", "slow"; where nothing is found "right" or "fast"
  std::string stage;     // of a kernel: "compiler", "schedule", "lowering", "template"; empty: not told apart
  std::string ops, where;
  std::string evidence;  // the values, the signal, the message, the times
  std::string graph;     // what is left of the graph, as `sinter run` reads it
  std::string source;    // the same as a C++ program
  int64_t ops_left = 0;

  // For people, and as a JSON object.
  std::string text() const;
  std::string json() const;
};

namespace bisection {

// Makes the call, op by op, and looks into the first of its programs in which something is found.
Bisection bisect(FunctionRef<void()> call, const BisectOptions& options = {});

// --- graphs given as text, run: what the programs that a bisection writes consist of
// The results of the graph: compiled as compile() would ("sinter"), or by another backend.
TensorList run_text(std::string_view graph, const std::vector<TensorArg>& inputs, const std::string& backend = "sinter");

// What a run of the graph takes, compiled and op by op: medians of runs that take turns.
struct Speed {
  double compiled = 0, eager = 0;
};
Speed time_text(std::string_view graph, const std::vector<TensorArg>& inputs);

}  // namespace bisection

}  // namespace sinter
