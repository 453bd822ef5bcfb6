#include "sinter/engine/executable/planner.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/executable/eager_step.h"
#include "sinter/engine/executable/plan_geometry.h"
#include "sinter/engine/executable/tune.h"
#include "sinter/passes/split_kernels.h"

namespace sinter {

Planner::Planner(const Program& program, const Specialized& specialized, const PlanOptions& options)
    : program_(program),
      options_(options),
      specialized_(specialized),
      graph_(specialized_.graph ? *specialized_.graph : program.graph),
      end_(int(graph_.nodes().size())),
      operands_(graph_.nodes().size()),
      last_use_(graph_.nodes().size()),
      waits_(graph_.nodes().size(), false),
      written_(graph_.inputs().size(), false) {
  for (size_t j = 0; j < graph_.outputs().size(); ++j) {
    int i = program.written_into(j);
    if (i < 0) continue;
    written_[size_t(i)] = true;
    auto& value = graph_.outputs()[j];
    belongs_into_.try_emplace({value.node, value.index}, i);
  }
}

std::shared_ptr<const Plan> Planner::run() {
  plan_->device = device_of(graph_);
  plan_->strict = program_.strict || runtime::is_strict();
  find_last_uses();
  add_inputs();
  for (auto& node : graph_.nodes())
    if (is_needed(node)) add(node);
  add_outputs();
  place();
  auto outcomes = compile_kernels(to_compile_, program_.name, plan_->device, eager_preparations(*plan_));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    plan_->steps[to_compile_[i].step].code = outcomes[i].step;
    if (outcomes[i].refusal) refused_[to_compile_[i].node] = outcomes[i].refusal;
  }
  if (!refused_.empty()) return std::move(plan_);
  if (options_.tune_seconds > 0) tune(*plan_, options_.tune_seconds);
  plan_->captured = specialized_.captured;
  plan_->name = program_.name;
  plan_->records = program_.records;
  return std::move(plan_);
}

void Planner::find_last_uses() {
  for (auto& node : graph_.nodes()) last_use_[size_t(node.id)].assign(node.types.size(), -1);
  last_read_ = last_use_;
  reads_.assign(graph_.nodes().size(), {end_, -1});
  for (auto& v : graph_.outputs()) {
    last_use(v) = end_;
    reads_[size_t(v.node->id)].last = end_;
  }
  for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it)
    if (is_needed(*it))
      for (auto& v : it->inputs) {
        last_use(v) = std::max(last_use(v), it->id);
        last_read(v) = std::max(last_read(v), it->id);
        bool view = it->op->kind == OpKind::kView;
        Reads& reads = reads_[size_t(v.node->id)];
        reads.first = std::min(reads.first, view ? reads_[size_t(it->id)].first : it->id);
        reads.last = std::max(reads.last, view ? reads_[size_t(it->id)].last : it->id);
      }
}

bool Planner::is_needed(const Node& node) const {
  auto& uses = last_use_[size_t(node.id)];
  return std::any_of(uses.begin(), uses.end(), [](int use) { return use >= 0; });
}

int Planner::add_storage(Storage::Kind kind, int index, int64_t bytes, int now) {
  plan_->storages.push_back({kind, index, {bytes, now, now, 0}});
  return int(plan_->storages.size()) - 1;
}

int Planner::add_slot(Tensor geometry, int storage) {
  plan_->slots.push_back({std::move(geometry), storage});
  return int(plan_->slots.size()) - 1;
}

int Planner::add_slot_of_its_own(const Tensor& geometry, int now) {
  return add_slot(geometry, add_storage(Storage::Kind::kArena, -1, bytes_of(geometry.impl()), now));
}

void Planner::define(Value v, int slot) {
  operands_[size_t(v.node->id)].push_back({.slot = slot});
  Block& block = storage_of(slot).block;
  block.last = std::max(block.last, std::max(last_use(v), v.node->id));
}

void Planner::add_inputs() {
  auto& inputs = graph_.inputs();
  plan_->input_slots.assign(inputs.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& type = inputs[i].type();
    if (type.weak) {
      // The kind of the number takes part in typing; its value is the caller's.
      Scalar like = is_floating(type.dtype) ? Scalar(0.0) : type.dtype == kBool ? Scalar(false) : Scalar(0);
      operands_[size_t(inputs[i].node->id)] = {{.number_input = int(i), .number = like}};
      continue;
    }
    IntList sizes = type.shape.numbers(), strides = contiguous_strides(sizes);
    if (i >= program_.graph.inputs().size())
      strides = specialized_.captured[i - program_.graph.inputs().size()].strides();
    else if (i < options_.input_strides.size() && !options_.input_strides[i].empty())
      strides = options_.input_strides[i];
    check(strides.size() == sizes.size(), "input {} has {} dimensions, the program takes {}", i, strides.size(),
          sizes.size());
    Tensor geometry = geometry_of(type.dtype, sizes, strides, plan_->device);
    int storage = add_storage(Storage::Kind::kInput, int(i), bytes_of(geometry.impl()), -1);
    plan_->input_slots[i] = add_slot(geometry, storage);
    define(inputs[i], plan_->input_slots[i]);
  }
}

