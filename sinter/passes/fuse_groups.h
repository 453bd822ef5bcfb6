#pragma once
// The groups that fusion finds, and the graph that they become.
#include <deque>
#include <utility>
#include <vector>

#include "sinter/graph/extract.h"
#include "sinter/ops/fused.h"
#include "sinter/passes/fuse_views.h"

namespace sinter {

struct Product {
  const Node* node;
  Shape domain;  // of the ops that follow: its shape, or that with its rows counted in another way
};

constexpr int kNoProduct = -1, kSeveral = -2;

struct Group {
  int order = 0;
  int phase = 0, piece = 0;  // of the node that began it
  Shape domain;
  size_t inner = 0;  // 0: nothing is reduced yet
  // Contractions of one left operand that the group begins with. Of equal shapes, they advance together and members may
  // read several of them; of different shapes, each has members of its own, over a domain of its own.
  std::vector<Product> products;
  bool reads_several = false;  // a member does
  bool closed = false;         // a sink: nothing joins it
  bool alone = false;          // an op that is a kernel by itself: nor is it merged
  bool pairs = false;          // some member keeps to lanes only with even and odd places apart
  std::vector<const Node*> members;
  std::vector<const Node*> readers;  // outside, behind views too

  bool apart() const {
    for (auto& p : products)
      if (!p.node->types[0].shape.same_as(products[0].node->types[0].shape)) return true;
    return false;
  }
};

// The one that this node is; null where it is none.
inline const Product* product_in(const Group& group, const Node* node) {
  for (auto& p : group.products)
    if (p.node == node) return &p;
  return nullptr;
}

class Groups {
 protected:
  Groups(const Graph& graph, const FuseOptions& options)
      : graph_(graph),
        inlining_(graph, options),
        order_(graph.nodes().size(), 0),
        group_of_(graph.nodes().size(), nullptr),
        product_of_(graph.nodes().size(), kNoProduct) {}

  // Behind views.
  static const Node* source(const Node* node) { return Inlining::source(node); }
  // When a node runs; a view as soon as what it looks at.
  int order_of(const Node* node) const;
  // Whether the group is more than an op that has a kernel anyway.
  bool is_fused(const Group& group) const;
  bool has_inlined(const Node& node) const;

  // The graph in which each group is a node. Once.
  Graph rebuild();

  const Graph& graph_;
  const Inlining inlining_;
  std::deque<Group> groups_;
  std::vector<int> order_;  // by node: when it runs
  std::vector<Group*> group_of_;
  std::vector<int> product_of_;  // by node: the product of its group that it follows from

 private:
  // A group as a kernel: its body so far, what it stores, and where the body has that.
  struct Kernel {
    Extraction body;
    std::vector<const Node*> stored;
    std::vector<Value> results;
  };

  void mark_uses();
  void copy(const Node& node);
  Extraction begin_body(const Group& group) const;
  std::vector<const Node*> stored_of(const Group& group) const;
  FusedAttrs rows_of(const Group& group, Kernel& kernel) const;
  FusedAttrs contraction_of(const Group& group, Kernel& kernel) const;
  void add_epilogue(const Group& group, std::span<const Product> products, Kernel& kernel) const;
  void emit(const Group& group);
  void emit_alone(const Node& node);

  Extraction out_;
  std::vector<bool> needed_outside_;
  std::vector<int> readers_;  // by node: how many others read it, or a view of it
  std::vector<bool> searched_;  // by node: a search for the largest or smallest reads it, or a view of it
};

}  // namespace sinter
