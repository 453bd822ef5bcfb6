#include "sinter/passes/fuse_views.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/define.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/target_kernels.h"

namespace sinter {

namespace {

// More than this many reads of one member make a kernel that no cache of instructions holds.
constexpr size_t kMostReadings = 48;
// What computing an element costs, in bytes that could be moved meanwhile.
constexpr double kCheapOp = 0.25, kExpensiveOp = 10;
// What a launch costs, in the same.
constexpr double kLaunch = 4096;

// Symbolic sizes count as middling ones.
double estimate(const Shape& shape) {
  Dim numel = shape.numel().substitute([](const std::string&) { return Dim(64); });
  return numel.is_number() ? double(numel.number()) : 64.0;
}

double bytes_of(const Type& type) { return estimate(type.shape) * double(item_size(type.dtype)); }

Index domain_coordinates(const Shape& shape) {
  Index at;
  for (size_t d = 0; d < shape.size(); ++d)
    at.push_back(shape[d].same_as(1) ? Dim(0) : Dim::symbol("i" + std::to_string(d)));
  return at;
}

// Follows a node's definition down to what it reads, with symbols for coordinates.
class Walk {
 public:
  Walk(const Inlining& inlining, const Dim& lanes) : inlining_(inlining), lanes_(lanes) {}

  void node(const Node& node, const Index& at, bool direct = true) {
    if (node.op->kind == OpKind::kPointwise) {
      for (auto& v : node.inputs)
        if (direct || inlining_.transparent(*v.node)) value(v, broadcast(v, at));
    } else if (node.op->kind == OpKind::kReduce || node.op->kind == OpKind::kScan) {
      value(node.inputs[0], at);
    } else {
      define(node, at);
    }
  }

  Readings out;

 private:
  static Index broadcast(Value v, const Index& at) {
    auto& shape = v.type().shape;
    size_t shift = at.size() - shape.size();
    Index part;
    for (size_t d = 0; d < shape.size(); ++d) part.push_back(shape[d].same_as(1) ? Dim(0) : at[d + shift]);
    return part;
  }

  void value(Value v, const Index& at) {
    if (!out.bounded) return;
    if (inlining_.transparent(*v.node)) return node(*v.node, at);
    note(at);
    if (out.all.size() == kMostReadings) {
      out.bounded = false;
      return;
    }
    Reading reading{v, v.node, at};
    if (v.node->op->kind == OpKind::kView) {
      Walk behind(inlining_, lanes_);
      behind.through_views(v, at, reading);
    }
    out.strided += is_strided(reading.at);
    out.all.push_back(std::move(reading));
  }

  void through_views(Value v, const Index& at, Reading& reading) {
    target_ = &reading;
    reading.root = v.node;
    reading.at = at;
    if (v.node->op->kind == OpKind::kView) define(*v.node, at);
  }

  // Lanes want to move by a stride, if at all.
  void note(const Index& at) {
    if (lanes_.is_number()) return;
    for (auto& d : at)
      if (!d.coefficient_of(lanes_)) out.in_lanes = false;
  }

  // By the coordinates of what has memory of its own.
  bool is_strided(const Index& at) const {
    for (size_t d = 0; d < at.size() && !lanes_.is_number(); ++d) {
      auto step = at[d].coefficient_of(lanes_);
      if (step && !step->same_as(0) && (d + 1 < at.size() || !step->same_as(1))) return true;
    }
    return false;
  }

  class Definition final : public ElementBuilder {
   public:
    Definition(const OpCall& call, Walk& walk, const Node& node) : ElementBuilder(call), walk_(walk), node_(node) {}
    Elem load(int operand, const Index& at) override {
      Value v = node_.inputs[size_t(operand)];
      if (walk_.target_)
        walk_.through_views(v, at, *walk_.target_);
      else
        walk_.value(v, at);
      return {0};
    }
    Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar&) override {
      walk_.condition(inside);
      return load(operand, at);
    }
    Dim load_index(int operand, const Index& at, const Dim&) override {
      load(operand, at);
      // One index for all lanes.
      for (auto& d : at)
        if (!walk_.lanes_.is_number() && d.depends_on(walk_.lanes_)) walk_.out.in_lanes = false;
      return Dim::symbol("x" + std::to_string(walk_.indices_++));
    }
    Elem select(const Conditions& conditions, Elem, Elem) override {
      walk_.condition(conditions);
      return {0};
    }
    Elem apply(const Op&, DType, std::initializer_list<Elem>) override { return {0}; }
    Elem number(const Dim& value) override {
      walk_.note({value});
      return {0};
    }
    Elem constant(const Scalar&) override { return {0}; }

