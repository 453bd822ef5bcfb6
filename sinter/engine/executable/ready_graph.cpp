#include "sinter/engine/executable/ready_graph.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

#include "sinter/base/build_id.h"
#include "sinter/base/error.h"
#include "sinter/base/log.h"
#include "sinter/base/planted.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/cost.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/executable/specialize.h"
#include "sinter/graph/subgraph.h"
#include "sinter/runtime/cpu/cpu_features.h"

namespace sinter {

namespace {

constexpr std::string_view kLineMark = "  // ";
// What the text begins with.
constexpr char kGrouped = '+', kPlain = '-';

bool has_registered_ops(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->name.find("::") != std::string_view::npos; });
}

// What the outcome depends on beside the code of Sinter: the graph, whose text tells which of its ops share a line, what is
// left out, and which templates there are.
std::string key_of(const Graph& graph, const std::string& text, const PipelineOptions& options) {
  std::string skipped = skipped_passes();
  for (auto& name : options.skip) skipped += "," + name;
  return runtime::make_key({{"kind", "graph"},
                            {"captured", runtime::text_part(text)},
                            {"skipped", skipped},
                            {"activation_memory", std::to_string(options.recompute.budget)},
                            {"device", engine_of(device_of(graph)).kind(graph)},
                            {"target", runtime::host_target().name},
                            {"sinter", build_id()}});
}

}  // namespace

static thread_local int watches = 0;

PassWatch::PassWatch() { ++watches; }
PassWatch::~PassWatch() { --watches; }

bool passes_are_watched() {
  return watches > 0 || log_enabled(LogTopic::kGraph) || log_enabled(LogTopic::kPasses) || log_enabled(LogTopic::kFusion);
}

std::string skipped_passes() {
  const char* names = std::getenv("SINTER_SKIP_PASSES");
  return names ? names : "";
}

std::string stored_text(const Graph& graph, std::vector<std::string>& lines) {
  std::unordered_map<std::string, size_t> places;
  for (size_t i = 0; i < lines.size(); ++i) places.try_emplace(lines[i], i);
  std::string text = graph.text(), out;
  size_t at = 0;
  for (auto& node : graph.nodes()) {
    size_t end = text.find('\n', at);
    out.append(text, at, end - at);
    if (!node.where.empty()) {
      auto [place, fresh] = places.try_emplace(node.where, lines.size());
      if (fresh) lines.push_back(node.where);
      out.append(kLineMark).append(std::to_string(place->second));
    }
    out += '\n';
    at = end + 1;
  }
  return out.append(text, at);
}

Graph stored_graph(std::string_view text, const std::vector<std::string>& lines) {
  std::string with_lines;
  with_lines.reserve(text.size() + text.size() / 4);
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t mark = line.rfind(kLineMark), number = 0;
    if (mark != std::string_view::npos) {
      const char* last = line.data() + line.size();
      auto [stop, error] = std::from_chars(line.data() + mark + kLineMark.size(), last, number);
      if (error == std::errc() && stop == last) {
        check(number < lines.size(), "a stored graph names line {} of {}", number, lines.size());
        with_lines.append(line.substr(0, mark + kLineMark.size())).append(lines[number]).append("\n");
        continue;
      }
    }
    with_lines.append(line).append("\n");
  }
  SubGraphMemo memo;
  return Graph::parse(with_lines);
}

Graph run_all_passes(Program& program, const PipelineOptions& options) {
  Graph graph = run_passes(std::move(program.graph), options);
  if (log_enabled(LogTopic::kGraph)) log(LogTopic::kGraph, "{} after the passes:\n{}", program.name, graph.text());
  return graph;
}

Target target_of(const Graph& graph) { return engine_of(device_of(graph)).target_for(graph); }

PipelineOptions planning_pipeline(const Target& target, std::vector<std::string> symbols) {
  PipelineOptions options;
  options.decompose.target = options.fuse.target = target;
  options.recompute.seconds = least_seconds;
  // A launch costs what a kernel of many elements does. A norm in front of each product of a decode step gained 2.8 us over 2048
  // elements, and lost 2.3 over 4096 and 4.6 over eight rows of 2048 (H200, Llamas of 1 and 8 billion parameters).
  if (target.gpu)
    options.nest = {.prologue_elements = 3072, .small = 1 << 17, .small_map = 1 << 22, .gathers = true, .most_siblings = 32,
                    .most_operands = 256};
  options.takes_kernels = [symbols = std::move(symbols)](const Graph& graph) { return is_plannable(graph, symbols); };
  return options;
}

Graph group_kernels(Graph graph) {
  PipelineOptions options = planning_pipeline(target_of(graph));
  options.takes_kernels = [](const Graph&) { return true; };
  return run_passes(std::move(graph), grouping_passes(options), options);
}

bool load_ready_graph(Program& program, const StoredGraph& stored, const runtime::CodeStore& store) {
  StageTimer timer(CompileStage::kPasses);
  auto text = store.load(stored.key);
  if (!text || text->empty()) return false;
  try {
    program.graph = stored_graph(std::string_view(*text).substr(1), stored.lines);
    program.grouped = text->front() == kGrouped;
    return true;
  } catch (const Error& error) {
    warn_once("stored graph", "the stored graph of {} is not understood and made anew: {}", program.name, error.message());
    return false;
  }
}

StoredGraph make_ready_graph(Program& program, const PipelineOptions& options, const runtime::CodeStore& store) {
  StoredGraph stored;
  if (!build_id().empty() && !has_registered_ops(program.graph) && !is_planted<PassOutcome>()) {
    StageTimer timer(CompileStage::kPasses);
    std::string text = stored_text(program.graph, stored.lines);
    stored.key = key_of(program.graph, text, options);
    if (!options.on_stage && !passes_are_watched() && load_ready_graph(program, stored, store)) return stored;
  }
  program.graph = run_all_passes(program, options);
  program.grouped = is_plannable(program.graph, program.symbols);
  if (stored.key.empty()) return stored;
  auto lines = stored.lines;
  std::string text = (program.grouped ? kGrouped : kPlain) + stored_text(program.graph, lines);
  if (lines.size() != stored.lines.size()) return {};  // a line that the captured graph does not have: nobody could tell it
  store.note_miss(stored.key, program.name);
  store.save(stored.key, text, program.name);
  return stored;
}

}  // namespace sinter
