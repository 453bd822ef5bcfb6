#pragma once
// A graph as a field of an attribute struct: a branch, or the body of a loop. It prints in one line,
//   then_branch={%0 = input : f32[3]; %1 = tanh(%0) : f32[3]; return %1}
// and takes part in equality and hashing by that text. Sizes of its types and attributes are mapped with those of the
// node.
#include <memory>
#include <mutex>

#include "sinter/graph/graph.h"

namespace sinter {

class SubGraph {
 public:
  SubGraph() = default;
  explicit SubGraph(Graph graph) : shared_(std::make_shared<Shared>(std::move(graph))) {}

  explicit operator bool() const { return bool(shared_); }
  const Graph& operator*() const { return shared_->graph; }
  const Graph* operator->() const { return &shared_->graph; }
  bool operator==(const SubGraph& other) const;
  // The graph's text in one line; made once for all copies, since every node that holds them is hashed by it.
  const std::string& line() const;

 private:
  struct Shared {
    explicit Shared(Graph g) : graph(std::move(g)) {}
    const Graph graph;
    std::once_flag once;
    std::string line;
  };
  std::shared_ptr<Shared> shared_;
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
