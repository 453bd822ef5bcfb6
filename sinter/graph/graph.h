#pragma once
// Graph: an append-only list of typed nodes in topological order, hash-consed. Passes rebuild graphs; nothing is edited
// in place. `text()` and `parse()` round-trip.
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/graph/op.h"

namespace sinter SINTER_API {

struct Node;

// One result of a node.
struct Value {
  const Node* node = nullptr;
  int index = 0;

  bool operator==(const Value&) const = default;
  explicit operator bool() const { return node != nullptr; }
  const Type& type() const;
};

// Where a node stands in a program that trains.
struct Marks {
  int phase = 0;              // rises where gradients begin to flow, and where they have flown: odd while they do
  bool again = false;         // computed a second time, for the gradients of this phase
  int region = 0;             // the call of checkpoint() that it belongs to: what stays inside is computed again, not kept
  int piece = 0;              // of rows that are computed piece by piece: kernels of different pieces stay apart

  bool operator==(const Marks&) const = default;
};

struct Node {
  int id = 0;  // position in the graph
  const Op* op = nullptr;
  std::vector<Value> inputs;
  Attrs attrs;
  std::vector<Type> types;  // of the results
  std::string name;         // inputs only: what the user calls it
  std::string where;        // "file:line" that made it; no part of equality
  Marks marks;              // nor these, but that what is computed again is another node
  uint64_t hash = 0;

  Value result(int i = 0) const { return {this, i}; }
};

inline const Type& Value::type() const { return node->types[size_t(index)]; }

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  Value add_input(const Type& type, const std::string& name = {});
  Value add_scalar(const Scalar& value);
  // Appends a node with inferred types, or gives the equal one that exists (unless the op is random).
  const Node& add(const Op& op, std::vector<Value> inputs, const Attrs& attrs = {}, const std::string& where = {});
  // The same with types that are known: how a node is copied. They must fit what the op infers.
  const Node& add_typed(const Op& op, std::vector<Value> inputs, const Attrs& attrs, std::vector<Type> types,
                        const std::string& where = {});
  // Of the nodes that are appended from now on, but for inputs and numbers.
  void set_marks(const Marks& marks) { marks_ = marks; }
  void set_outputs(std::vector<Value> outputs) { outputs_ = std::move(outputs); }

  const std::vector<Value>& inputs() const { return inputs_; }
  const std::vector<Value>& outputs() const { return outputs_; }
  const std::deque<Node>& nodes() const { return nodes_; }

  // One line a node:
  //   %0 = input : f32[2, s0] "x"
  //   %1 = sum(%0) {dims=[1], keepdim=true} : f32[2, 1]
  //   return %1
  // A second result prints as %1.1. Marks follow the type: `<phase 1, again>`. With positions, the user's line follows as a comment: `// model.cpp:12`.
  std::string text(bool positions = false) const;
  // Reads what text() writes; an Error names the line that it does not understand. `find` gives the op of a name.
  static Graph parse(std::string_view text, const Op* (*find)(std::string_view name) = find_op);
  // A number that two graphs share when they compute the same outputs from the same inputs; equal in every process.
  uint64_t hash() const;
  // Throws an internal error that shows the graph when an invariant is broken: order, arity, types as inferred.
  void verify() const;

 private:
  uint64_t hash_of(const Op& op, const std::vector<Value>& inputs, const Attrs& attrs) const;
  void check_operands(const Op& op, const std::vector<Value>& inputs) const;
  const Node* find_equal(uint64_t hash, const Op& op, const std::vector<Value>& inputs, const Attrs& attrs) const;
  const Node& append(const Op& op, std::vector<Value> inputs, const Attrs& attrs, std::vector<Type> types,
                     const std::string& where, uint64_t hash);

  std::deque<Node> nodes_;  // stable addresses
  std::vector<Value> inputs_, outputs_;
  Marks marks_;
  std::unordered_multimap<uint64_t, const Node*> by_hash_;
};

// The two ops that the graph itself provides.
extern const Op kInputOp, kScalarOp;
struct ScalarAttrs {
  Scalar value;
  SINTER_FIELDS(value)
};

}  // namespace sinter