   private:
    Walk& walk_;
    const Node& node_;
  };

  // Loops are cut where such a condition changes: by a step of one along the lanes.
  void condition(const Conditions& conditions) {
    for (auto& c : conditions) {
      auto step = lanes_.is_number() ? std::optional<Dim>(0) : c.value.coefficient_of(lanes_);
      bool constant = step && step->same_as(0);
      bool cuts = step && (step->same_as(1) || step->same_as(-1)) && c.multiple == 1;
      if (!lanes_.is_number() && c.extent.depends_on(lanes_)) cuts = constant = false;
      if (!constant && !cuts) out.in_lanes = false;
      if (cuts) out.cut = true;
    }
  }

  void define(const Node& node, const Index& at) {
    std::vector<Type> types;
    for (auto& v : node.inputs) types.push_back(v.type());
    OpCall call{*node.op, types, node.attrs};
    Definition definition(call, *this, node);
    definition.i = at;
    node.op->element(definition);
  }

  const Inlining& inlining_;
  Dim lanes_;
  Reading* target_ = nullptr;
  int indices_ = 0;
};

// Random numbers are functions of their place: they may be drawn again, at a price.
bool is_costly(const Node& node) {
  return node.op->random || (node.op->pointwise && node.op->pointwise->expensive);
}

// Made of numbers alone, no memory is read for it.
bool is_creation(const Node& node) {
  return is_map(node) && std::all_of(node.inputs.begin(), node.inputs.end(),
                                     [](auto& v) { return v.node->op->kind == OpKind::kScalar; });
}

// Whether a view shows the elements at their own coordinates, but for dimensions of size 1 and repetition.
bool is_plain(const Node& view) {
  if (view.op == &known_ops().expand) return true;
  return known_ops().keeps_order(view) && without_ones(view.types[0].shape).same_as(without_ones(view.inputs[0].type().shape));
}

// Whether a view of a contraction's result only counts its rows in another way.
bool keeps_columns(Value v) {
  for (const Node* view = v.node; view->op->kind == OpKind::kView; view = view->inputs[0].node) {
    auto &to = view->types[0].shape, &of = view->inputs[0].type().shape;
    if (!known_ops().keeps_order(*view) || to.empty() || of.empty()) return false;
    if (!to[to.size() - 1].same_as(of[of.size() - 1])) return false;
  }
  return true;
}

}  // namespace

namespace {

// Asks a scatter where its elements go and what they are.
class ScatterProbe final : public ElementBuilder {
 public:
  ScatterProbe(const OpCall& call, const Dim& lanes) : ElementBuilder(call), lanes_(lanes) {}
  Elem load(int operand, const Index& at) override {
    bool own = at.size() == i.size();
    for (size_t d = 0; own && d < at.size(); ++d) own = at[d].same_as(i[d]);
    plain = plain && own && source < 0;
    source = operand;
    return {0};
  }
  Elem load_if(const Conditions&, int, const Index&, const Scalar&) override { return refuse(); }
  Dim load_index(int, const Index& at, const Dim&) override {
    for (auto& d : at) plain = plain && !d.depends_on(lanes_);
    return Dim::symbol("x" + std::to_string(indices_++));
  }
  Elem select(const Conditions&, Elem, Elem) override { return refuse(); }
  Elem apply(const Op&, DType, std::initializer_list<Elem>) override { return refuse(); }
  Elem number(const Dim&) override { return refuse(); }
  Elem constant(const Scalar&) override { return refuse(); }

  int source = -1;
  bool plain = true;

 private:
  Elem refuse() {
    plain = false;
    return {0};
  }
  Dim lanes_;
  int indices_ = 0;
};

}  // namespace

