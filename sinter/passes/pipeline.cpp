#include "sinter/passes/pipeline.h"

#include <chrono>
#include <cstdlib>
#include <set>

#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/base/stage_times.h"
#include "sinter/graph/rewrite.h"
#include "sinter/graph/text_scan.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/align_products.h"
#include "sinter/passes/common_subexpressions.h"
#include "sinter/passes/dead_code.h"
#include "sinter/passes/fold.h"
#include "sinter/passes/functionalise.h"
#include "sinter/passes/simplify.h"
#include "sinter/passes/split_reductions.h"
#include "sinter/tensor/tracer.h"

namespace sinter {

namespace {

using Names = std::set<std::string, std::less<>>;

Names skipped_names(const PipelineOptions& options) {
  Names names(options.skip.begin(), options.skip.end());
  if (const char* listed = std::getenv("SINTER_SKIP_PASSES"))
    for (auto name : split_list(listed)) names.emplace(name);
  return names;
}

}  // namespace

std::vector<Pass> grouping_passes(const PipelineOptions& options) {
  Names skip = skipped_names(options);
  auto keeps = [&](std::string_view part) { return !skip.contains(part); };
  FuseOptions fusing = options.fuse;
  fusing.inlines = fusing.inlines && keeps("fuse.inline");
  fusing.siblings = fusing.siblings && keeps("fuse.siblings");
  if (!keeps("fuse.products")) {
    fusing.target.products = {};
    fusing.target.convolutions = {};
  }
  NestOptions nesting = options.nest;
  nesting.prologues = nesting.prologues && keeps("nest.prologues");
  nesting.siblings = nesting.siblings && keeps("nest.siblings");
  auto wanted = [takes = options.takes_kernels](const Graph& graph) { return takes && takes(graph); };
  return {
      {"recompute", [less = options.recompute](const Graph& graph) { return recompute(graph, less); }, has_flow, wanted},
      {"stream_rows",
       [large = options.stream](const Graph& graph) { return stream_rows(graph, large); },
       [large = options.stream](const Graph& graph) { return has_large_products(graph, large); },
       wanted},
      {"align_products",
       [fusing](const Graph& graph) { return align_products(graph, fusing); },
       [fusing](const Graph& graph) { return has_unaligned_products(graph, fusing); },
       wanted},
      {"split_reductions",
       [fusing](const Graph& graph) { return split_reductions(graph, fusing); },
       [fusing](const Graph& graph) { return has_long_reductions(graph, fusing); },
       wanted},
      {"fuse",
       [fusing](const Graph& graph) { return fuse(graph, fusing); },
       {},
       wanted,
       {"inline", "siblings", "products"}},
      {"nest",
       [nesting](const Graph& graph) { return nest_kernels(graph, nesting); },
       has_kernels,
       wanted,
       {"prologues", "siblings"}},
  };
}

std::vector<Pass> all_passes(const PipelineOptions& options) {
  std::vector<Pass> passes{
      {"functionalise", functionalise, has_writes},
      {"decompose", [keep = options.decompose](const Graph& graph) { return decompose(graph, keep); },
       [keep = options.decompose](const Graph& graph) { return has_composites(graph, keep); }},
      {"fold", fold, has_constant_nodes},
      {"simplify", simplify},
      {"common_subexpressions", common_subexpressions, has_exchanged_operands},
      {"dead_code", dead_code, [](const Graph&) { return false; }},
  };
  for (auto& pass : grouping_passes(options)) passes.push_back(std::move(pass));
  return passes;
}

namespace {

// The names to skip. Whatever list runs, a name is right when it is one of all passes or of that list.
Names skipped(std::span<const Pass> passes, const PipelineOptions& options) {
  Names known, names = skipped_names(options);
  auto add = [&](const Pass& pass) {
    known.emplace(pass.name);
    for (auto part : pass.parts) known.insert(format("{}.{}", pass.name, part));
  };
  for (auto& pass : all_passes()) add(pass);
  for (auto& pass : passes) add(pass);
  for (auto& name : names) {
    if (known.contains(name)) continue;
    std::string list;
    for (auto& each : known) list += (list.empty() ? "" : ", ") + each;
    throw_error(format("no pass is called '{}'; there are {}", name, list));
  }
  return names;
}

void log_change(const PassReport& report, const Graph& graph) {
  if (!log_enabled(LogTopic::kPasses)) return;
  if (report.changed)
    log(LogTopic::kPasses, "{}: {} → {} nodes\n{}", report.name, report.nodes_before, report.nodes_after,
        graph.text());
  else
    log(LogTopic::kPasses, "{}: (unchanged)", report.name);
}

}  // namespace

Graph run_passes(Graph graph, std::span<const Pass> passes, const PipelineOptions& options,
                 std::vector<PassReport>* reports) {
  StageTimer timer(CompileStage::kPasses);
  // A capture in progress is not asked about sizes of a graph that exists already.
  TracerScope untraced(nullptr);
  auto skip = skipped(passes, options);
  for (auto& pass : passes) {
    if (skip.contains(pass.name) || (pass.is_wanted && !pass.is_wanted(graph))) continue;
    auto begin = std::chrono::steady_clock::now();
    PassReport report{pass.name, graph.nodes().size(), graph.nodes().size()};
    bool works = !pass.has_work || pass.has_work(graph), ran = works || has_dead_nodes(graph);
    if (ran) {
      Graph next = works ? pass.run(graph) : drop_dead_nodes(graph);
      PassOutcome outcome{pass.name, next};
      let_plant(outcome);
      report.nodes_after = next.nodes().size();
      report.changed = report.nodes_before != report.nodes_after || graph.hash() != next.hash();
      graph = std::move(next);
    }
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (ran) {
      graph.verify();
      verify_fused(graph);
    }
    log_change(report, graph);
    if (options.on_stage) options.on_stage(pass.name, graph.text());
    if (reports) reports->push_back(report);
  }
  return graph;
}

Graph run_passes(Graph graph, const PipelineOptions& options, std::vector<PassReport>* reports) {
  return run_passes(std::move(graph), all_passes(options), options, reports);
}

}  // namespace sinter
