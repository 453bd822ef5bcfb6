#include "sinter/passes/min_cut.h"

#include <algorithm>

#include "sinter/base/error.h"

namespace sinter {

int MinCut::add_vertices(int count) {
  int first = int(out_.size());
  out_.resize(out_.size() + size_t(count));
  return first;
}

void MinCut::add_edge(int from, int to, int64_t capacity) {
  out_[size_t(from)].push_back(int(arcs_.size()));
  arcs_.push_back({to, capacity});
  out_[size_t(to)].push_back(int(arcs_.size()));
  arcs_.push_back({from, 0});
}

void MinCut::find_distances(int sink) {
  distance_.assign(out_.size(), -1);
  distance_[size_t(sink)] = 0;
  std::vector<int> queue{sink};
  for (size_t head = 0; head < queue.size(); ++head) {
    int at = queue[head];
    for (int arc : out_[size_t(at)]) {
      int from = arcs_[size_t(arc)].to;
      if (arcs_[size_t(arc ^ 1)].capacity == 0 || distance_[size_t(from)] >= 0) continue;
      distance_[size_t(from)] = distance_[size_t(at)] + 1;
      queue.push_back(from);
    }
  }
}

// Depth first without recursion: a way may be as long as the graph.
void MinCut::saturate_shortest_ways(int source, int sink) {
  std::vector<size_t> next(out_.size(), 0);  // the first arc of each vertex that may still lead on
  std::vector<int> way;
  int at = source;
  while (true) {
    if (at == sink) {
      int64_t flow = kInfinite;
      for (int arc : way) flow = std::min(flow, arcs_[size_t(arc)].capacity);
      SINTER_INTERNAL_ASSERT(flow < kInfinite / 2, "no cut separates the source from the sink");
      size_t kept = way.size();
      for (size_t i = way.size(); i-- > 0;) {
        arcs_[size_t(way[i])].capacity -= flow;
        arcs_[size_t(way[i] ^ 1)].capacity += flow;
        if (arcs_[size_t(way[i])].capacity == 0) kept = i;
      }
      at = arcs_[size_t(way[kept] ^ 1)].to;
      way.resize(kept);
      continue;
    }
    auto& arcs = out_[size_t(at)];
    auto leads_on = [&](int arc) {
      return arcs_[size_t(arc)].capacity > 0 && distance_[size_t(arcs_[size_t(arc)].to)] == distance_[size_t(at)] - 1;
    };
    size_t& i = next[size_t(at)];
    while (i < arcs.size() && !leads_on(arcs[i])) ++i;
    if (i < arcs.size()) {
      way.push_back(arcs[i]);
      at = arcs_[size_t(arcs[i])].to;
    } else if (at == source) {
      return;
    } else {
      at = arcs_[size_t(way.back() ^ 1)].to;
      way.pop_back();
      ++next[size_t(at)];
    }
  }
}

std::vector<bool> MinCut::sink_side(int source, int sink) {
  for (find_distances(sink); distance_[size_t(source)] >= 0; find_distances(sink)) saturate_shortest_ways(source, sink);
  std::vector<bool> side(out_.size());
  for (size_t v = 0; v < side.size(); ++v) side[v] = distance_[v] >= 0;
  return side;
}

}  // namespace sinter
