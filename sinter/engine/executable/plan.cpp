#include "sinter/engine/executable/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/executable/eager_step.h"
#include "sinter/engine/executable/kernel_jobs.h"
#include "sinter/engine/executable/plan_geometry.h"
#include "sinter/engine/executable/specialize.h"
#include "sinter/engine/executable/tune.h"
#include "sinter/loops/fused.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/view_path.h"
#include "sinter/passes/split_kernels.h"
#include "sinter/runtime/refusal.h"
#include "sinter/tensor/memory_format.h"

namespace sinter {

namespace {

class Planner {
 public:
  Planner(const Program& program, const Specialized& specialized, const PlanOptions& options)
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

  // Not complete where some kernel is refused.
  std::shared_ptr<const Plan> run() {
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

  // The nodes whose kernels are refused, and why.
  const std::map<const Node*, std::shared_ptr<const runtime::Refused>>& refused() const { return refused_; }
  const Graph& graph() const { return graph_; }

 private:
  // --- lifetimes
  void find_last_uses() {
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
  int& last_read(Value v) { return last_read_[size_t(v.node->id)][size_t(v.index)]; }
  int& last_use(Value v) { return last_use_[size_t(v.node->id)][size_t(v.index)]; }
  bool is_needed(const Node& node) const {
    auto& uses = last_use_[size_t(node.id)];
    return std::any_of(uses.begin(), uses.end(), [](int use) { return use >= 0; });
  }

  // --- slots and storages
  const Operand& operand(Value v) const { return operands_[size_t(v.node->id)][size_t(v.index)]; }
  const TensorImpl& geometry(int slot) const { return plan_->slots[size_t(slot)].geometry.impl(); }
  Storage& storage_of(int slot) { return plan_->storages[size_t(plan_->slots[size_t(slot)].storage)]; }

  int add_storage(Storage::Kind kind, int index, int64_t bytes, int now) {
    plan_->storages.push_back({kind, index, {bytes, now, now, 0}});
    return int(plan_->storages.size()) - 1;
  }
  int add_slot(Tensor geometry, int storage) {
    plan_->slots.push_back({std::move(geometry), storage});
    return int(plan_->slots.size()) - 1;
  }
  int add_slot_of_its_own(const Tensor& geometry, int now) {
    return add_slot(geometry, add_storage(Storage::Kind::kArena, -1, bytes_of(geometry.impl()), now));
  }
  // The value lives in the slot until its last use.
  void define(Value v, int slot) {
    operands_[size_t(v.node->id)].push_back({.slot = slot});
    Block& block = storage_of(slot).block;
    block.last = std::max(block.last, std::max(last_use(v), v.node->id));
  }

  // --- inputs
  void add_inputs() {
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

  // --- steps
  void add(const Node& node) {
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

  Step begin_step(const Node& node) const {
    Step step{.op = node.op, .attrs = node.attrs, .where = node.where};
    for (auto& v : node.inputs) step.inputs.push_back(operand(v));
    return step;
  }

  // Whether a view is one of a copy, which is made when the first asks for it: until then, only what it is a copy of is there.
  bool waits(const Node& node) {
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

  void make_view(const Node& node, int now) {
    if (!waits_[size_t(node.id)]) return;
    waits_[size_t(node.id)] = false;
    make_view(*node.inputs[0].node, now);
    Step step = begin_step(node);
    if (!add_view(node, step)) add_view_of_copy(node, step, now);
    Block& block = storage_of(step.results[0]).block;
    block.last = std::max(block.last, reads_[size_t(node.id)].last);
    plan_->steps.push_back(std::move(step));
  }

  // The new value of an input that was computed elsewhere and that nothing reads goes there at once, if nothing reads what was
  // there either: its own memory is free then.
  void settle(Value value) {
    int into = changed_input(*value.node, value.index);
    // What a view shows others may see.
    if (into < 0 || value.node->op->kind == OpKind::kView || last_read(value) >= 0) return;
    if (std::ranges::count(graph_.outputs(), value) > 1) return;
    const int slot = operand(value).slot, now = value.node->id;
    if (slot < 0 || storage_of(slot).kind != Storage::Kind::kArena || !is_writable(into, now)) return;
    note_change(into);
    add_copy({.slot = slot}, into);
    storage_of(slot).block.last = now;
    operands_[size_t(now)][size_t(value.index)] = {.slot = into};
  }

  void add_computed(const Node& node, Step& step) {
    if (node.op == write_op_)
      add_write(node, step);
    else if (node.op == &fused_op())
      add_fused(node, step);
    else if (node.op->kind == OpKind::kPointwise)
      add_pointwise(node, step);
    else if (node.op->run_cpu)
      add_opaque(node, step);
    else
      add_kernel(node, step);
  }

  // False where the operand's memory has no such view.
  bool add_view(const Node& node, Step& step) {
    if (step.inputs[0].slot < 0) return false;
    auto view = alias(*step.op, plan_->slots[size_t(step.inputs[0].slot)].geometry, step.attrs);
    if (!view) return false;
    step.kind = Step::Kind::kView;
    step.results = {add_slot(*view, plan_->slots[size_t(step.inputs[0].slot)].storage)};
    define(node.result(), step.results[0]);
    return true;
  }

  // What the memory does not allow, a row-major copy does.
  void add_view_of_copy(const Node& node, Step& step, int now) {
    int slot = add_slot_of_its_own(row_major(step.inputs[0].slot), now);
    add_copy(step.inputs[0], slot);
    step.inputs[0] = {.slot = slot};
    add_view(node, step);
  }

  void add_pointwise(const Node& node, Step& step) {
    step.kind = Step::Kind::kPointwise;
    std::vector<const TensorImpl*> impls;
    for (auto& o : step.inputs) impls.push_back(o.slot < 0 ? nullptr : &geometry(o.slot));
    IntList sizes = node.types[0].shape.numbers();
    Tensor fresh = geometry_of(node.types[0].dtype, sizes, eager::pointwise_strides(impls, sizes), plan_->device);
    // Element by element: an operand in the same place may be read while it is overwritten, no other look at it.
    auto may_take = [&](int slot) {
      if (!is_writable(slot, node.id)) return false;
      return std::all_of(step.inputs.begin(), step.inputs.end(), [&](const Operand& o) {
        bool apart = o.slot < 0 || plan_->slots[size_t(o.slot)].storage != plan_->slots[size_t(slot)].storage;
        return apart || same_place(geometry(o.slot), geometry(slot));
      });
    };
    int taken = changed_input(node);
    if (taken >= 0 && !may_take(taken)) taken = -1;
    for (size_t i = 0; taken < 0 && i < step.inputs.size(); ++i) {
      int slot = step.inputs[i].slot;
      if (slot < 0 || storage_of(slot).kind == Storage::Kind::kInput || !may_take(slot)) continue;
      if (same_place(geometry(slot), fresh.impl()) && bytes_of(fresh.impl()) == storage_of(slot).block.bytes)
        taken = slot;
    }
    finish(node, step, fresh, taken);
  }

  void add_kernel(const Node& node, Step& step) {
    step.kind = Step::Kind::kKernel;
    IntList sizes = node.types[0].shape.numbers();
    const TensorImpl* first = step.inputs.empty() || step.inputs[0].slot < 0 ? nullptr : &geometry(step.inputs[0].slot);
    Tensor fresh = geometry_of(node.types[0].dtype, sizes, engine_of(plan_->device).result_strides(node, sizes, first), plan_->device);
    // A scatter may change its first operand instead of a copy; other kernels need operands that stay.
    int taken = node.op->kind == OpKind::kScatter ? step.inputs[0].slot : changed_input(node);
    if (taken >= 0) {
      size_t first = node.op->kind == OpKind::kScatter;
      bool apart = std::none_of(step.inputs.begin() + int64_t(first), step.inputs.end(), [&](const Operand& o) {
        return o.slot >= 0 && plan_->slots[size_t(o.slot)].storage == plan_->slots[size_t(taken)].storage;
      });
      auto& to = geometry(taken);
      if (!apart || !to.contiguous || to.dtype != fresh.dtype() || to.sizes != sizes || !is_writable(taken, node.id))
        taken = -1;
    }
    finish(node, step, fresh, taken);
  }

  void add_fused(const Node& node, Step& step) {
    step.kind = Step::Kind::kFused;
    auto& attrs = node.attrs.as<FusedAttrs>();
    std::set<int> taken_storages;
    if (attrs.kind == FusedKind::kSiblings) {
      auto& inputs = attrs.body->inputs();
      std::vector<int> readers(inputs.size(), 0);
      std::vector<std::pair<const Node*, std::vector<size_t>>> kernels;
      for (auto& inner : attrs.body->nodes()) {
        if (inner.op != &fused_op()) continue;
        auto& own = kernels.emplace_back(&inner, std::vector<size_t>()).second;
        for (auto& v : inner.inputs) own.push_back(size_t(std::find(inputs.begin(), inputs.end(), v) - inputs.begin()));
        for (size_t i : std::set<size_t>(own.begin(), own.end())) ++readers[i];
      }
      // Results come in the order of the kernels inside.
      int result = 0;
      for (auto& [inner, own] : kernels)
        for (size_t r = 0; r < inner->types.size(); ++r)
          add_fused_result(node, step, result++, inner->attrs.as<FusedAttrs>(), int(r), own, readers, taken_storages);
    } else {
      std::vector<size_t> own(step.inputs.size());
      for (size_t i = 0; i < own.size(); ++i) own[i] = i;
      std::vector<int> readers(own.size(), 1);
      for (size_t r = 0; r < node.types.size(); ++r)
        add_fused_result(node, step, int(r), attrs, int(r), own, readers, taken_storages);
    }
    std::vector<const TensorImpl*> operands, outputs;
    for (auto& o : step.inputs) operands.push_back(o.slot < 0 ? nullptr : &geometry(o.slot));
    for (int slot : step.results) outputs.push_back(&geometry(slot));
    to_compile_.push_back({plan_->steps.size(), &node, std::move(operands), std::move(outputs)});
  }

  // A result of the kernel `attrs`, its r-th, which reads the operands `own` of the step; others read the rest at the same
  // time. `readers` counts the kernels that read each operand: one that several read stays as it is.
  void add_fused_result(const Node& node, Step& step, int result, const FusedAttrs& attrs, int r, const std::vector<size_t>& own,
                        const std::vector<int>& readers, std::set<int>& taken_storages) {
    if (const Node* last = attrs.body->outputs()[size_t(r)].node; last->op->kind == OpKind::kScatter)
      return add_scattered(node, step, result, *attrs.body, *last, own, readers, taken_storages);
    // A product writes partial sums where its result will be; other templates read operands more than once, too.
    const bool by_template = attrs.has_template();
    std::vector<bool> elsewhere = by_template ? std::vector<bool>(own.size(), true) : read_elsewhere(*attrs.body);
    std::vector<const TensorImpl*> followed;
    for (size_t n = 0; n < own.size(); ++n) {
      int slot = step.inputs[own[n]].slot;
      followed.push_back(slot < 0 || elsewhere[n] ? nullptr : &geometry(slot));
    }
    IntList sizes = node.types[size_t(result)].shape.numbers();
    // Rows of a GPU need not lie along memory: neighbours may be those of other rows.
    const bool follows = !attrs.inner || (engine_of(plan_->device).target().gpu && attrs.domain.numbers() == sizes);
    IntList strides = by_template ? engine_of(plan_->device).result_strides(template_op_in(attrs), sizes, nullptr)
                      : follows   ? eager::pointwise_strides(followed, sizes)
                                  : contiguous_strides(sizes);
    // What becomes the new value of an input lies as that does, if that has no gaps.
    if (int into = changed_input(node, result); into >= 0 && !by_template && !attrs.inner && geometry(into).sizes == sizes)
      if (auto& of = geometry(into).strides; preserved_strides(sizes, of) == of) strides = of;
    Tensor fresh = geometry_of(node.types[size_t(result)].dtype, sizes, strides, plan_->device);
    // Elements are computed where they are stored, so an operand in the very same place may be overwritten; by a template none.
    auto may_take = [&](int slot) {
      int storage = plan_->slots[size_t(slot)].storage;
      if (taken_storages.contains(storage) || !is_writable(slot, node.id) || !same_place_apart_from_start(slot, fresh.impl()))
        return false;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Operand& o = step.inputs[i];
        if (o.slot < 0 || plan_->slots[size_t(o.slot)].storage != storage) continue;
        size_t n = size_t(std::find(own.begin(), own.end(), i) - own.begin());
        if (n == own.size() || readers[i] > 1 || elsewhere[n] || !same_place(geometry(o.slot), geometry(slot))) return false;
      }
      return true;
    };
    int taken = -1;
    if (by_template || node.types[size_t(result)].shape.same_as(attrs.domain)) {
      taken = changed_input(node, result);
      if (taken >= 0 && !may_take(taken)) taken = -1;
      for (size_t i : own) {
        int slot = step.inputs[i].slot;
        if (taken >= 0 || slot < 0 || storage_of(slot).kind == Storage::Kind::kInput || !may_take(slot)) continue;
        if (bytes_of(fresh.impl()) == storage_of(slot).block.bytes) taken = slot;
      }
    }
    int slot;
    if (taken >= 0) {
      step.in_place = true;
      note_change(taken);
      taken_storages.insert(plan_->slots[size_t(taken)].storage);
      slot = add_slot(plan_->slots[size_t(taken)].geometry, plan_->slots[size_t(taken)].storage);
    } else {
      slot = add_slot_of_its_own(fresh, node.id);
    }
    step.results.push_back(slot);
    define(node.result(result), slot);
  }

  // A kernel that ends with a scatter changes what the scatter's first operand is, or a copy.
  void add_scattered(const Node& node, Step& step, int result, const Graph& body, const Node& scatter,
                     const std::vector<size_t>& own, const std::vector<int>& readers, std::set<int>& taken_storages) {
    auto& inputs = body.inputs();
    size_t at = size_t(std::find(inputs.begin(), inputs.end(), scatter.inputs[0]) - inputs.begin());
    SINTER_INTERNAL_ASSERT(at < inputs.size(), "a fused scatter changes what it computes itself");
    const Operand& self = step.inputs[own[at]];
    int storage = plan_->slots[size_t(self.slot)].storage;
    bool apart = !taken_storages.contains(storage) && is_writable(self.slot, node.id) && readers[own[at]] == 1;
    for (auto& n : body.nodes())
      for (size_t i = 0; i < n.inputs.size(); ++i)
        apart = apart && (n.inputs[i] != scatter.inputs[0] || (&n == &scatter && i == 0));
    for (size_t i = 0; i < step.inputs.size(); ++i)
      if (i != own[at] && step.inputs[i].slot >= 0)
        apart = apart && plan_->slots[size_t(step.inputs[i].slot)].storage != storage;
    int slot;
    if (apart) {
      step.in_place = true;
      note_change(self.slot);
      taken_storages.insert(storage);
      slot = add_slot(plan_->slots[size_t(self.slot)].geometry, storage);
    } else {
      slot = add_slot_of_its_own(row_major(self.slot), node.id);
      add_copy(self, slot);
    }
    step.results.push_back(slot);
    define(node.result(result), slot);
  }

  bool same_place_apart_from_start(int slot, const TensorImpl& fresh) const {
    auto& to = geometry(slot);
    return to.dtype == fresh.dtype && to.sizes == fresh.sizes && to.strides == fresh.strides;
  }

  void add_opaque(const Node& node, Step& step) {
    step.kind = Step::Kind::kOpaque;
    for (size_t r = 0; r < node.types.size(); ++r) {
      IntList sizes = node.types[r].shape.numbers();
      Tensor geometry = geometry_of(node.types[r].dtype, sizes, contiguous_strides(sizes), plan_->device);
      // A recording is launched without anybody to bring results along: they are copied to a place of their own.
      auto kind = engine_of(plan_->device).queues() ? Storage::Kind::kArena : Storage::Kind::kLoose;
      step.results.push_back(add_slot(geometry, add_storage(kind, -1, bytes_of(geometry.impl()), node.id)));
      define(node.result(int(r)), step.results.back());
    }
  }

  void add_write(const Node& node, Step& step) {
    step.kind = Step::Kind::kWrite;
    auto& path = node.attrs.as<WriteAttrs>().path;
    const Tensor& base = plan_->slots[size_t(step.inputs[0].slot)].geometry;
    std::optional<Tensor> place;
    int taken = is_writable(step.inputs[0].slot, node.id) ? step.inputs[0].slot : -1;
    if (taken >= 0) place = apply_views(path, base);
    // A path was recorded on row-major values: a copy in that order always has it.
    Tensor fresh = geometry_of(base.dtype(), base.impl().sizes, contiguous_strides(base.impl().sizes), plan_->device);
    if (!place) {
      taken = -1;
      place = apply_views(path, fresh);
      SINTER_INTERNAL_ASSERT(place, "a path of views has no alias: {}", node.attrs.text());
      plan_->copied_bytes += bytes_of(fresh.impl());
    }
    plan_->copied_bytes += bytes_of(place->impl());
    finish(node, step, fresh, taken);
    step.target = add_slot(*place, plan_->slots[size_t(step.results[0])].storage);
  }

  static std::optional<Tensor> apply_views(const ViewPath& path, const Tensor& base) {
    std::optional<Tensor> at = base;
    for (auto& view : path.steps)
      if (at) at = alias(*view.op, *at, view.attrs);
    return at;
  }

  // The single result of the step: in the memory of slot `taken`, with that slot's geometry, or in memory of its own.
  void finish(const Node& node, Step& step, const Tensor& fresh, int taken) {
    step.in_place = taken >= 0;
    if (taken >= 0) note_change(taken);
    int slot = taken < 0 ? add_slot_of_its_own(fresh, node.id)
                         : add_slot(plan_->slots[size_t(taken)].geometry, plan_->slots[size_t(taken)].storage);
    step.results = {slot};
    define(node.result(), slot);
  }

  // The slot of the input in whose memory the node's only result belongs; -1 when there is none.
  int changed_input(const Node& node, int result = 0) const {
    auto it = belongs_into_.find({&node, result});
    return it == belongs_into_.end() ? -1 : plan_->input_slots[size_t(it->second)];
  }

  // Whether the memory may be overwritten by step `now`: nobody needs what is there any more.
  bool is_writable(int slot, int now) {
    const Storage& storage = storage_of(slot);
    if (storage.block.last > now || !is_injective(geometry(slot))) return false;
    return storage.kind != Storage::Kind::kInput || (options_.write_inputs_early && written_[size_t(storage.index)]);
  }

  void note_change(int slot) {
    const Storage& storage = storage_of(slot);
    auto& early = plan_->changed_early;
    if (storage.kind == Storage::Kind::kInput && std::find(early.begin(), early.end(), storage.index) == early.end())
      early.push_back(storage.index);
  }

  // --- outputs
  void add_outputs() {
    for (auto& v : graph_.outputs()) make_view(*v.node, end_);
    size_t count = graph_.outputs().size();
    plan_->outputs.resize(count);
    for (size_t j = 0; j < count; ++j)
      if (program_.written_into(j) < 0) add_fresh_output(j);
    // Inputs change once everything that reads them has been computed and saved.
    std::vector<size_t> late;
    for (size_t j = 0; j < count; ++j) {
      int i = program_.written_into(j);
      if (i < 0) continue;
      plan_->outputs[j] = {.kind = PlannedOutput::Kind::kWritten, .input = i};
      plan_->changed_inputs.push_back(i);
      const Operand& value = operand(graph_.outputs()[j]);
      int to = plan_->input_slots[size_t(i)];
      bool there = value.slot >= 0 && plan_->slots[size_t(value.slot)].storage == plan_->slots[size_t(to)].storage &&
                   same_place(geometry(value.slot), geometry(to));
      if (!there) late.push_back(j);
    }
    std::vector<Operand> values;
    for (size_t j : late) {
      Operand value = operand(graph_.outputs()[j]);
      if (late.size() > 1 && value.slot >= 0 && storage_of(value.slot).kind == Storage::Kind::kInput) {
        int saved = add_slot_of_its_own(row_major(value.slot), end_);
        add_copy(value, saved);
        value = {.slot = saved};
      }
      values.push_back(value);
    }
    for (size_t n = 0; n < late.size(); ++n) add_copy(values[n], plan_->input_slots[size_t(program_.writes[late[n]])]);
  }

  Tensor row_major(int slot) const {
    auto& from = geometry(slot);
    return geometry_of(from.dtype, from.sizes, contiguous_strides(from.sizes), plan_->device);
  }

  void add_fresh_output(size_t j) {
    const Operand& value = operand(graph_.outputs()[j]);
    if (value.slot < 0) {
      plan_->outputs[j] = {.kind = PlannedOutput::Kind::kNumber, .number = value};
      return;
    }
    plan_->outputs[j].slot = value.slot;
    Storage& storage = storage_of(value.slot);
    bool whole = bytes_of(geometry(value.slot)) == storage.block.bytes && is_injective(geometry(value.slot));
    if (whole && storage.index < 0) {
      // Computed, and no other output's: its memory is made for the caller.
      if (storage.kind == Storage::Kind::kArena) storage.kind = Storage::Kind::kOutput;
      storage.index = int(j);
      return;
    }
    int storage_of_copy = add_storage(Storage::Kind::kOutput, int(j), bytes_of(geometry(value.slot)), end_);
    plan_->outputs[j].slot = add_slot(row_major(value.slot), storage_of_copy);
    add_copy(value, plan_->outputs[j].slot);
  }

  void add_copy(const Operand& from, int to) {
    const Op& clone = known_ops().clone;
    plan_->steps.push_back({.kind = Step::Kind::kCopy, .op = &clone, .inputs = {from}, .results = {to}});
    plan_->copied_bytes += bytes_of(geometry(to));
  }

  void place() {
    std::vector<Block*> blocks;
    for (auto& storage : plan_->storages)
      if (storage.kind == Storage::Kind::kArena) blocks.push_back(&storage.block);
    plan_->arena_bytes = pack(blocks);
    plan_->live_bytes = largest_live(blocks);
  }

  const Program& program_;
  const PlanOptions& options_;
  const Specialized& specialized_;
  const Graph& graph_;
  const int end_;  // the time at which outputs are read
  const Op* const write_op_ = &known_ops().write;
  std::vector<std::vector<Operand>> operands_;         // by node: its results
  std::vector<std::vector<int>> last_use_;             // by node and result; -1: not needed
  std::vector<std::vector<int>> last_read_;            // the same by nodes alone
  struct Reads {
    int first, last;
  };
  std::vector<Reads> reads_;  // by node: when it is read, behind views too
  std::vector<bool> waits_;   // by node: a view that is made when it is first read
  std::vector<bool> written_;                          // by input: whether the program changes it
  std::map<std::pair<const Node*, int>, int> belongs_into_;  // the input that a written output's value belongs into
  std::vector<KernelJob> to_compile_;
  std::map<const Node*, std::shared_ptr<const runtime::Refused>> refused_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
};

}  // namespace

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