std::optional<size_t> scattered_operand(const Node& node) {
  if (node.op->kind != OpKind::kScatter || node.types[0].rank() == 0) return {};
  std::vector<Type> types;
  for (auto& v : node.inputs) types.push_back(v.type());
  OpCall call{*node.op, types, node.attrs};
  Shape domain = node.op->domain(call);
  if (domain.empty() || node.op->scatter_combine(call) != Combine::kReplace) return {};
  Index at;
  for (size_t d = 0; d < domain.size(); ++d) at.push_back(Dim::symbol("i" + std::to_string(d)));
  ScatterProbe probe(call, at.back());
  probe.i = at;
  Index target = node.op->target(probe);
  node.op->element(probe);
  if (!probe.plain || probe.source < 0 || !target.back().same_as(at.back())) return {};
  for (size_t d = 0; d + 1 < target.size(); ++d)
    if (target[d].depends_on(at.back())) return {};
  bool whole = node.inputs[size_t(probe.source)].type().shape.same_as(domain);
  return whole ? std::optional(size_t(probe.source)) : std::nullopt;
}

const Shape& domain_of(const Node& node) {
  if (auto operand = scattered_operand(node)) return node.inputs[*operand].type().shape;
  return node.op->kind == OpKind::kReduce ? node.inputs[0].type().shape : node.types[0].shape;
}

size_t reduced_tail(const Node& node) {
  std::vector<Type> types{node.inputs[0].type()};
  OpCall call{*node.op, types, node.attrs};
  IntList dims = reduced_dims(call, node.attrs.as<ReduceAttrs>().dims);
  int64_t rank = types[0].rank();
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != rank - int64_t(dims.size()) + int64_t(i)) return 0;
  return dims.size();
}

bool is_row_reduction(const Node& node, const FuseOptions& options) {
  if (node.op->kind != OpKind::kReduce || node.op->payload) return false;
  size_t tail = reduced_tail(node);
  auto& shape = node.inputs[0].type().shape;
  Dim rows = 1, length = 1;
  for (size_t d = 0; d < shape.size(); ++d) (d + tail < shape.size() ? rows : length) *= shape[d];
  if (tail == 0 || !rows.is_number() || !length.is_number()) return tail > 0;
  return rows.number() >= options.few_rows || length.number() < options.long_row;
}

bool is_sink(const Node& node, const FuseOptions& options) {
  if (node.op->kind == OpKind::kScan) return node.types[0].rank() > 0;
  if (node.op->kind != OpKind::kReduce || node.inputs[0].type().rank() == 0) return false;
  if (is_row_reduction(node, options)) return false;
  // A reduction of few long rows has a kernel that splits them.
  double results = estimate(node.types[0].shape), length = estimate(node.inputs[0].type().shape) / std::max(1.0, results);
  return length < double(options.long_row) || results >= 1024;
}

bool is_map(const Node& node) {
  return node.op->kind == OpKind::kLoop && node.op->combine == Combine::kNone && node.op->element &&
         node.types.size() == 1 && node.types[0].rank() > 0;
}

Inlining::Inlining(const Graph& graph, const FuseOptions& options)
    : graph_(graph),
      options_(options),
      inlined_(graph.nodes().size(), false),
      small_(graph.nodes().size(), false),
      row_constant_(graph.nodes().size(), false),
      stored_(graph.nodes().size(), false),
      strided_(graph.nodes().size(), -1),
      uses_(graph.nodes().size()),
      evaluations_(graph.nodes().size(), 1),
      final_readers_(graph.nodes().size()),
      operands_(graph.nodes().size()),
      known_(graph.nodes().size(), false) {
  take_encoded_weights();
  if (!options.inlines) return;
  for (auto& node : graph.nodes()) {
    auto kind = node.op->kind;
    bool small = kind == OpKind::kPointwise && !node.op->random && without_ones(node.types[0].shape).size() <= 1;
    small_[size_t(node.id)] = kind == OpKind::kInput || kind == OpKind::kScalar || kind == OpKind::kView || small;
    for (auto& v : node.inputs)
      if (!small_[size_t(v.node->id)]) small_[size_t(node.id)] = false;
    if (node.op->kind == OpKind::kView) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      auto& v = node.inputs[i];
      auto id = size_t(source(v.node)->id);
      uses_[id].push_back({&node, v});
      // What a piece computes is computed there: later it would have to wait for what it reads.
      const int piece = source(v.node)->marks.piece;
      if (!can_inline_into(node, i) || (piece != 0 && piece != node.marks.piece)) stored_[id] = true;
    }
  }
  for (auto& v : graph.outputs()) stored_[size_t(source(v.node)->id)] = true;
  // Readers first, so that a node knows in which kernels it would end.
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    auto& uses = uses_[n];
    if (stored_[n] || uses.empty()) continue;
    row_constant_[n] = is_row_constant(node, uses);
    if (!row_constant_[n] && (!is_candidate(node, uses) || !saves(node, uses))) continue;
    inlined_[n] = regular(node, uses);
    row_constant_[n] = row_constant_[n] && inlined_[n];
    if (!inlined_[n]) evaluations_[n] = 1;
  }
  drop_useless();
  std::fill(known_.begin(), known_.end(), false);
}

