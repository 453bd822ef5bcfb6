#include "sinter/base/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sinter/base/thread_pool.h"

namespace sinter {
namespace {

TEST(Background, TasksRunInOrderOnOneThread) {
  auto tasks = BackgroundTasks::make();
  EXPECT_TRUE(tasks->idle());
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(tasks->submit([&, i] {
      order.push_back(i);
      threads.push_back(std::this_thread::get_id());
    }));
  tasks->wait();
  EXPECT_TRUE(tasks->idle());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[size_t(i)], i);
  for (auto& id : threads) EXPECT_TRUE(id == threads[0] && id != std::this_thread::get_id());
}

TEST(Background, GroupsWaitForTheirOwn) {
  auto a = BackgroundTasks::make(), b = BackgroundTasks::make();
  std::atomic<bool> open{false};
  a->submit([] {});
  b->submit([&] {
    while (!open) std::this_thread::yield();
  });
  a->wait();
  EXPECT_FALSE(b->idle());
  open = true;
  b->wait();
}

TEST(Background, WaitRethrowsTheFirstException) {
  auto tasks = BackgroundTasks::make();
  int ran = 0;
  tasks->submit([] { throw std::runtime_error("first"); });
  tasks->submit([] { throw std::runtime_error("second"); });
  tasks->submit([&] { ++ran; });
  for (int i = 0; i < 2; ++i) {
    try {
      tasks->wait();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "first");
    }
  }
  EXPECT_EQ(ran, 1) << "those behind it run all the same";
}

// Loops of a task leave the pool to others; but for those that shall share it.
TEST(Background, LoopsRunOnTheirThreadAlone) {
  auto tasks = BackgroundTasks::make();
  std::atomic<int> elsewhere{0};
  tasks->submit([&] {
    auto here = std::this_thread::get_id();
    parallel_for(0, 64, 1, [&](int64_t, int64_t) { elsewhere += std::this_thread::get_id() != here; });
  });
  tasks->wait();
  EXPECT_EQ(elsewhere, 0);
}

}  // namespace
}  // namespace sinter
