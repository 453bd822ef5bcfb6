#include "sinter/passes/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sinter/base/error.h"

namespace sinter {
namespace {

struct Edge {
  int from, to;
  int64_t capacity;
};

int64_t cost(const std::vector<Edge>& edges, const std::vector<bool>& sink_side) {
  int64_t sum = 0;
  for (auto& e : edges)
    if (!sink_side[size_t(e.from)] && sink_side[size_t(e.to)]) sum += e.capacity;
  return sum;
}

std::vector<bool> solve(int vertices, const std::vector<Edge>& edges) {
  MinCut cut;
  cut.add_vertices(vertices);
  for (auto& e : edges) cut.add_edge(e.from, e.to, e.capacity);
  return cut.sink_side(0, vertices - 1);
}

TEST(MinCut, TakesTheCutNearestToTheSink) {
  EXPECT_EQ(solve(4, {{0, 1, 5}, {1, 2, 5}, {2, 3, 5}}), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(solve(4, {{0, 1, 5}, {1, 2, 4}, {2, 3, 5}}), (std::vector<bool>{false, false, true, true}));
  // A vertex that leads nowhere, and a sink out of reach.
  EXPECT_EQ(solve(4, {{0, 1, 5}, {1, 2, 5}, {1, 3, 5}}), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(solve(3, {{0, 1, 5}}), (std::vector<bool>{false, false, true}));
}

TEST(MinCut, EqualsTheBestOfAllCuts) {
  std::mt19937 random(7);
  constexpr int kVertices = 8;
  for (int round = 0; round < 200; ++round) {
    std::vector<Edge> edges;
    for (int i = 0; i < 20; ++i)
      edges.push_back({int(random() % kVertices), int(random() % kVertices), int64_t(random() % 10)});
    auto found = solve(kVertices, edges);
    ASSERT_FALSE(found[0]);
    ASSERT_TRUE(found[kVertices - 1]);
    int64_t best = INT64_MAX, fewest = 0;
    for (int inner = 0; inner < 1 << (kVertices - 2); ++inner) {
      std::vector<bool> side(kVertices);
      side[kVertices - 1] = true;
      for (int v = 1; v < kVertices - 1; ++v) side[size_t(v)] = inner >> (v - 1) & 1;
      int64_t count = std::ranges::count(side, true), price = cost(edges, side);
      if (price > best || (price == best && count >= fewest)) continue;
      best = price;
      fewest = count;
    }
    EXPECT_EQ(cost(edges, found), best) << "round " << round;
    EXPECT_EQ(std::ranges::count(found, true), fewest) << "round " << round;
  }
}

TEST(MinCut, SaysWhenThereIsNone) {
  EXPECT_THROW(solve(3, {{0, 1, MinCut::kInfinite}, {1, 2, MinCut::kInfinite}}), InternalError);
}

// A way through every vertex: no recursion as deep as the graph.
TEST(MinCut, LongChains) {
  std::vector<Edge> edges;
  constexpr int kVertices = 200000;
  for (int v = 0; v + 1 < kVertices; ++v) edges.push_back({v, v + 1, v == 1000 ? 3 : MinCut::kInfinite});
  auto side = solve(kVertices, edges);
  EXPECT_EQ(std::ranges::count(side, true), kVertices - 1001);
}

}  // namespace
}  // namespace sinter
