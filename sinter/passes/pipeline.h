#pragma once
// The passes in their order, and the driver that runs a list of them: it verifies the graph after each, times each, and
// says under SINTER_LOGS=passes what each changed.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sinter/passes/decompose.h"
#include "sinter/passes/fuse.h"
#include "sinter/passes/nest.h"
#include "sinter/passes/recompute.h"
#include "sinter/passes/stream_rows.h"

namespace sinter {

// A pass by the name it is skipped by.
struct Pass {
  std::string_view name;
  std::function<Graph(const Graph&)> run;
  // Whether it can change the graph beyond dropping what nobody needs; where it cannot, it is not run.
  std::function<bool(const Graph&)> has_work = {};
  // Whether the target takes what it makes; where not, it is left out.
  std::function<bool(const Graph&)> is_wanted = {};
  // What of it is skipped by itself, as <name>.<part>.
  std::vector<std::string_view> parts = {};
};

// A graph that a pass has just made: where tests plant faults (base/planted.h).
struct PassOutcome {
  std::string_view pass;
  Graph& graph;
};

struct PassReport {
  std::string_view name;
  size_t nodes_before = 0, nodes_after = 0;
  double seconds = 0;
  bool changed = false;
};

struct PipelineOptions {
  // Passes and parts of passes left out, by name; SINTER_SKIP_PASSES=fold,fuse.inline adds to it. An unknown name is an
  // Error.
  std::vector<std::string> skip = {};
  DecomposeOptions decompose = {};
  // Of a target that runs groups of ops as kernels: whether it does so with this graph. Ops are grouped (fuse, nest) only
  // there.
  std::function<bool(const Graph&)> takes_kernels = {};
  RecomputeOptions recompute = {};
  StreamOptions stream = {};
  FuseOptions fuse = {};
  NestOptions nest = {};
  // Told the graph's text after each pass that ran.
  std::function<void(std::string_view pass, const std::string& text)> on_stage = {};
};

// All passes, in order. Those that group ops come last; the second list is of these alone.
std::vector<Pass> all_passes(const PipelineOptions& options = {});
std::vector<Pass> grouping_passes(const PipelineOptions& options);

// Runs the passes one after another; what each did is appended to `reports`, if given. Skipped passes have no report.
Graph run_passes(Graph graph, std::span<const Pass> passes, const PipelineOptions& options = {},
                 std::vector<PassReport>* reports = nullptr);
// The same with all passes.
Graph run_passes(Graph graph, const PipelineOptions& options = {}, std::vector<PassReport>* reports = nullptr);

}  // namespace sinter
