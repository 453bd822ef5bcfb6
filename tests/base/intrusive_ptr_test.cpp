#include "sinter/base/intrusive_ptr.h"

#include <gtest/gtest.h>

#include <thread>
#include <unordered_set>
#include <vector>

namespace sinter {
namespace {

struct Counted : RefCounted {
  explicit Counted(int value = 0) : value(value) { ++alive; }
  Counted(const Counted& other) : RefCounted(other), value(other.value) { ++alive; }
  virtual ~Counted() { --alive; }
  int value;
  static inline std::atomic<int> alive{0};
};
struct Derived : Counted {
  using Counted::Counted;
};

TEST(IntrusivePtr, CountsOwners) {
  {
    auto a = make_intrusive<Counted>(3);
    EXPECT_EQ(a->value, 3);
    EXPECT_EQ(a.use_count(), 1u);
    IntrusivePtr<Counted> b = a, c;
    EXPECT_EQ(a.use_count(), 2u);
    c = std::move(b);
    EXPECT_EQ(b, nullptr);
    EXPECT_EQ(c, a);
    EXPECT_EQ(a.use_count(), 2u);
    c = *&c;
    c.reset();
    EXPECT_EQ(a.use_count(), 1u);
    EXPECT_EQ(c.use_count(), 0u);
    EXPECT_EQ(Counted::alive, 1);
    a = make_intrusive<Counted>(4);
    EXPECT_EQ(Counted::alive, 1);
  }
  EXPECT_EQ(Counted::alive, 0);
}

TEST(IntrusivePtr, ConvertsToBaseAndConst) {
  auto d = make_intrusive<Derived>(5);
  IntrusivePtr<Counted> base = d;
  IntrusivePtr<const Counted> fixed = base;
  EXPECT_EQ(fixed.use_count(), 3u);
  d.reset();
  base = nullptr;
  EXPECT_EQ(fixed->value, 5);
  fixed.reset();
  EXPECT_EQ(Counted::alive, 0);
  static_assert(!std::is_convertible_v<IntrusivePtr<Counted>, IntrusivePtr<Derived>>);
}

TEST(IntrusivePtr, ReleaseAdoptShare) {
  auto a = make_intrusive<Counted>();
  Counted* raw = a.release();
  EXPECT_FALSE(a);
  EXPECT_EQ(raw->use_count(), 1u);
  auto b = IntrusivePtr<Counted>::adopt(raw);
  auto c = IntrusivePtr<Counted>::share(raw);
  EXPECT_EQ(b.use_count(), 2u);
  Counted copy(*raw);
  EXPECT_EQ(copy.use_count(), 1u);
  EXPECT_EQ((std::unordered_set<IntrusivePtr<Counted>>{b, c}.size()), 1u);
}

TEST(IntrusivePtr, ThreadsShareOneObject) {
  auto shared = make_intrusive<Counted>(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([mine = shared] {
      for (int i = 0; i < 2000; ++i) {
        auto copy = mine;
        EXPECT_EQ(copy->value, 1);
      }
    });
  shared.reset();
  for (auto& t : threads) t.join();
  threads.clear();
  EXPECT_EQ(Counted::alive, 0);
}

}  // namespace
}  // namespace sinter
