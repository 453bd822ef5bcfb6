#include "sinter/loops/sweep_builder.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/graph/nodes.h"
#include "sinter/loops/instr_builder.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

// The half-precision values that the kernel makes, stores and goes on with; the first `tiles` operands are not memory yet.
std::set<const Node*> stored_and_used(const Graph& body, int tiles) {
  std::set<const Node*> used, out;
  for (auto& node : body.nodes())
    if (node.op->kind != OpKind::kView)
      for (auto& v : node.inputs) used.insert(behind_views(v.node));
  for (auto& v : body.outputs()) {
    const Node* made = behind_views(v.node);
    auto loaded = body.inputs().begin() + tiles;
    bool from_memory = std::any_of(loaded, body.inputs().end(), [&](Value input) { return input.node == made; });
    if (rounds_when_stored(v.type().dtype) && !from_memory && used.contains(made)) out.insert(made);
  }
  return out;
}

std::string text_of(const Conditions& conditions) {
  std::string out;
  for (auto& c : conditions) out += format("|{}<{}%{}", c.value, c.extent, c.multiple);
  return out;
}

}  // namespace

SweepBuilder::SweepBuilder(const Graph& body, LoopNest& nest, std::span<const Layout> layouts,
                           const std::map<const Node*, int>& outers, Sweep& sweep)
    : body_(body), nest_(nest), layouts_(layouts), outers_(outers), sweep_(sweep), stored_(stored_and_used(body, nest.tiles)) {
  for (size_t i = 0; i < body.inputs().size(); ++i) input_of_[body.inputs()[i].node] = int(i) - nest.tiles;
}

int SweepBuilder::element(Value v, const Index& at) {
  std::string key = std::to_string(v.node->id);
  for (auto& d : at) key += "," + to_string(d);
  key += text_of(guards_);
  auto known = done_.find(key);
  if (known != done_.end()) return known->second;
  int id = make(v, at);
  if (stored_.contains(v.node)) id = rounded(id);
  done_.emplace(std::move(key), id);
  return id;
}

int SweepBuilder::make(Value v, const Index& at) {
  const Node& node = *v.node;
  if (spilled_ && spilled_->node == &node) {
    bool own = at.size() == spilled_->at.size();
    for (size_t d = 0; own && d < at.size(); ++d) own = at[d].same_as(spilled_->at[d]);
    if (own) {
      return add_instr(sweep_, {.kind = InstrKind::kLoad,
                                .dtype = v.type().dtype,
                                .operand = spilled_->operand,
                                .offset = spilled_->offset});
    }
  }
  switch (node.op->kind) {
    case OpKind::kInput: return is_tile(&node) ? tile(node) : load(input_of_.at(&node), at);
    case OpKind::kScalar: return add_constant(sweep_, node.attrs.as<ScalarAttrs>().value, v.type().dtype);
    case OpKind::kPointwise: return pointwise(node, at);
    case OpKind::kView:
      if (is_tile(&node)) return tile(node);
      return by_definition(node, at, {});
    case OpKind::kReduce:
      check_row(at);
      return add_instr(sweep_, {.kind = InstrKind::kOuter, .dtype = v.type().dtype, .operand = outers_.at(&node)});
    default:
      return by_definition(node, at, {});
  }
}

bool SweepBuilder::is_tile(const Node* node) const {
  auto input = input_of_.find(behind_views(node));
  return input != input_of_.end() && input->second < 0;
}

int SweepBuilder::tile(const Node& node) {
  return add_instr(sweep_, {.kind = InstrKind::kTile,
                            .dtype = node.types[0].dtype,
                            .operand = input_of_.at(behind_views(&node)) + nest_.tiles});
}

int SweepBuilder::load(int operand, const Index& at) {
  Instr instr{.kind = InstrKind::kLoad, .dtype = nest_.operands[size_t(operand)].dtype};
  instr.operand = operand;
  auto& layout = layouts_[size_t(operand)];
  if (!layout.scalar) {
    instr.offset = layout.offset_of(at);
    instr.conditions = guards_;
    instr.value = 0;
  }
  return add_instr(sweep_, std::move(instr));
}

// What decides something (compares, searches, counts) sees its operands as others do: the largest of some numbers, which was
// stored, is one of them.
int SweepBuilder::operand_of(const Node& reader, Value v, const Index& at) {
  int id = element(v, at);
  return rounds_when_stored(v.type().dtype) && !is_floating(reader.types[0].dtype) ? rounded(id) : id;
}

// A register holds more digits than memory: who reads the value from there would see another one.
int SweepBuilder::rounded(int id) {
  const Instr& made = sweep_.body[size_t(id)];
  return made.kind == InstrKind::kLoad || made.op == &known_ops().cast ? id : cast(id, made.dtype);
}

int SweepBuilder::cast(int id, DType dtype) {
  return add_apply(sweep_, known_ops().cast, dtype_of(id), dtype, {id});
}

