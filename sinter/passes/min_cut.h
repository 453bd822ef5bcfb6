#pragma once
// The cheapest way to separate a source from a sink in a directed graph with capacities.
#include <cstdint>
#include <vector>

namespace sinter {

class MinCut {
 public:
  // The capacity of an edge that no cut may take. Those of all other edges together must stay below it.
  static constexpr int64_t kInfinite = INT64_MAX / 4;

  // Gives the first of `count` new vertices; they are numbered from 0.
  int add_vertices(int count = 1);
  void add_edge(int from, int to, int64_t capacity);

  // Whether each vertex lies on the sink's side of a cheapest cut. Of several, the one nearest to the sink: no cheapest
  // cut has fewer vertices on that side. Edges from the other side into this one are the cut. Called once.
  std::vector<bool> sink_side(int source, int sink);

 private:
  // Stored in pairs: the arc n ^ 1 leads back and holds the flow that may be undone.
  struct Arc {
    int to;
    int64_t capacity;
  };

  // Numbers the vertices by their distance to the sink over arcs with room left; -1 where there is no way.
  void find_distances(int sink);
  // Sends flow along shortest ways until none is left.
  void saturate_shortest_ways(int source, int sink);

  std::vector<Arc> arcs_;
  std::vector<std::vector<int>> out_;  // arcs by vertex
  std::vector<int> distance_;
};

}  // namespace sinter
