#include "sinter/capture/build.h"

#include <algorithm>
#include <set>

#include "sinter/base/debug_files.h"
#include "sinter/base/log.h"
#include "sinter/engine/bisect/witness.h"
#include "sinter/engine/cost.h"
#include "sinter/engine/executable/background.h"
#include "sinter/engine/executable/ready_graph.h"
#include "sinter/engine/referee/checking.h"
#include "sinter/graph/rewrite.h"
#include "sinter/passes/partition.h"

namespace sinter::capture {

namespace {

// For each output the operand in whose memory it belongs.
std::vector<int> writes_of(const Segment& segment) {
  std::vector<int> writes;
  for (auto& output : segment.outputs) {
    int into = -1;
    for (size_t i = 0; output.written && i < segment.inputs.size(); ++i)
      if (segment.inputs[i].kind == InputSource::Kind::kCell && segment.inputs[i].index == output.cell) into = int(i);
    SINTER_INTERNAL_ASSERT(!output.written || into >= 0, "a written tensor is no operand of its segment");
    writes.push_back(into);
  }
  return writes;
}

// Tensors that the function reaches by itself and leaves as they are, by operand.
std::vector<Tensor> frozen_inputs(const Segment& segment, const std::vector<int>& writes, const CompileOptions& options) {
  std::vector<Tensor> frozen;
  if (!int_option(options, "freeze")) return frozen;
  frozen.resize(segment.inputs.size());
  TracerScope none(nullptr);
  NoGradGuard no_history;
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    auto& input = segment.inputs[i];
    if (input.kind != InputSource::Kind::kCell || std::find(writes.begin(), writes.end(), int(i)) != writes.end()) continue;
    for (auto& [cell, source] : segment.bound)
      if (cell == input.index && source.kind == CellSource::Kind::kCaptured) frozen[i] = in_pairs(source.tensor);
  }
  return frozen;
}

// Gradients that the last segment replaces without having read them are gone before it runs: its own take their memory.
void let_go_of_grads(Segment& segment) {
  std::set<int> used;
  for (auto& input : segment.inputs)
    if (input.kind == InputSource::Kind::kCell) used.insert(input.index);
  for (auto& output : segment.outputs) used.insert(output.cell);
  for (auto& result : segment.results) used.insert(result.cell);
  for (auto& effect : segment.grads) used.insert({effect.leaf_cell, effect.grad.cell});
  for (auto& [cell, source] : segment.bound)
    source.unread = source.kind == CellSource::Kind::kGrad && !used.contains(cell);
  for (auto& effect : segment.grads)
    effect.replaces = std::ranges::none_of(segment.bound, [&](auto& bound) {
      auto& source = bound.second;
      return source.kind == CellSource::Kind::kGrad && source.index == effect.leaf_cell && !source.unread;
    });
}

// Arguments of the last segment that are only read go to its graph without a stop in a cell: every copy of a handle
// counts when a call takes a microsecond.
void bypass_cells(Segment& segment) {
  if (segment.question.kind != Question::Kind::kReturn) return;
  let_go_of_grads(segment);
  std::set<int> kept;
  for (auto& output : segment.outputs) kept.insert(output.cell);
  for (auto& result : segment.results) kept.insert(result.cell);
  for (auto& effect : segment.grads) kept.insert({effect.leaf_cell, effect.grad.cell});
  for (auto& [cell, source] : segment.bound)
    if (source.kind == CellSource::Kind::kGrad) kept.insert(source.index);
  for (auto& [cell, source] : segment.bound) {
    if (source.kind != CellSource::Kind::kArgument || kept.count(cell)) continue;
    source.only_operand = true;
    for (auto& input : segment.inputs)
      if (input.kind == InputSource::Kind::kCell && input.index == cell) input.argument = source.index;
  }
}

// The gradients of a joint graph as a graph of their own; `reads` tells which of the program's operands it takes.
Graph gradients_of(const Graph& joint, size_t operands, size_t results, std::vector<int>& reads) {
  std::vector<bool> needed(joint.nodes().size());
  for (size_t i = results; i < joint.outputs().size(); ++i) needed[size_t(joint.outputs()[i].node->id)] = true;
  for (auto node = joint.nodes().rbegin(); node != joint.nodes().rend(); ++node)
    if (needed[size_t(node->id)])
      for (auto& v : node->inputs) needed[size_t(v.node->id)] = true;
  Graph out;
  std::vector<const Node*> copies(joint.nodes().size());
  for (size_t i = 0; i < joint.inputs().size(); ++i) {
    const Node& input = *joint.inputs()[i].node;
    if (i < operands && !needed[size_t(input.id)]) continue;
    if (i < operands) reads.push_back(int(i));
    copies[size_t(input.id)] = out.add_input(input.types[0], input.name).node;
  }
  auto values = [&](std::span<const Value> old) {
    std::vector<Value> now;
    for (auto& v : old) now.push_back(copies[size_t(v.node->id)]->result(v.index));
    return now;
  };
  for (auto& node : joint.nodes())
    if (needed[size_t(node.id)] && node.op->kind != OpKind::kInput)
      copies[size_t(node.id)] = &out.add_typed(*node.op, values(node.inputs), node.attrs, node.types, node.where);
  out.set_outputs(values(std::span(joint.outputs()).subspan(results)));
  return out;
}

// What the executables of a segment have in common.
struct Making {
  const SizeTable& sizes;
  const std::vector<int>& takes;
  const CompileOptions& options;
  const std::shared_ptr<BackgroundTasks>& tasks;
  bool op_by_op;
};

// All of a program but its graph.
Program program_of(std::vector<int> writes, const SizeTable& sizes, const std::vector<int>& takes,
                   const CompileOptions& options, const std::string& label, std::vector<Tensor> frozen) {
  Program program{.graph = {}, .symbols = {}, .writes = std::move(writes), .name = label, .frozen = std::move(frozen)};
  for (int place : takes) program.symbols.push_back(sizes.symbols()[size_t(place)].name);
  if (tunes(options.mode)) program.tune_seconds = double(int_option(options, "autotune_budget_ms")) / 1000;
  program.strict = int_option(options, "strict") != 0;
  program.records = options.mode == Mode::kReduceOverhead || options.mode == Mode::kMaxAutotune;
  return program;
}

bool is_checked(const CompileOptions& options) { return int_option(options, "check") > 0; }

// `captured`: the text of the program's graph before the passes, where calls are to be checked.
std::shared_ptr<Executable> executable_of(Program program, const CompileOptions& options, std::string captured) {
  CapturedProgram original{program.name, std::move(captured), program.symbols, program.writes};
  auto executable = compile_program(std::move(program), options.backend);
  if (is_debugged()) write_debug_file(original.name, "plan", executable->text());
  if (!is_checked(options)) return executable;
  CheckOptions check{int_option(options, "check"), int_option(options, "throw") != 0};
  return make_checking(std::move(executable), std::move(original), check);
}

// Of the graph as recorded; `stored` is told where the store has it.
std::shared_ptr<Executable> compile_graph(Program program, const CompileOptions& options, StoredGraph* stored = nullptr) {
  TracerScope none(nullptr);
  if (bisection::Witness::current()) return bisection::Witness::watch(std::move(program));
  bool plans = options.backend == "sinter";
  PipelineOptions pipeline = plans ? planning_pipeline(target_of(program.graph), program.symbols) : PipelineOptions();
  pipeline.recompute.budget = activation_memory(options);
  if (is_debugged())
    pipeline.on_stage = [label = program.name](std::string_view pass, const std::string& text) {
      write_debug_file(label, pass, text);
    };
  std::string captured = is_checked(options) ? program.graph.text(true) : "";
  if (!plans) {
    program.graph = run_all_passes(program, pipeline);
  } else {
    StoredGraph place = make_ready_graph(program, pipeline);
    if (stored) *stored = std::move(place);
  }
  return executable_of(std::move(program), options, std::move(captured));
}

std::shared_ptr<Executable> make_ready(Graph graph, std::vector<int> writes, const Making& making, const std::string& label,
                                       std::vector<Tensor> frozen = {}, StoredGraph* stored = nullptr) {
  auto& options = making.options;
  Program program = program_of(std::move(writes), making.sizes, making.takes, options, label, std::move(frozen));
  program.graph = std::move(graph);
  if (!making.tasks && !making.op_by_op) return compile_graph(std::move(program), options, stored);
  TracerScope none(nullptr);
  Program plain{.graph = drop_dead_nodes(program.graph), .symbols = program.symbols, .writes = program.writes, .name = label};
  if (making.op_by_op) return compile_program(std::move(plain), "eager");
  auto later = std::make_shared<Program>(std::move(program));
  auto compile = [later, options] { return compile_graph(std::move(*later), options); };
  return make_background(std::move(plain), std::move(compile), making.tasks);
}

}  // namespace

