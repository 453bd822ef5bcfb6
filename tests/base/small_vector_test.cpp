#include "sinter/base/small_vector.h"

#include <gtest/gtest.h>

#include <list>
#include <numeric>
#include <vector>

namespace sinter {
namespace {

using Sizes = SmallVector<int64_t, 4>;

static_assert(std::is_nothrow_move_constructible_v<Sizes> && std::is_nothrow_move_assignable_v<Sizes>);

int64_t sum(std::span<const int64_t> values) { return std::accumulate(values.begin(), values.end(), int64_t(0)); }

TEST(SmallVector, GrowsFromInlineToHeap) {
  Sizes v;
  EXPECT_TRUE(v.empty());
  auto inside = [&] { return (void*)v.data() >= (void*)&v && (void*)v.data() < (void*)(&v + 1); };
  for (int64_t i = 0; i < 100; ++i) {
    v.push_back(i);
    EXPECT_EQ(inside(), i < 4);
    EXPECT_EQ(v.back(), i);
  }
  EXPECT_EQ(v.size(), 100u);
  EXPECT_EQ(sum(v), 4950);
}

TEST(SmallVector, PushBackOfItsOwnElementWhileGrowing) {
  Sizes v{7, 8, 9, 10};
  v.push_back(v[0]);
  v.insert(v.begin(), v.back());
  EXPECT_EQ(v, (Sizes{7, 7, 8, 9, 10, 7}));
}

TEST(SmallVector, CopiesAreSeparate) {
  for (Sizes source : {Sizes{1, 2}, Sizes{1, 2, 3, 4, 5, 6}}) {
    Sizes copy = source, assigned{9, 9, 9};
    assigned = source;
    source[0] = 100;
    EXPECT_EQ(copy[0], 1);
    EXPECT_EQ(copy, assigned);
    EXPECT_FALSE(copy == source);
    const Sizes& alias = copy;
    copy = alias;
    EXPECT_EQ(copy, assigned);
  }
}

TEST(SmallVector, MovesLeaveTheSourceEmptyAndUsable) {
  for (Sizes target : {Sizes{}, Sizes{1, 2, 3, 4, 5}})
    for (Sizes source : {Sizes{1, 2}, Sizes{1, 2, 3, 4, 5, 6}}) {
      Sizes expected = source, to = target;
      const int64_t* heap = source.size() > 4 ? source.data() : nullptr;
      to = std::move(source);
      EXPECT_EQ(to, expected);
      EXPECT_EQ(to.data() == heap, expected.size() > 4);
      EXPECT_TRUE(source.empty());
      source.push_back(5);
      EXPECT_EQ(source, Sizes{5});
      Sizes made = std::move(to);
      EXPECT_EQ(made, expected);
    }
}

TEST(SmallVector, InsertAndErase) {
  Sizes v{1, 2, 4};
  EXPECT_EQ(*v.insert(v.begin() + 2, 3), 3);
  EXPECT_EQ(*v.insert(v.end(), 5), 5);
  EXPECT_EQ(v, (Sizes{1, 2, 3, 4, 5}));
  EXPECT_EQ(*v.erase(v.begin()), 2);
  auto* rest = v.erase(v.begin() + 1, v.end());
  EXPECT_EQ(rest, v.end());
  EXPECT_EQ(v, Sizes{2});
}

TEST(SmallVector, ResizeFillsAndCuts) {
  Sizes v(size_t(3), 7);
  EXPECT_EQ(v, (Sizes{7, 7, 7}));
  v.resize(6);
  EXPECT_EQ(v, (Sizes{7, 7, 7, 0, 0, 0}));
  v.resize(1);
  v.resize(2, v[0]);
  EXPECT_EQ(v, (Sizes{7, 7}));
  v = {1, 2, 3};
  v.pop_back();
  v.append(std::vector<int64_t>{8, 9, 10});
  EXPECT_EQ(v, (Sizes{1, 2, 8, 9, 10}));
  v.clear();
  EXPECT_EQ(v.size(), 0u);
}

TEST(SmallVector, MeetsSpansAndRanges) {
  std::vector<int64_t> values{3, 1, 2};
  Sizes v{std::span<const int64_t>(values)};
  EXPECT_TRUE(v == values);
  std::list<int> list{4, 5};
  EXPECT_EQ(Sizes(list.begin(), list.end()), (Sizes{4, 5}));
  std::span<int64_t> writable = v;
  writable[0] = 30;
  EXPECT_EQ(v.front(), 30);
  std::sort(v.begin(), v.end());
  EXPECT_EQ(std::vector<int64_t>(v.rbegin(), v.rend()), (std::vector<int64_t>{30, 2, 1}));
  EXPECT_EQ(sum(Sizes{1, 2}), 3);
}

}  // namespace
}  // namespace sinter