// Products read codes themselves, where nobody else wants what they stand for.
void Inlining::take_encoded_weights() {
  std::vector<int> wanted(graph_.nodes().size(), 0);  // by node: readers that are no such product
  for (auto& node : graph_.nodes()) {
    const Node* weight = encoded_weight(options_.target, node);
    if (weight) inlined_[size_t(weight->id)] = true;
    if (node.op->kind == OpKind::kView) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (const Node* from = source(node.inputs[i].node); from != weight || i != 1) ++wanted[size_t(from->id)];
  }
  for (auto& v : graph_.outputs()) ++wanted[size_t(source(v.node)->id)];
  for (size_t n = 0; n < wanted.size(); ++n) inlined_[n] = inlined_[n] && wanted[n] == 0;
}

bool Inlining::can_inline_into(const Node& node) const {
  switch (node.op->kind) {
    case OpKind::kPointwise: return !node.op->random && node.types[0].rank() > 0;
    case OpKind::kReduce:
    case OpKind::kScan: return is_row_reduction(node, options_) || is_sink(node, options_);
    default: return is_map(node);
  }
}

bool Inlining::can_inline_into(const Node& node, size_t operand) const {
  return node.op->kind == OpKind::kScatter ? scattered_operand(node) == operand : can_inline_into(node);
}

bool Inlining::is_candidate(const Node& node, const std::vector<Use>& uses) const {
  if (is_map(node)) return true;
  if (node.op->kind != OpKind::kPointwise || node.op->random || node.types[0].rank() == 0) return false;
  // A result of a contraction in a wider type: read as it is stored, narrow, and widened by who needs it.
  if (widens_finished(node) || widens_a_part(node) || widens_for_several(node)) return true;
  // What follows a contraction column by column is finished in its kernel, unless nobody wants it but a reduction.
  const bool only_reduced =
      std::all_of(uses.begin(), uses.end(), [](auto& use) { return use.reader->op->kind == OpKind::kReduce; });
  if (!only_reduced && follows_contraction(node)) return false;
  bool created = std::all_of(node.inputs.begin(), node.inputs.end(), [](auto& v) {
    return v.node->op->kind == OpKind::kScalar || is_creation(*source(v.node));
  });
  if (created) return true;
  // A weight in another type, say, that readers spread over a larger domain and so would not take in.
  bool of_inputs = !is_costly(node) && std::all_of(node.inputs.begin(), node.inputs.end(), [](auto& v) {
    return v.node->op->kind == OpKind::kScalar || source(v.node)->op->kind == OpKind::kInput;
  });
  bool spread = std::all_of(uses.begin(), uses.end(), [&](auto& use) {
    return use.reader->op->kind == OpKind::kPointwise && !node.types[0].shape.same_as(use.reader->types[0].shape);
  });
  if (of_inputs && spread) return true;
  for (auto& use : uses) {
    if (is_map(*use.reader) || use.reader->op->kind == OpKind::kScatter || inlined(*use.reader) || is_sink(*use.reader, options_)) return true;
    for (const Node* view = use.value.node; view != &node; view = view->inputs[0].node)
      if (!is_plain(*view)) return true;
  }
  return false;
}

