#include <algorithm>
#include <map>

#include "sinter/base/error.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/fuse_groups.h"
#include "sinter/passes/known_ops.h"

namespace sinter {

int Groups::order_of(const Node* node) const {
  node = source(node);
  auto* group = group_of_[size_t(node->id)];
  return group ? group->order : order_[size_t(node->id)];
}

bool Groups::is_fused(const Group& group) const {
  if (group.members.size() != 1) return group.members.size() > 1;
  return !group.products.empty() || has_inlined(*group.members[0]) || group.members[0]->op->kind == OpKind::kScatter;
}

bool Groups::has_inlined(const Node& node) const {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](auto& v) { return inlining_.transparent(*v.node); });
}

Graph Groups::rebuild() {
  mark_uses();
  // Items in the order of their making; views right behind what they look at.
  std::vector<std::pair<std::pair<int, int>, const Node*>> items;
  for (auto& node : graph_.nodes()) {
    if (inlining_.transparent(node)) continue;
    auto* group = group_of_[size_t(node.id)];
    if (group && is_fused(*group)) {
      if (group->members.back() == &node) items.push_back({{group->order, 0}, &node});
      continue;
    }
    bool view = node.op->kind == OpKind::kView;
    items.push_back({{order_of(&node), view ? 1 + node.id : 0}, &node});
  }
  std::stable_sort(items.begin(), items.end(), [](auto& a, auto& b) { return a.first < b.first; });
  values_.resize(graph_.nodes().size());
  for (auto& v : graph_.inputs()) values_[size_t(v.node->id)] = {out_.add_input(v.type(), v.node->name)};
  for (auto& [key, node] : items) {
    if (node->op->kind == OpKind::kInput || node->op->kind == OpKind::kScalar)
      continue;  // numbers: where they are read
    auto* group = group_of_[size_t(node->id)];
    if (group && is_fused(*group))
      emit(*group);
    else
      copy(*node);
  }
  std::vector<Value> outputs;
  for (auto& v : graph_.outputs()) outputs.push_back(value(v));
  out_.set_outputs(std::move(outputs));
  return std::move(out_);
}

// Several kernels that compute a half-precision value for themselves, and keep more digits of it than it has, would each make
// something else of it: what one finds to be the largest would be exceeded in another.
static Value as_stored(Graph& body, Value made) {
  DType dtype = made.type().dtype;
  if (made.node->op->kind != OpKind::kPointwise || !rounds_when_stored(dtype)) return made;
  const Op& cast = known_ops().cast;
  return body.add(cast, {made}, cast.parse({{"dtype", to_string(dtype)}}), made.node->where).result();
}

void Groups::mark_uses() {
  readers_.assign(graph_.nodes().size(), 0);
  for (auto& node : graph_.nodes())
    if (node.op->kind != OpKind::kView)
      for (auto& v : node.inputs) ++readers_[size_t(source(v.node)->id)];
  needed_outside_.assign(graph_.nodes().size(), false);
  for (auto& node : graph_.nodes()) {
    if (inlining_.inlined(node)) continue;  // who reads it decides
    auto* reader = group_of_[size_t(node.id)];
    bool fused = reader && is_fused(*reader);
    if (node.op->kind == OpKind::kView && inlining_.transparent(node)) continue;
    for (auto& v : inlining_.operands(node)) {
      const Node* from = source(v.node);
      auto* writer = group_of_[size_t(from->id)];
      if (node.op->kind == OpKind::kView && writer) continue;  // who reads the view decides
      if (!fused || writer != reader) needed_outside_[size_t(from->id)] = true;
    }
  }
  for (auto& v : graph_.outputs()) needed_outside_[size_t(source(v.node)->id)] = true;
}

Value Groups::value(Value old) {
  if (values_[size_t(old.node->id)].empty()) {
    // A number, or a view of a fused result that only now is needed.
    copy(*old.node);
  }
  return values_[size_t(old.node->id)][size_t(old.index)];
}

void Groups::copy(const Node& node) {
  auto& made = values_[size_t(node.id)];
  if (!made.empty()) return;
  // A view of something inside a group is made inside.
  if (node.op->kind == OpKind::kView) {
    const Node* from = source(&node);
    auto* group = group_of_[size_t(from->id)];
    if (group && is_fused(*group) && !needed_outside_[size_t(from->id)]) return;
  }
  std::vector<Value> inputs;
  for (auto& v : node.inputs) inputs.push_back(value(v));
  const Node& copied = out_.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where);
  for (size_t i = 0; i < node.types.size(); ++i) made.push_back(copied.result(int(i)));
}

void Groups::emit(const Group& group) {
  Graph body;
  std::map<std::pair<const Node*, int>, Value> inside;
  std::vector<Value> operands;
  auto value_inside = [&](auto& self, Value v) -> Value {
    auto key = std::pair(v.node, v.index);
    if (auto it = inside.find(key); it != inside.end()) return it->second;
    const Node* from = source(v.node);
    Value made;
    if (v.node->op->kind == OpKind::kScalar) {
      made = body.add_scalar(v.node->attrs.template as<ScalarAttrs>().value);
    } else if (group_of_[size_t(from->id)] == &group || inlining_.inlined(*from)) {
      // A view of a member, or what is computed here at other coordinates.
      std::vector<Value> inputs;
      for (auto& behind : v.node->inputs) inputs.push_back(self(self, behind));
      made = body.add_typed(*v.node->op, std::move(inputs), v.node->attrs, v.node->types, v.node->where).result();
      if (inlining_.inlined(*v.node) && readers_[size_t(v.node->id)] > 1) made = as_stored(body, made);
    } else {
      made = body.add_input(v.type());
      operands.push_back(value(v));
    }
    return inside[key] = made;
  };
  std::vector<Value> results;
  std::vector<const Node*> stored;
  std::string where;
  for (auto* member : group.members) {
    std::vector<Value> inputs;
    for (auto& v : member->inputs) inputs.push_back(value_inside(value_inside, v));
    inside[{member, 0}] = body.add_typed(*member->op, std::move(inputs), member->attrs, member->types, member->where).result();
    if (where.empty()) where = member->where;
    if (needed_outside_[size_t(member->id)]) {
      results.push_back(inside[{member, 0}]);
      stored.push_back(member);
    }
  }
  if (results.empty()) return;
  // The kernel of a contraction has a result of its own to write; any that follows from it and can hold its sums will do.
  for (size_t p = 0; p < group.products.size(); ++p) {
    auto writes = [&](const Node* n) {
      return holds_product(n->types[0].dtype, group.products[p].node->types[0].dtype) &&
             (!group.apart() || product_of_[size_t(n->id)] == int(p));
    };
    if (std::any_of(stored.begin(), stored.end(), writes)) continue;
    results.push_back(inside[{group.products[p].node, 0}]);
    stored.push_back(group.products[p].node);
  }
  std::vector<Type> types;
  for (auto& v : results) types.push_back(v.type());
  body.set_outputs(std::move(results));
  FusedAttrs attrs{SubGraph(std::move(body)), group.domain, int64_t(group.inner)};
  const Node& node = out_.add_typed(fused_op(), std::move(operands), attrs, std::move(types), where);
  for (size_t i = 0; i < stored.size(); ++i) values_[size_t(stored[i]->id)] = {node.result(int(i))};
}

}  // namespace sinter
