#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/contract.h"
#include "sinter/passes/fuse_groups.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

int Groups::order_of(const Node* node) const {
  node = source(node);
  auto* group = group_of_[size_t(node->id)];
  return group ? group->order : order_[size_t(node->id)];
}

bool Groups::is_fused(const Group& group) const {
  if (group.members.size() != 1) return group.members.size() > 1;
  return group.alone || !group.products.empty() || has_inlined(*group.members[0]) ||
         group.members[0]->op->kind == OpKind::kScatter;
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
  out_ = begin_copy(graph_);
  for (auto& [key, node] : items) {
    if (node->op->kind == OpKind::kInput || node->op->kind == OpKind::kScalar)
      continue;  // numbers: where they are read
    auto* group = group_of_[size_t(node->id)];
    if (group && group->alone)
      emit_alone(*node);
    else if (group && is_fused(*group))
      emit(*group);
    else
      copy(*node);
  }
  return out_.finish(graph_.outputs());
}

// Several kernels that compute a half-precision value for themselves, and keep more digits of it than it has, would each make
// something else of it: what one finds to be the largest would be exceeded in another. And of values that are equal as they are
// stored a search takes the first.
static Value as_stored(Graph& body, Value made) {
  DType dtype = made.type().dtype;
  if (made.node->op->kind != OpKind::kPointwise || !rounds_when_stored(dtype)) return made;
  const Op& cast = known_ops().cast;
  return body.add(cast, {made}, cast.parse({{"dtype", to_string(dtype)}}), made.node->where).result();
}

