#pragma once
// A graph as a field of an attribute struct: a branch, or the body of a loop. It prints in one line,
//   then_branch={%0 = input : f32[3]; %1 = tanh(%0) : f32[3]; return %1}
// and takes part in equality and hashing by that text. Sizes of its types and attributes are mapped with those of the
// node.
#include <memory>

#include "sinter/graph/graph.h"

namespace sinter {

class SubGraph {
 public:
  SubGraph() = default;
  explicit SubGraph(Graph graph) : graph_(std::make_shared<const Graph>(std::move(graph))) {}

  explicit operator bool() const { return bool(graph_); }
  const Graph& operator*() const { return *graph_; }
  const Graph* operator->() const { return graph_.get(); }
  bool operator==(const SubGraph& other) const;

 private:
  std::shared_ptr<const Graph> graph_;
};

// While it lives, equal texts that this thread reads become one graph: the layers of a network have the same bodies.
class SubGraphMemo {
 public:
  SubGraphMemo();
  ~SubGraphMemo();
  SubGraphMemo(const SubGraphMemo&) = delete;
};

std::string field_text(const SubGraph& v);
void parse_field(std::string_view text, SubGraph& out);
void map_field(const detail::DimMap& map, SubGraph& field);

}  // namespace sinter