std::shared_ptr<Segment> build(Recorder& recorder, Draft& draft, const SizeTable& sizes, const CompileOptions& options,
                               const std::string& label, const std::shared_ptr<BackgroundTasks>& tasks, bool op_by_op) {
  draft.segment.text = draft.graph.text(true);
  draft.segment.places = sizes.places();
  for (size_t place = 0; place < sizes.symbols().size(); ++place)
    if (sizes.symbols()[place].value >= 0) draft.segment.takes.push_back(int(place));
  for (auto& node : draft.graph.nodes())
    draft.segment.ops += node.op->kind != OpKind::kInput && node.op->kind != OpKind::kScalar;
  log(LogTopic::kGraph, "{} as captured:\n{}", label, draft.segment.text);
  write_debug_file(label, "captured", draft.segment.text);

  size_t forward_inputs = draft.graph.inputs().size(), forward_outputs = draft.graph.outputs().size();
  bool differentiable = false;
  for (auto& output : draft.segment.outputs) differentiable = differentiable || output.differentiable;
  std::vector<int> writes = writes_of(draft.segment);
  if (!differentiable) {
    bool idle = forward_outputs == 0 && draft.segment.draws == 0;
    auto segment = std::make_shared<Segment>(std::move(draft.segment));
    bypass_cells(*segment);
    auto frozen = frozen_inputs(*segment, writes, options);
    if (!idle)
      segment->run = make_ready(std::move(draft.graph), writes, {sizes, segment->takes, options, tasks, op_by_op}, label,
                                std::move(frozen), &segment->stored);
    return segment;
  }
  Joint joint = recorder.differentiate(draft);
  PartitionOptions cut;
  cut.hint = [&](const Dim& d) { return sizes.value(d).value_or(64); };
  for (int into : writes)
    if (into >= 0) cut.overwritten.push_back(size_t(into));
  cut.recompute = {activation_memory(options), least_seconds};
  forward_inputs = draft.segment.inputs.size();
  Partition parts = partition(draft.graph, forward_inputs, forward_outputs, cut);
  auto segment = std::make_shared<Segment>(std::move(draft.segment));
  bypass_cells(*segment);
  Making making{sizes, segment->takes, options, tasks, op_by_op};
  segment->saved_outputs = parts.forward.outputs().size() - forward_outputs;
  auto backward = std::make_shared<Backward>();
  backward->targets = joint.targets;
  backward->tangents = joint.tangents;
  backward->follows = joint.follows;
  backward->meet = joint.meet;
  backward->failures = joint.failures;
  for (auto& [symbol, place] : segment->places) {
    auto taken = std::ranges::find(segment->takes, place);
    if (taken != segment->takes.end()) backward->sizes[symbol] = int(taken - segment->takes.begin());
  }
  if (std::ranges::any_of(joint.failures, &std::string::empty)) {
    for (auto& saved : parts.saved) backward->saved.push_back({saved.input, saved.output});
    backward->text = parts.backward.text(true);
    for (auto& input : parts.backward.inputs()) backward->operands.push_back(input.type());
    backward->whole = gradients_of(draft.graph, forward_inputs, forward_outputs, backward->reads);
    backward->make = [sizes, takes = segment->takes, options, tasks, op_by_op, label](Graph part, bool in_steps) {
      return make_ready(std::move(part), {}, {sizes, takes, options, tasks, op_by_op || in_steps}, label + ".backward");
    };
    backward->run = make_ready(std::move(parts.backward), {}, making, label + ".backward");
  }
  segment->backward = std::move(backward);
  segment->run = make_ready(std::move(parts.forward), writes, making, label);
  return segment;
}

std::shared_ptr<Executable> load_executable(const Segment& segment, const SizeTable& sizes, const CompileOptions& options,
                                            const std::string& label) {
  std::vector<int> writes = writes_of(segment);
  Program program = program_of(writes, sizes, segment.takes, options, label, frozen_inputs(segment, writes, options));
  return load_ready_graph(program, segment.stored) ? executable_of(std::move(program), options, segment.text) : nullptr;
}

}  // namespace sinter::capture