void Groups::mark_uses() {
  readers_.assign(graph_.nodes().size(), 0);
  searched_.assign(graph_.nodes().size(), false);
  for (auto& node : graph_.nodes())
    if (node.op->kind != OpKind::kView)
      for (auto& v : node.inputs) {
        ++readers_[size_t(source(v.node)->id)];
        if (node.op->payload) searched_[size_t(source(v.node)->id)] = true;
      }
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

void Groups::copy(const Node& node) {
  // A view of something inside a group is made inside.
  if (node.op->kind == OpKind::kView) {
    const Node* from = source(&node);
    auto* group = group_of_[size_t(from->id)];
    if (group && is_fused(*group) && !needed_outside_[size_t(from->id)]) return;
  }
  out_.copy(node);
}

// Inside are members, views of them, and what is computed here at other coordinates; contractions are not.
Extraction Groups::begin_body(const Group& group) const {
  Extraction body([this, &group](const Node& node) {
    const Node* from = source(&node);
    return !product_in(group, &node) && (group_of_[size_t(from->id)] == &group || inlining_.inlined(*from));
  });
  body.after_copy([this](Graph& part, const Node& node, Value made) {
    const bool is_compared = readers_[size_t(node.id)] > 1 || searched_[size_t(node.id)];
    return inlining_.inlined(node) && is_compared ? as_stored(part, made) : made;
  });
  return body;
}

std::vector<const Node*> Groups::stored_of(const Group& group) const {
  std::vector<const Node*> stored;
  for (auto* member : group.members)
    if (needed_outside_[size_t(member->id)]) stored.push_back(member);
  if (stored.empty()) return stored;
  // The kernel of a contraction has a result of its own to write; any that follows from it and can hold its sums will do.
  for (size_t p = 0; p < group.products.size(); ++p) {
    auto writes = [&](const Node* n) {
      return holds_product(n->types[0].dtype, group.products[p].node->types[0].dtype) &&
             (!group.apart() || product_of_[size_t(n->id)] == int(p));
    };
    if (std::none_of(stored.begin(), stored.end(), writes)) stored.push_back(group.products[p].node);
  }
  return stored;
}

FusedAttrs Groups::rows_of(const Group& group, Kernel& kernel) const {
  for (auto* member : group.members) kernel.body(member->result());
  for (auto* node : kernel.stored) kernel.results.push_back(kernel.body(node->result()));
  auto last = kernel.stored[0]->op->kind;
  const bool combination =
      !group.inner && kernel.stored.size() == 1 && (last == OpKind::kScan || last == OpKind::kReduce);
  return {.kind = combination ? FusedKind::kCombination : FusedKind::kRows, .domain = group.domain, .inner = int64_t(group.inner)};
}

FusedAttrs Groups::contraction_of(const Group& group, Kernel& kernel) const {
  for (auto& product : group.products) kernel.body.copy(*product.node);
  std::span<const Product> all = group.products;
  if (!group.apart()) {
    add_epilogue(group, all, kernel);
  } else {
    for (size_t p = 0; p < all.size(); ++p) add_epilogue(group, all.subspan(p, 1), kernel);
  }
  for (auto* node : kernel.stored) kernel.results.push_back(kernel.body(node->result()));
  const bool convolution = all[0].node->op == &convolution_op();
  return {.kind = convolution ? FusedKind::kConvolution : FusedKind::kProduct, .domain = group.domain};
}

// What follows these products, if anything does; it stores them as well, where they are wanted.
void Groups::add_epilogue(const Group& group, std::span<const Product> products, Kernel& kernel) const {
  auto is_of_these = [&](const Node* node) {
    return !group.apart() || group.products[size_t(product_of_[size_t(node->id)])].node == products[0].node;
  };
  Extraction body = begin_body(group);
  for (auto& product : products) body.add_operand(product.node->result());
  const Node* first = nullptr;
  for (auto* member : group.members) {
    if (product_in(group, member) || !is_of_these(member)) continue;
    body(member->result());
    if (!first) first = member;
  }
  if (!first) return;
  std::vector<Value> results, operands;
  std::vector<Type> types;
  for (auto* node : kernel.stored)
    if (is_of_these(node)) {
      results.push_back(node->result());
      types.push_back(node->types[0]);
    }
  FusedAttrs attrs{.kind = FusedKind::kEpilogue, .body = SubGraph(body.finish(results)), .tiles = int64_t(products.size())};
  attrs.domain = group.apart() ? products[0].domain : group.domain;
  attrs.inner = products[0].node->op == &convolution_op() ? int64_t(attrs.domain.size()) - 2 : 1;
  for (auto& v : body.operands()) operands.push_back(kernel.body(v));
  const Node& node = kernel.body.graph().add_typed(fused_op(), std::move(operands), attrs, std::move(types), first->where);
  for (size_t r = 0; r < results.size(); ++r) kernel.body.set(results[r], node.result(int(r)));
}

void Groups::emit_alone(const Node& node) {
  if (!needed_outside_[size_t(node.id)]) return;
  Extraction body([](const Node&) { return false; });
  body.copy(node);
  std::vector<Value> results, operands;
  for (size_t r = 0; r < node.types.size(); ++r) results.push_back(node.result(int(r)));
  FusedAttrs attrs{.kind = FusedKind::kAttention, .body = SubGraph(body.finish(results))};
  for (auto& v : body.operands()) operands.push_back(out_(v));
  out_.graph().set_marks(node.marks);
  const Node& made = out_.graph().add_typed(fused_op(), std::move(operands), attrs, node.types, node.where);
  for (size_t r = 0; r < results.size(); ++r) out_.set(results[r], made.result(int(r)));
}

void Groups::emit(const Group& group) {
  Kernel kernel{begin_body(group), stored_of(group), {}};
  if (kernel.stored.empty()) return;
  FusedAttrs attrs = group.products.empty() ? rows_of(group, kernel) : contraction_of(group, kernel);
  kernel.body.graph().set_outputs(kernel.results);
  attrs.body = SubGraph(std::move(kernel.body.graph()));
  std::vector<Value> operands;
  for (auto& v : kernel.body.operands()) operands.push_back(out_(v));
  std::vector<Type> types;
  for (auto* node : kernel.stored) types.push_back(node->types[0]);
  auto located = std::find_if(group.members.begin(), group.members.end(), [](auto* member) { return !member->where.empty(); });
  const std::string where = located == group.members.end() ? std::string() : (*located)->where;
  out_.graph().set_marks(group.members.front()->marks);
  const Node& node = out_.graph().add_typed(fused_op(), std::move(operands), attrs, std::move(types), where);
  for (size_t i = 0; i < kernel.stored.size(); ++i) out_.set(kernel.stored[i]->result(), node.result(int(i)));
}

}  // namespace sinter
