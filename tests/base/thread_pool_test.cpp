#include "sinter/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "sinter/base/error.h"

namespace sinter {
namespace {

using Pieces = std::set<std::pair<int64_t, int64_t>>;

class ThreadPool : public testing::Test {
 protected:
  ~ThreadPool() override { set_num_threads(before_); }
  int before_ = num_threads();
};

Pieces pieces_of(int64_t begin, int64_t end, int64_t grain) {
  Pieces pieces;
  std::mutex mutex;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    std::lock_guard lock(mutex);
    EXPECT_TRUE(pieces.emplace(b, e).second);
  });
  return pieces;
}

TEST_F(ThreadPool, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (int64_t size : {0, 1, 7, 64, 1000, 5000})
      for (int64_t grain : {1, 3, 64, 10000}) {
        std::vector<int> hits(size_t(size), 0);
        parallel_for(-5, size - 5, grain, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) ++hits[size_t(i + 5)];
        });
        EXPECT_EQ(hits, std::vector<int>(size_t(size), 1)) << size << " by " << grain;
      }
  }
}

TEST_F(ThreadPool, PiecesDoNotDependOnTheNumberOfThreads) {
  for (auto [begin, end, grain] : {std::tuple{0, 10, 3}, {-7, 5000, 1}, {2, 3000, 2}, {0, 5, 5}}) {
    set_num_threads(1);
    Pieces alone = pieces_of(begin, end, grain);
    EXPECT_LE(alone.size(), 1024u);
    for (auto [b, e] : alone) {
      EXPECT_EQ((b - begin) % grain, 0);
      EXPECT_TRUE(e == end || (e - begin) % grain == 0);
    }
    for (int threads : {2, 3, 8}) {
      set_num_threads(threads);
      EXPECT_EQ(pieces_of(begin, end, grain), alone);
    }
  }
  EXPECT_EQ(pieces_of(0, 10, 3), (Pieces{{0, 3}, {3, 6}, {6, 9}, {9, 10}}));
}

TEST_F(ThreadPool, RunsOnSeveralThreadsAtOnce) {
  set_num_threads(3);
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for(0, 3, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 3u);
  EXPECT_TRUE(ids.count(std::this_thread::get_id()));
}

TEST_F(ThreadPool, SmallRangesAndOneThreadStayOnTheCaller) {
  auto self = std::this_thread::get_id();
  set_num_threads(4);
  for (int i = 0; i < 100; ++i)
    parallel_for(0, 8, 8, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
  set_num_threads(1);
  parallel_for(0, 100, 1, [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
}

TEST_F(ThreadPool, NestedLoopsRunInline) {
  set_num_threads(4);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 50, 1, [&](int64_t, int64_t) {
    auto self = std::this_thread::get_id();
    parallel_for(0, 20, 1, [&](int64_t b, int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      sum += b;
    });
  });
  EXPECT_EQ(sum, 50 * 190);
}

TEST_F(ThreadPool, RethrowsTheFirstExceptionAndGoesOn) {
  for (int threads : {1, 2, 4}) {
    set_num_threads(threads);
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(parallel_for(0, 100, 1, [&](int64_t b, int64_t) { check(b % 10 != 3, "index {}", b); }), Error);
      std::atomic<int> count{0};
      parallel_for(0, 10, 1, [&](int64_t, int64_t) { ++count; });
      EXPECT_EQ(count, 10);
    }
  }
}

TEST_F(ThreadPool, StopsHandingOutPiecesAfterAnException) {
  set_num_threads(2);
  std::atomic<int> count{0};
  EXPECT_THROW(parallel_for(0, 1000, 1,
                            [&](int64_t, int64_t) {
                              if (++count == 1) throw 1;
                              std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            }),
               int);
  EXPECT_LT(count, 900);
}

TEST_F(ThreadPool, CallerSleepsWhileAWorkerIsSlow) {
  set_num_threads(2);
  auto self = std::this_thread::get_id();
  std::atomic<bool> worker_in{false}, finished{false};
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() == self) {
      while (!worker_in && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    } else {
      worker_in = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(15));  // longer than the caller spins
      finished = true;
    }
  });
  EXPECT_TRUE(worker_in);
  EXPECT_TRUE(finished);
}