int SweepBuilder::pointwise(const Node& node, const Index& at) {
  SmallVector<int, 4> args;
  std::vector<Type> types;
  for (auto& v : node.inputs) {
    auto& shape = v.type().shape;
    size_t shift = at.size() - shape.size();
    Index part;
    for (size_t d = 0; d < shape.size(); ++d) part.push_back(shape[d].same_as(1) ? Dim(0) : at[d + shift]);
    args.push_back(operand_of(node, v, part));
    types.push_back(v.type());
  }
  DType result = node.types[0].dtype, operands = types.empty() ? result : promote_operands(types);
  return add_apply(sweep_, *node.op, operands, result, std::move(args));
}

// A view, a copy, a creation or the inside of a reduction: by the op's own definition, operands being values of the body.
class SweepBuilder::Definition final : public InstrBuilder {
 public:
  Definition(const OpCall& call, SweepBuilder& builder, const Node& node)
      : InstrBuilder(call, builder.sweep_), builder_(builder), node_(node) {}

  Elem load(int operand, const Index& at) override {
    return {builder_.operand_of(node_, node_.inputs[size_t(operand)], at)};
  }

  Elem load_if(const Conditions& inside, int operand, const Index& at, const Scalar& otherwise) override {
    DType dtype = node_.inputs[size_t(operand)].type().dtype;
    Conditions open;
    for (auto& c : inside) {
      auto holds = decided(c);
      if (holds && !*holds) return {add_constant(sweep_, otherwise, dtype)};
      if (!holds) open.push_back(c);
    }
    if (open.empty()) return load(operand, at);
    Conditions before = builder_.guards_;
    builder_.guards_.append({open.data(), open.size()});
    int value = load(operand, at).id;
    builder_.guards_ = before;
    return select(open, {value}, {add_constant(sweep_, otherwise, dtype)});
  }

  Dim load_index(int operand, const Index& at, const Dim& extent) override {
    Instr instr{.kind = InstrKind::kLoadIndex, .dtype = kInt64};
    instr.args = {load(operand, at).id};
    instr.extent = extent;
    instr.conditions = builder_.guards_;
    instr.symbol = next_index();
    Dim symbol = instr.symbol;
    std::string& names = builder_.nest_.indexing;
    std::string name(call.op.name);
    if (names.find(name) == std::string::npos) names += (names.empty() ? "" : " or ") + name;
    add_instr(sweep_, std::move(instr));
    return symbol;
  }

  Elem select(const Conditions& conditions, Elem yes, Elem no) override {
    Conditions open;
    for (auto& c : conditions) {
      auto holds = decided(c);
      if (holds && !*holds) return no;
      if (!holds) open.push_back(c);
    }
    if (open.empty()) return yes;
    // What is chosen under the same conditions already: its first choice.
    auto& chosen = sweep_.body[size_t(yes.id)];
    if (chosen.kind == InstrKind::kSelect && text_of(chosen.conditions) == text_of(open)) yes = {chosen.args[0]};
    return {add_select(sweep_, open, yes.id, no.id)};
  }

 private:
  SweepBuilder& builder_;
  const Node& node_;
};

Index SweepBuilder::target(const Node& scatter, const Index& at) {
  std::vector<Type> types;
  for (auto& v : scatter.inputs) types.push_back(v.type());
  OpCall call{*scatter.op, types, scatter.attrs};
  Definition definition(call, *this, scatter);
  definition.i = at;
  return scatter.op->target(definition);
}

int SweepBuilder::by_definition(const Node& node, const Index& i, const Index& k) {
  std::vector<Type> types;
  for (auto& v : node.inputs) types.push_back(v.type());
  OpCall call{*node.op, types, node.attrs};
  Definition definition(call, *this, node);
  definition.i = i;
  definition.k = k;
  int id = node.op->element(definition).id;
  // What is made of plain numbers takes the type of what it fills.
  Instr& made = sweep_.body[size_t(id)];
  DType dtype = node.types[0].dtype;
  if (node.op->kind != OpKind::kLoop || node.op->combine != Combine::kNone || made.dtype == dtype) return id;
  if (made.kind != InstrKind::kConstant) return cast(id, dtype);
  made.dtype = dtype;
  return id;
}

int SweepBuilder::payload(const Node& node, const Index& row, const Index& inner) {
  std::vector<Type> types{node.inputs[0].type()};
  OpCall call{*node.op, types, node.attrs};
  Definition definition(call, *this, node);
  definition.i = row;
  definition.k = inner;
  return definition.number(node.op->payload(definition)).id;
}

// A row value is the same for the whole row, and exists for this row only.
void SweepBuilder::check_row(const Index& at) const {
  for (auto& d : at) {
    bool own = d.same_as(0);
    for (auto& axis : nest_.rows) own = own || d.same_as(axis.symbol);
    // An inner dimension of one element has one place.
    for (auto& axis : nest_.inner) own = own || (d.same_as(axis.symbol) && axis.extent.same_as(1));
    SINTER_INTERNAL_ASSERT(own, "a fused kernel reads the row value of another row, at {}", d);
  }
}

}  // namespace sinter
