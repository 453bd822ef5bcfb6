#pragma once
// A graph with operands, run as the compiler would have it and compared with the referee: the question that bisecting and
// shrinking ask again and again.
#include <map>
#include <optional>

#include "sinter/engine/bisect/guarded.h"
#include "sinter/engine/bisect/witness.h"
#include "sinter/engine/executable.h"
#include "sinter/engine/referee/compare.h"
#include "sinter/engine/referee/whole.h"

namespace sinter::bisection {

struct TrialInput {
  TensorArg value;
  std::string maker = {};  // C++ that makes it; empty: its elements are written down
};

struct Trial {
  std::shared_ptr<const Graph> graph;
  std::vector<TrialInput> inputs;
  std::vector<std::string> symbols = {};
  std::vector<int64_t> sizes = {};
  std::vector<int> writes = {};

  std::vector<referee::Known> known_inputs() const;
  std::map<std::string, int64_t> known_sizes() const;
  bool on_gpu() const;
};

Trial trial_of(const WitnessedCall& call);
// With numbers for symbolic sizes; those that the data decides stay.
Trial with_numbers(const Trial& trial);

// How kernels are made, where that is not as usual.
struct Variant {
  bool op_by_op = false;      // no kernel of several ops
  bool gxx = false;           // compiled by g++
  bool unvectorised = false;  // one element at a time
};

struct Verdict {
  enum class Kind : uint8_t { kRight, kWrong, kError, kCrashed, kTimedOut };
  Kind kind = Kind::kRight;
  std::string text;
  std::vector<std::string> notes;  // the passes that were done, then the steps begun: "pass simplify", "step elu_add"
};

// What the graph gives.
referee::Whole expected(const Trial& trial);

// Runs the passes, compiles, runs and compares; on a CPU in a child process.
Verdict judge(const Trial& trial, const referee::Whole& want, const Variant& variant = {}, double seconds = 60);
inline Verdict judge(const Trial& trial, const Variant& variant = {}) { return judge(trial, expected(trial), variant); }

// The graph after each pass.
struct Stage {
  std::string pass;
  std::string text;
};
std::vector<Stage> stages_of(const Trial& trial);
// As it is planned, with the user's lines.
Graph planned_graph(const Trial& trial);
// How what the graph of a stage gives differs from what it should; nothing where it does not.
std::optional<referee::Mismatch> difference(const std::string& stage, const Trial& trial, const referee::Whole& want);

// The compiled program, as compile() makes it of the captured graph. `on_pass` is told of each pass once it is done.
std::shared_ptr<Executable> compile_trial(const Trial& trial, const std::function<void(std::string_view pass)>& on_pass = {});
// Its results on copies of the operands that it changes.
TensorList run(Executable& executable, const Trial& trial);

}  // namespace sinter::bisection
