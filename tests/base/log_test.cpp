#include "sinter/base/log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

namespace sinter {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { set_logs(""); }
  template <class F>
  std::string stderr_of(F f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, WritesEnabledTopicsOnly) {
  set_logs("cache, perf");
  EXPECT_TRUE(log_enabled(LogTopic::kCache));
  EXPECT_TRUE(log_enabled(LogTopic::kPerf));
  EXPECT_FALSE(log_enabled(LogTopic::kGraph));
  EXPECT_EQ(stderr_of([] {
              log(LogTopic::kCache, "hit {} of {}", 1, "k3");
              log(LogTopic::kGraph, "unseen");
            }),
            "[sinter:cache] hit 1 of k3\n");
}

TEST_F(Log, EveryLineCarriesThePrefix) {
  set_logs("graph");
  EXPECT_EQ(stderr_of([] { log(LogTopic::kGraph, "a\n\nb\n"); }),
            "[sinter:graph] a\n[sinter:graph] \n[sinter:graph] b\n");
}

TEST_F(Log, UnknownTopicsGiveOneWarningThatListsTheKnown) {
  std::string text = stderr_of([] { set_logs("cahce,code,grpah"); });
  EXPECT_EQ(text,
            "[sinter] warning: SINTER_LOGS: no topic named cahce, grpah; the topics are graph, guards, recompiles, "
            "breaks, passes, fusion, code, autotune, cudagraphs, cache, perf, check\n");
  EXPECT_TRUE(log_enabled(LogTopic::kCode));
}

TEST_F(Log, TopicsBearTheirNames) {
  for (int i = 0; i <= int(LogTopic::kPerf); ++i) {
    set_logs(to_string(LogTopic(i)));
    for (int j = 0; j <= int(LogTopic::kPerf); ++j) EXPECT_EQ(log_enabled(LogTopic(j)), i == j);
  }
  EXPECT_EQ(to_string(LogTopic::kCudagraphs), "cudagraphs");
}

TEST_F(Log, ReadsTheEnvironment) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto program = [] {
    setenv("SINTER_LOGS", "fusion", 1);
    log(LogTopic::kFusion, "seen");
    std::exit(log_enabled(LogTopic::kCode) ? 1 : 0);
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0), "sinter:fusion. seen");
}

TEST_F(Log, WarnOnceIsOncePerKey) {
  EXPECT_EQ(stderr_of([] {
              for (int i = 0; i < 3; ++i) {
                warn_once("log_test a", "a {}", i);
                warn_once("log_test b", "b {}", i);
              }
              warn("plain");
            }),
            "[sinter] warning: a 0\n[sinter] warning: b 0\n[sinter] warning: plain\n");
}

TEST_F(Log, LinesOfThreadsDoNotMix) {
  set_logs("perf");
  std::string body(300, 'x');
  std::string text = stderr_of([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) log(LogTopic::kPerf, "{}\n{}", body, body);
      });
    for (auto& t : threads) t.join();
  });
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(line, "[sinter:perf] " + body);
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace sinter
