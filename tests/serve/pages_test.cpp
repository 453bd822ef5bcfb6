#include "sinter/serve/pages.h"

#include <gtest/gtest.h>

#include "sinter/base/error.h"

namespace sinter::serve {
namespace {

using Ids = std::vector<int64_t>;

TEST(PagePool, GivesEveryPageOnceAndNeverThePadding) {
  PagePool pool(3, 4);
  Ids taken;
  while (auto page = pool.take()) taken.push_back(*page);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (Ids{1, 2, 3}));
  EXPECT_EQ(pool.free(), 0);
  pool.release(2);
  EXPECT_EQ(pool.take(), 2);
  pool.release(2);
  EXPECT_THROW(pool.release(2), InternalError);
}

TEST(PagePool, FindsTheLongestPublishedBeginning) {
  PagePool pool(8, 2);
  const Ids text = {1, 2, 3, 4, 5, 6, 7};
  const uint64_t root = pool.root("");
  const int64_t a = *pool.take(), b = *pool.take();
  const uint64_t behind_a = pool.publish(root, std::span(text).subspan(0, 2), a);
  const uint64_t behind_b = pool.publish(behind_a, std::span(text).subspan(2, 2), b);
  auto match = pool.match(root, text, 3);
  EXPECT_EQ(match.pages, (Ids{a, b}));
  EXPECT_EQ(match.end, behind_b);
  EXPECT_EQ(pool.match(root, text, 1).pages, Ids{a});
  EXPECT_EQ(pool.match(pool.root("somebody else"), text, 3).pages, Ids{});
  // The same tokens behind something else are something else.
  EXPECT_EQ(pool.match(root, Ids{3, 4, 5}, 1).pages, Ids{});
  for (int64_t page : {a, b, a, b, a}) pool.release(page);
  EXPECT_EQ(pool.free(), 8) << "every holder has let go";
  EXPECT_EQ(pool.match(root, text, 3).pages, (Ids{a, b})) << "what nobody has is still known";
}

TEST(PagePool, ForgetsWhatWasNotUsedForLongest) {
  PagePool pool(2, 1);
  const uint64_t root = pool.root("");
  const int64_t a = *pool.take(), b = *pool.take();
  pool.publish(root, Ids{10}, a);
  pool.publish(root, Ids{20}, b);
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.take(), b);
  EXPECT_EQ(pool.match(root, Ids{20}, 1).pages, Ids{});
  EXPECT_EQ(pool.match(root, Ids{10}, 1).pages, Ids{a});
  EXPECT_EQ(pool.take(), std::nullopt);
}

TEST(PagePool, KeepsOnePageOfEqualTexts) {
  PagePool pool(2, 2);
  const uint64_t root = pool.root("");
  const int64_t a = *pool.take(), b = *pool.take();
  const uint64_t end = pool.publish(root, Ids{1, 2}, a);
  EXPECT_EQ(pool.publish(root, Ids{1, 2}, b), end);
  pool.release(b);
  pool.release(a);
  EXPECT_EQ(pool.match(root, Ids{1, 2}, 1).pages, Ids{a});
}

}  // namespace
}  // namespace sinter::serve