bool Inlining::follows_contraction(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](auto& v) {
    return finishes(options_.target, *source(v.node), node) && keeps_columns(v);
  });
}

// The same floating numbers in a wider type.
bool Inlining::widens(const Node& node) {
  if (node.op->kind != OpKind::kPointwise || node.op->pointwise->typing != Typing::kAttr) return false;
  const DType from = node.inputs[0].type().dtype;
  return is_floating(from) && item_size(from) < item_size(node.types[0].dtype);
}

// What is looked at is not all of a contraction's result, so that its kernel does not finish it.
bool Inlining::widens_a_part(const Node& node) const {
  const Value& v = node.inputs[0];
  return widens(node) && takes_contraction(options_.target, *source(v.node)) && !keeps_columns(v);
}

// The value ends a contraction's kernel and is in memory anyway: somebody else reads it too.
bool Inlining::widens_finished(const Node& node) const {
  if (!widens(node)) return false;
  const Node* from = source(node.inputs[0].node);
  return from->op->kind == OpKind::kPointwise && follows_contraction(*from) && uses_[size_t(from->id)].size() > 1;
}

// Several kernels may read it: each widens for itself what is stored narrow, instead of loading twice the bytes.
bool Inlining::widens_for_several(const Node& node) const {
  return widens(node) && uses_[size_t(node.id)].size() > 1;
}

// A value such as a batch norm's scale, that only one node reads: a kernel computes it once for each of its rows.
bool Inlining::is_row_constant(const Node& node, const std::vector<Use>& uses) const {
  if (node.op->kind != OpKind::kPointwise || node.types[0].rank() == 0 || !small_[size_t(node.id)]) return false;
  if (uses.size() != 1) return false;
  for (const Node* view = uses[0].value.node; view != &node; view = view->inputs[0].node)
    if (!is_plain(*view)) return false;
  const Node& reader = *uses[0].reader;
  if (row_constant_[size_t(reader.id)]) return true;
  const Shape &seen = uses[0].value.type().shape, &domain = reader.types[0].shape;
  return reader.op->kind == OpKind::kPointwise && !reader.op->random && domain.size() > 1 &&
         !inlined(reader) && (seen.empty() || seen[seen.size() - 1].same_as(1)) &&
         !domain[domain.size() - 1].same_as(1);
}

// Bytes moved and work done when it is computed by its readers, against when it is stored once and loaded by each.
bool Inlining::saves(const Node& node, const std::vector<Use>& uses) {
  double numel = std::max(1.0, estimate(node.types[0].shape)), times = 0;
  const bool once = is_shared_by_pairs(uses);
  for (auto& use : uses) {
    double read = estimate(is_map(*use.reader) ? use.value.type().shape : domain_of(*use.reader));
    const double more = evaluations_[size_t(use.reader->id)] * read / numel;
    times = once ? std::max(times, more) : times + more;
  }
  double own = bytes_of(node.types[0]), read = 0;
  if (is_map(node))
    read = is_creation(node) ? 0 : own;
  else
    for (auto& v : node.inputs) read += is_creation(*source(v.node)) ? 0 : bytes_of(v.type());
  double work = numel * (is_costly(node) ? kExpensiveOp : kCheapOp);
  evaluations_[size_t(node.id)] = times;
  return (times - 1) * (read + work) <= own + times * own + kLaunch;
}

// Whether all who read it end in one kernel, which joins pairs: the two places of a pair are computed side by side, and what
// both are made of once.
bool Inlining::is_shared_by_pairs(const std::vector<Use>& uses) const {
  const Node* kernel = nullptr;
  auto is_the_one = [&](const Node* reader) { return reader == (kernel ? kernel : kernel = reader); };
  for (auto& use : uses) {
    auto& finals = final_readers_[size_t(use.reader->id)];
    if (inlined(*use.reader) ? !std::all_of(finals.begin(), finals.end(), is_the_one) : !is_the_one(use.reader)) return false;
  }
  return kernel && joins_pairs(*kernel);
}

