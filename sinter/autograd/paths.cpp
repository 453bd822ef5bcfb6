#include "sinter/autograd/paths.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "sinter/autograd/history.h"
#include "sinter/autograd/node.h"
#include "sinter/base/hash.h"

namespace sinter::autograd {

namespace {

using Flags = std::vector<bool>;

void join(Flags& into, const Flags& more) {
  for (size_t i = 0; i < into.size(); ++i) into[i] = into[i] || more[i];
}

// Everything that gradients may come to from these edges: operands before results, so that one sweep is enough.
std::vector<const Node*> nodes_behind(const std::vector<Edge>& edges) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> nodes;
  auto visit = [&](const Edge& edge) {
    if (edge.node && seen.insert(edge.node.get()).second) nodes.push_back(edge.node.get());
  };
  for (auto& edge : edges) visit(edge);
  for (size_t at = 0; at < nodes.size(); ++at)
    for (auto& edge : nodes[at]->edges()) visit(edge);
  std::sort(nodes.begin(), nodes.end(), [](auto* a, auto* b) { return a->sequence() < b->sequence(); });
  return nodes;
}

// The number of an edge among some; nothing for others.
class Targets {
 public:
  explicit Targets(const TensorList& tensors) {
    auto edges = gradient_edges(tensors);
    for (size_t i = 0; i < edges.size(); ++i)
      if (edges[i]) numbers_[key(edges[i])].push_back(i);
  }
  const std::vector<size_t>* find(const Edge& edge) const {
    auto it = edge ? numbers_.find(key(edge)) : numbers_.end();
    return it == numbers_.end() ? nullptr : &it->second;
  }

 private:
  static std::pair<const void*, uint32_t> key(const Edge& edge) {
    if (edge.node) return {edge.node.get(), edge.index};
    return {edge.leaf.get(), 0};
  }
  std::map<std::pair<const void*, uint32_t>, std::vector<size_t>> numbers_;  // one tensor may be several of them
};

}  // namespace

std::vector<Flags> leads_to(const TensorList& roots, const TensorList& targets) {
  const Targets to(targets);
  auto from = gradient_edges(roots);
  std::unordered_map<const Node*, Flags> behind;  // by node: the targets that its edges lead to
  auto add = [&](Flags& into, const Edge& edge) {
    if (auto* here = to.find(edge))
      for (size_t i : *here) into[i] = true;
    if (edge.node) join(into, behind.at(edge.node.get()));
  };
  for (auto* node : nodes_behind(from)) {
    Flags& flags = behind.emplace(node, Flags(targets.size(), false)).first->second;
    for (auto& edge : node->edges()) add(flags, edge);
  }
  std::vector<Flags> out(from.size(), Flags(targets.size(), false));
  for (size_t i = 0; i < from.size(); ++i) add(out[i], from[i]);
  return out;
}

std::vector<Flags> paths_meet(const TensorList& tensors) {
  auto from = gradient_edges(tensors);
  auto nodes = nodes_behind(from);
  std::unordered_map<const Node*, Flags> comes;  // by node: the tensors whose gradients come to it
  for (auto* node : nodes) comes.emplace(node, Flags(tensors.size(), false));
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].node) comes.at(from[i].node.get())[i] = true;
  std::vector<Flags> out(tensors.size(), Flags(tensors.size(), false));
  for (auto* node : std::views::reverse(nodes)) {
    const Flags& here = comes.at(node);
    for (auto& edge : node->edges())
      if (edge.node) join(comes.at(edge.node.get()), here);
    for (size_t i = 0; i < here.size(); ++i)
      if (here[i]) join(out[i], here);
  }
  return out;
}

// What lies behind a target is no part of it: it may be another in each call.
uint64_t hash_of_paths(const TensorList& roots, const TensorList& targets) {
  const Targets to(targets);
  std::unordered_map<const Node*, uint64_t> numbers;  // in the order in which they are come to
  std::vector<const Node*> reached;
  uint64_t hash = 0;
  auto mix = [&](const Edge& edge) {
    if (auto* here = to.find(edge)) {
      hash = hash_mix(hash, 2 * here->front() + 1);
      return;
    }
    uint64_t number = 0;
    if (edge.node) {
      auto [it, fresh] = numbers.try_emplace(edge.node.get(), numbers.size() + 1);
      if (fresh) reached.push_back(edge.node.get());
      number = it->second;
    }
    hash = hash_mix(hash, hash_mix(number, 2 * uint64_t(edge.index) + bool(edge)));
  };
  for (auto& root : gradient_edges(roots)) mix(root);
  for (size_t at = 0; at < reached.size(); ++at)
    for (auto& edge : reached[at]->edges()) mix(edge);
  return hash;
}

}  // namespace sinter::autograd