TEST_F(ThreadPool, WorkersWakeAfterSleeping) {
  set_num_threads(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> arrived{0};
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    EXPECT_LT(std::chrono::steady_clock::now(), deadline);
  }
}

TEST_F(ThreadPool, ManyCallersExceptionsAndThreadCountChangesAtOnce) {
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int n = 1; !stop; n = n % 6 + 1) {
      set_num_threads(n);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0}, thrown{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&, t] {
      for (int round = 0; round < 300; ++round) {
        std::vector<int64_t> out(size_t(100 + round));
        try {
          parallel_for(0, int64_t(out.size()), 7, [&](int64_t b, int64_t e) {
            if (round % 10 == t && b > 50) throw round;
            parallel_for(b, e, 2, [&](int64_t b2, int64_t e2) {
              for (int64_t i = b2; i < e2; ++i) out[size_t(i)] += i;
            });
          });
        } catch (int r) {
          ++thrown;
          wrong += r != round;
          continue;
        }
        for (size_t i = 0; i < out.size(); ++i) wrong += out[i] != int64_t(i);
      }
    });
  for (auto& c : callers) c.join();
  stop = true;
  changer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(thrown, 4 * 30);
}

TEST_F(ThreadPool, TheCountMayChangeInsideALoop) {
  set_num_threads(3);
  std::atomic<int> count{0};
  parallel_for(0, 60, 1, [&](int64_t b, int64_t) {
    set_num_threads(int(b % 4) + 1);
    ++count;
  });
  EXPECT_EQ(count, 60);
}

TEST_F(ThreadPool, WorkersAreSharedWithACallerThatCameSecond) {
  set_num_threads(2);
  std::atomic<bool> first_in{false}, release_first{false}, helped{false};
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto late = [&] { return std::chrono::steady_clock::now() > deadline; };
  std::thread first([&] {
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      first_in = true;
      while (!release_first && !late()) std::this_thread::yield();
    });
  });
  while (!first_in && !late()) std::this_thread::yield();
  auto self = std::this_thread::get_id();
  parallel_for(0, 20'000, 1, [&](int64_t b, int64_t) {
    if (std::this_thread::get_id() != self) helped = true;
    if (b == 0) release_first = true;
    if (!helped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  first.join();
  EXPECT_TRUE(helped);
}

TEST_F(ThreadPool, RejectsBadArguments) {
  EXPECT_THROW(set_num_threads(0), Error);
  EXPECT_THROW(parallel_for(0, 4, 0, [](int64_t, int64_t) {}), Error);
  set_num_threads(3);
  EXPECT_EQ(num_threads(), 3);
}

// Each runs in a process of its own that must end by itself.
void expect_clean_exit(void (*program)()) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "");
}

TEST(ThreadPoolExit, WhileWorkersSleepOrSpin) {
  expect_clean_exit([] {
    set_num_threads(4);
    parallel_for(0, 100, 1, [](int64_t, int64_t) {});
    std::exit(0);
  });
}

TEST(ThreadPoolExit, FromInsideALoop) {
  expect_clean_exit([] {
    set_num_threads(3);
    static std::atomic<int> count{0};
    parallel_for(0, 100, 1, [](int64_t, int64_t) {
      if (++count == 50) std::exit(0);
    });
  });
}

TEST(ThreadPoolExit, EnvironmentSetsTheNumberOfThreads) {
  expect_clean_exit([] {
    setenv("SINTER_NUM_THREADS", "7", 1);
    std::exit(num_threads() == 7 ? 0 : 1);
  });
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT((setenv("SINTER_NUM_THREADS", "lots", 1), std::exit(num_threads() >= 1 ? 0 : 1)),
              testing::ExitedWithCode(0), "SINTER_NUM_THREADS=lots is not a number");
}

}  // namespace
}  // namespace sinter
