#pragma once
// What a fused kernel computes where it is read instead of storing it: copies (cat, pad, flip, gather, …) pointwise
// values that are read at other coordinates than their own, through slices, permutes and reshapes, and small values that
// are the same along a row of their reader.
//
// Such a node is *inlined*: it belongs to no group, every reader's kernel computes it anew at the coordinates that it
// needs. That is done where it moves fewer bytes than a store and the loads after it; recomputing costs too, most of all
// for functions like exp.
#include "sinter/graph/graph.h"
#include "sinter/passes/fuse.h"

namespace sinter {

// A value that a node reads, behind everything inlined, and where: by the coordinates i0, i1, … of the node's domain.
struct Reading {
  Value value;       // neither inlined nor a view of something inlined
  const Node* root;  // behind the views that lead to the value
  Index at;          // coordinates of the root
};

struct Readings {
  std::vector<Reading> all;
  bool in_lanes = true;  // every access is regular along the last axis of the domain
  int strided = 0;       // accesses that move along it by more than an element
  bool cut = false;      // some condition changes along that axis
  bool pairs = false;    // that holds for its even and its odd places apart
  bool bounded = true;   // false: more than a kernel should do; `all` is not complete
};

// Of a scatter that a kernel can end with: the operand that is scattered, element by element. Each element replaces one of
// the result, at a place that is the same along the last axis but for the coordinate of that axis itself.
std::optional<size_t> scattered_operand(const Node& node);
// What a member of a group works over: the shape that it reduces or scatters, or that of its result.
const Shape& domain_of(const Node& node);
// The last dimensions that a reduction runs over; 0 when they are not the last ones.
size_t reduced_tail(const Node& node);
// Whether a kernel that takes a row a thread runs this reduction.
bool is_row_reduction(const Node& node, const FuseOptions& options);
// Whether a kernel of its own computes, where it reads, what this node reads: other reductions, searches, scans.
bool is_sink(const Node& node, const FuseOptions& options);
// Whether each element of the only result is defined by itself, by index arithmetic: a copy, a gather, a creation.
bool is_map(const Node& node);

class Inlining {
 public:
  Inlining(const Graph& graph, const FuseOptions& options);

  bool inlined(const Node& node) const { return inlined_[size_t(node.id)]; }
  // Inlined, or a view of something that is.
  bool transparent(const Node& node) const { return inlined(*source(&node)); }
  // What the node reads, each value once, behind what is inlined.
  const std::vector<Value>& operands(const Node& node) const;
  // Whether an operand is read in another way than element by element, so that `readings` has to tell where.
  bool reads_by_map(const Node& node) const;
  // `direct`: of operands that are not inlined too.
  Readings readings(const Node& node, bool direct = true) const;

  // Behind views.
  static const Node* source(const Node* node) {
    while (node->op->kind == OpKind::kView) node = node->inputs[0].node;
    return node;
  }

 private:
  struct Use {
    const Node* reader;
    Value value;  // the node's result or a view of it
  };

  void take_encoded_weights();
  bool can_inline_into(const Node& node) const;
  bool can_inline_into(const Node& node, size_t operand) const;
  bool is_shared_by_pairs(const std::vector<Use>& uses) const;
  bool is_candidate(const Node& node, const std::vector<Use>& uses) const;
  bool follows_contraction(const Node& node) const;
  bool widens_finished(const Node& node) const;
  static bool widens(const Node& node);
  bool widens_a_part(const Node& node) const;
  bool widens_for_several(const Node& node) const;
  bool is_row_constant(const Node& node, const std::vector<Use>& uses) const;
  bool saves(const Node& node, const std::vector<Use>& uses);
  bool regular(const Node& node, const std::vector<Use>& uses);
  void drop_useless();

  const Graph& graph_;
  const FuseOptions& options_;
  std::vector<bool> inlined_;
  std::vector<bool> small_;                   // by node: at most one dimension, computed from inputs alone
  std::vector<bool> row_constant_;            // by node: small, inlined, and computed once a row
  std::vector<bool> stored_;                  // by node: an output, or read by something that cannot inline
  std::vector<int> strided_;                  // by node: how many of its readings are strided so far; -1: not known
  std::vector<std::vector<Use>> uses_;        // by node that is no view
  std::vector<double> evaluations_;           // by node: of an element, in all
  std::vector<std::vector<const Node*>> final_readers_;  // by inlined node: the members that compute it
  mutable std::vector<std::vector<Value>> operands_;
  mutable std::vector<bool> known_;
};

}  // namespace sinter
