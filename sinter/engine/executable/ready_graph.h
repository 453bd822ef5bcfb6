#pragma once
// A captured graph made ready to be planned: simplified by the passes, its ops grouped into kernels. The outcome is kept in
// the store, so that a process that captures what was captured before goes straight to planning.
#include "sinter/engine/executable.h"
#include "sinter/passes/pipeline.h"
#include "sinter/runtime/code_store.h"

namespace sinter {

// The facts of the device that the graph's values are on.
Target target_of(const Graph& graph);

// The pipeline for the backend "sinter": ops are grouped into kernels where a plan can be made of the graph, whose symbolic
// sizes these are. Ops and contractions that kernels of the target take whole stay whole; that is target_of the graph.
PipelineOptions planning_pipeline(const Target& target, std::vector<std::string> symbols = {});

// Runs the passes over the program's graph; Program::grouped then says whether a plan can be made of it. `options` is a
// planning_pipeline of the program. Nothing is taken from the store where somebody watches the passes (SINTER_LOGS,
// PipelineOptions::on_stage), nor where the graph has ops that users registered: what these do is no part of the key.
StoredGraph make_ready_graph(Program& program, const PipelineOptions& options,
                           const runtime::CodeStore& store = runtime::process_store());
// Gives the program the graph that is stored there; false when it is gone or not understood.
bool load_ready_graph(Program& program, const StoredGraph& stored,
                      const runtime::CodeStore& store = runtime::process_store());

// Whether somebody looks at what the passes do, under SINTER_LOGS or by being alive on this thread; and the passes that
// SINTER_SKIP_PASSES leaves out.
bool passes_are_watched();
class PassWatch {
 public:
  PassWatch();
  ~PassWatch();
  PassWatch(const PassWatch&) = delete;
};
std::string skipped_passes();
// The program's graph after the passes, which SINTER_LOGS=graph shows.
Graph run_all_passes(Program& program, const PipelineOptions& options);
// The passes that group ops into kernels, over a graph that has been through the others.
Graph group_kernels(Graph graph);

// --- the text that is stored
// As Graph::text, with the user's lines as numbers of `lines`, which grows.
std::string stored_text(const Graph& graph, std::vector<std::string>& lines);
// The graph of such a text; an Error where it is none.
Graph stored_graph(std::string_view text, const std::vector<std::string>& lines);

}  // namespace sinter