void Planner::add(const Node& node) {
  if (node.op->kind == OpKind::kInput) return;
  if (node.op->kind == OpKind::kScalar) {
    operands_[size_t(node.id)] = {{.number = node.attrs.as<ScalarAttrs>().value}};
    return;
  }
  if (node.op->kind == OpKind::kView && waits(node)) return;
  for (auto& v : node.inputs) make_view(*v.node, node.id);
  Step step = begin_step(node);
  if (node.op->kind == OpKind::kView && !add_view(node, step))
    add_computed(node, step);
  else if (node.op->kind != OpKind::kView)
    add_computed(node, step);
  plan_->steps.push_back(std::move(step));
  for (size_t r = 0; r < node.types.size(); ++r) settle(node.result(int(r)));
}

Step Planner::begin_step(const Node& node) const {
  Step step{.op = node.op, .attrs = node.attrs, .where = node.where};
  for (auto& v : node.inputs) step.inputs.push_back(operand(v));
  return step;
}

bool Planner::waits(const Node& node) {
  if (!waits_[size_t(node.inputs[0].node->id)]) {
    int from = operand(node.inputs[0]).slot;
    if (from < 0 || geometry(from).contiguous || alias(*node.op, plan_->slots[size_t(from)].geometry, node.attrs) ||
        !alias(*node.op, row_major(from), node.attrs))
      return false;
    Block& block = storage_of(from).block;
    block.last = std::max(block.last, reads_[size_t(node.id)].first);
  }
  return waits_[size_t(node.id)] = true;
}

void Planner::make_view(const Node& node, int now) {
  if (!waits_[size_t(node.id)]) return;
  waits_[size_t(node.id)] = false;
  make_view(*node.inputs[0].node, now);
  Step step = begin_step(node);
  if (!add_view(node, step)) add_view_of_copy(node, step, now);
  Block& block = storage_of(step.results[0]).block;
  block.last = std::max(block.last, reads_[size_t(node.id)].last);
  plan_->steps.push_back(std::move(step));
}

bool Planner::add_view(const Node& node, Step& step) {
  if (step.inputs[0].slot < 0) return false;
  auto view = alias(*step.op, plan_->slots[size_t(step.inputs[0].slot)].geometry, step.attrs);
  if (!view) return false;
  step.kind = Step::Kind::kView;
  step.results = {add_slot(*view, plan_->slots[size_t(step.inputs[0].slot)].storage)};
  define(node.result(), step.results[0]);
  return true;
}

void Planner::add_view_of_copy(const Node& node, Step& step, int now) {
  int slot = add_slot_of_its_own(row_major(step.inputs[0].slot), now);
  add_copy(step.inputs[0], slot);
  step.inputs[0] = {.slot = slot};
  add_view(node, step);
}

Tensor Planner::row_major(int slot) const {
  auto& from = geometry(slot);
  return geometry_of(from.dtype, from.sizes, contiguous_strides(from.sizes), plan_->device);
}

void Planner::add_copy(const Operand& from, int to) {
  const Op& clone = known_ops().clone;
  plan_->steps.push_back({.kind = Step::Kind::kCopy, .op = &clone, .inputs = {from}, .results = {to}});
  plan_->copied_bytes += bytes_of(geometry(to));
}

void Planner::place() {
  std::vector<Block*> blocks;
  for (auto& storage : plan_->storages)
    if (storage.kind == Storage::Kind::kArena) blocks.push_back(&storage.block);
  plan_->arena_bytes = pack(blocks);
  plan_->live_bytes = largest_live(blocks);
}

std::shared_ptr<const Plan> make_plan(const Program& program, std::span<const int64_t> sizes,
                                      const PlanOptions& options) {
  StageTimer timer(CompileStage::kSchedule);
  Specialized specialized = specialize(program, sizes);
  std::vector<std::shared_ptr<const Plan>> before;  // their kernels are found again
  for (;;) {
    Planner planner(program, specialized, options);
    auto plan = planner.run();
    if (planner.refused().empty()) return plan;
    std::set<const Node*> kernels;
    for (auto& [node, refusal] : planner.refused()) {
      if (plan->strict)
        throw Error(node->where.empty() ? refusal->message() : format("{}\n  at {}", refusal->message(), node->where));
      runtime::warn_refused(*refusal, "its ops run as smaller kernels or one by one");
      kernels.insert(node);
    }
    Graph smaller = split_kernels(planner.graph(), kernels);
    specialized.graph = std::move(smaller);
    before.push_back(std::move(plan));
  }
}

}  // namespace sinter