// Whether every kernel that would compute it keeps to its lanes.
bool Inlining::regular(const Node& node, const std::vector<Use>& uses) {
  auto& finals = final_readers_[size_t(node.id)];
  auto add = [&](const Node* reader) {
    if (std::find(finals.begin(), finals.end(), reader) == finals.end()) finals.push_back(reader);
  };
  for (auto& use : uses) {
    if (!inlined(*use.reader)) add(use.reader);
    for (auto* reader : final_readers_[size_t(use.reader->id)])
      if (inlined(*use.reader)) add(reader);
  }
  if (finals.size() > 8) return false;
  const bool pointwise = node.op->kind == OpKind::kPointwise;
  std::vector<int> strided_before;
  for (auto* reader : finals) {
    int& known = strided_[size_t(reader->id)];
    if (pointwise && known < 0) known = readings(*reader).strided;
    strided_before.push_back(known);
  }
  inlined_[size_t(node.id)] = true;
  bool fine = true;
  std::vector<int> strided_now;
  for (size_t i = 0; fine && i < finals.size(); ++i) {
    auto found = readings(*finals[i]);
    strided_now.push_back(found.strided);
    fine = (found.in_lanes || found.pairs) && found.bounded;
    // One transposed operand costs as much as another, two cost twice.
    bool more = pointwise && found.in_lanes && found.strided > strided_before[i];
    fine = fine && !more;
    if (!is_sink(*finals[i], options_)) continue;
    // Its kernel does not cut loops, and a scan goes one by one.
    bool one_by_one = finals[i]->op->kind == OpKind::kScan;
    fine = fine && !found.pairs && !found.cut && !(one_by_one && is_costly(node));
  }
  inlined_[size_t(node.id)] = false;
  for (size_t i = 0; fine && i < finals.size(); ++i) strided_[size_t(finals[i]->id)] = strided_now[i];
  return fine;
}

// A pointwise value that is computed elsewhere, from something that only for this would have to be stored, saves nothing. What
// is there before the last of its operands is stored in any case: no kernel has both.
void Inlining::drop_useless() {
  for (auto& node : graph_.nodes()) {
    if (!inlined(node) || node.op->kind != OpKind::kPointwise || widens_finished(node) || widens_for_several(node)) continue;
    double forced = 0;
    int last = -1;
    for (auto& v : node.inputs)
      if (!inlined(*source(v.node))) last = std::max(last, source(v.node)->id);
    for (auto& v : node.inputs) {
      const Node* from = source(v.node);
      bool computed = can_inline_into(*from) && !from->inputs.empty();
      if (computed && from->id == last && !stored_[size_t(last)]) forced += bytes_of(from->types[0]);
    }
    if (2 * forced >= bytes_of(node.types[0])) inlined_[size_t(node.id)] = false;
  }
}

const std::vector<Value>& Inlining::operands(const Node& node) const {
  auto& out = operands_[size_t(node.id)];
  if (known_[size_t(node.id)]) return out;
  known_[size_t(node.id)] = true;
  out.clear();
  auto add = [&](Value v) {
    if (std::find(out.begin(), out.end(), v) == out.end()) out.push_back(v);
  };
  for (auto& v : node.inputs) {
    if (!transparent(*v.node)) {
      add(v);
      continue;
    }
    for (auto& behind : operands(*v.node)) add(behind);
  }
  return out;
}

bool Inlining::reads_by_map(const Node& node) const {
  if (is_map(node)) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](auto& v) { return transparent(*v.node); });
}

Readings Inlining::readings(const Node& node, bool direct) const {
  const Shape& domain = domain_of(node);
  Index at = domain_coordinates(domain);
  Dim lanes = at.empty() ? Dim(0) : at.back();
  Walk walk(*this, lanes);
  walk.node(node, at, direct);
  bool even = !at.empty() && domain[domain.size() - 1].is_number() && domain[domain.size() - 1].number() % 2 == 0;
  if (walk.out.in_lanes || !even || node.op->kind == OpKind::kReduce || node.op->kind == OpKind::kScan)
    return std::move(walk.out);
  walk.out.pairs = true;
  for (int place : {0, 1}) {
    at.back() = lanes * 2 + place;
    Walk apart(*this, lanes);
    apart.node(node, at);
    walk.out.pairs = walk.out.pairs && apart.out.in_lanes;
  }
  return std::move(walk.out);
}

}  // namespace sinter
