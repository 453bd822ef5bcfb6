// The faster candidate wins and is remembered, in the process and on disk; tuned programs compute what untuned ones do.
#include "sinter/engine/autotune.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/capture/compile.h"
#include "sinter/engine/cpu/candidates.h"
#include "sinter/engine/device/make_step.h"
#include "sinter/engine/report.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"
#include "tests/engine/programs.h"
#include "tests/support/own_directory.h"
#include "tests/support/lone_product.h"

namespace sinter {
namespace {

using testing::is_close;
using testing::values;

class ThreadCount {
 public:
  explicit ThreadCount(int n) : before_(num_threads()) { set_num_threads(n); }
  ~ThreadCount() { set_num_threads(before_); }

 private:
  int before_;
};

// Work of this length, by the thread's own clock: other programs do not shorten it.
void busy(int microseconds) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
  };
  for (int64_t end = now() + int64_t(microseconds) * 1000; now() < end;) {
  }
}

// A race between a slow default and a fast alternative, which counts the runs.
struct Race {
  int runs = 0;
  std::vector<Candidate> candidates{{"slow", [this] { ++runs, busy(400); }}, {"fast", [this] { ++runs, busy(100); }}};
  size_t choose(Autotuner& tuner, std::string_view key = "f32[2]") {
    return tuner.choose("test", key, candidates, 0.1).candidate;
  }
};

TEST(Autotune, the_faster_candidate_wins_and_is_remembered) {
  Autotuner tuner("");
  Race race;
  EXPECT_EQ(race.choose(tuner), 1u);
  EXPECT_GE(race.runs, 4);
  int runs = race.runs;
  EXPECT_EQ(race.choose(tuner), 1u);
  EXPECT_EQ(race.runs, runs);
  EXPECT_EQ(tuner.stats().timed, 1);
  EXPECT_EQ(tuner.stats().from_memory, 1);
  EXPECT_GT(tuner.stats().seconds, 0);
  EXPECT_EQ(race.choose(tuner, "f32[3]"), 1u);  // another key
  EXPECT_EQ(tuner.stats().timed, 2);
  EXPECT_EQ(tuner.path(1), "");
}

TEST(Autotune, a_slower_alternative_leaves_the_default) {
  Autotuner tuner("");
  Race race;
  std::swap(race.candidates[0], race.candidates[1]);
  EXPECT_EQ(race.choose(tuner), 0u);
}

TEST(Autotune, one_candidate_is_not_timed) {
  Autotuner tuner("");
  Candidate only{"only", [] { FAIL(); }};
  EXPECT_EQ(tuner.choose("test", "", {&only, 1}, 1).candidate, 0u);
  EXPECT_EQ(tuner.stats().timed, 0);
}

TEST(Autotune, winners_are_read_from_disk) {
  OwnDirectory directory;
  Race race;
  {
    Autotuner tuner(directory.path().string());
    race.choose(tuner);
  }
  Autotuner other(directory.path().string());
  int runs = race.runs;
  EXPECT_EQ(race.choose(other), 1u);
  EXPECT_EQ(race.runs, runs);
  EXPECT_EQ(other.stats().timed, 0);
  EXPECT_EQ(other.stats().from_disk, 1);
  // Another set of candidates is another question.
  race.candidates.push_back({"faster", [] { busy(20); }});
  EXPECT_EQ(race.choose(other), 2u);
  EXPECT_EQ(other.stats().timed, 1);
}

TEST(Autotune, another_number_of_threads_is_another_question) {
  OwnDirectory directory;
  Autotuner tuner(directory.path().string());
  Race race;
  ThreadCount one(1);
  race.choose(tuner);
  ThreadCount two(2);
  race.choose(tuner);
  EXPECT_EQ(tuner.stats().timed, 2);
  EXPECT_NE(tuner.path(1), tuner.path(2));
}

TEST(Autotune, a_damaged_file_is_ignored_with_one_warning) {
  OwnDirectory directory;
  Race race;
  {
    Autotuner tuner(directory.path().string());
    race.choose(tuner);
  }
  std::string path = Autotuner(directory.path().string()).path(num_threads());
  ASSERT_TRUE(std::filesystem::exists(path));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  Autotuner tuner(directory.path().string());
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(race.choose(tuner), 1u);
  std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(tuner.stats().timed, 1);
  size_t first = said.find("cannot be read");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cannot be read", first + 1), std::string::npos) << said;
  Autotuner repaired(directory.path().string());
  race.choose(repaired);
  EXPECT_EQ(repaired.stats().from_disk, 1);
}

TEST(Autotune, tuners_that_share_a_directory_lose_nothing) {
  OwnDirectory directory;
  constexpr int kTuners = 4, kKeys = 4;
  auto candidates = [] { return std::vector<Candidate>{{"slow", [] { busy(20); }}, {"fast", [] { busy(1); }}}; };
  std::vector<std::thread> threads;
  for (int t = 0; t < kTuners; ++t)
    threads.emplace_back([&, t] {
      Autotuner tuner(directory.path().string());
      for (int k = 0; k < kKeys; ++k) tuner.choose("test", format("{}", t * kKeys + k), candidates(), 0.001);
    });
  for (auto& thread : threads) thread.join();
  Autotuner all(directory.path().string());
  for (int k = 0; k < kTuners * kKeys; ++k) all.choose("test", format("{}", k), candidates(), 0.001);
  EXPECT_EQ(all.stats().from_disk, kTuners * kKeys);
}

TEST(Autotune, a_candidate_that_throws_is_out_of_the_race) {
  Autotuner tuner("");
  std::vector<Candidate> candidates{{"works", [] { busy(50); }}, {"throws", [] { throw Error("no"); }}};
  Chosen chosen = tuner.choose("test", "a", candidates, 0.01);
  EXPECT_EQ(chosen.candidate, 0u);
  ASSERT_EQ(chosen.seconds.size(), 2u);
  EXPECT_TRUE(std::isinf(chosen.seconds[1]));
  std::swap(candidates[0], candidates[1]);
  EXPECT_THROW(tuner.choose("test", "b", candidates, 0.01), Error);
}

TEST(Autotune, the_budget_is_kept) {
  Autotuner tuner("");
  int runs = 0;
  std::vector<Candidate> candidates{{"a", [&] { ++runs, busy(20000); }}, {"b", [&] { ++runs, busy(20000); }}};
  tuner.choose("test", "", candidates, 0.05);
  EXPECT_GE(runs, 2);
  EXPECT_LE(runs, 4);
}

// --- programs --------------------------------------------------------------------------------------------------------

std::shared_ptr<Executable> make(const char* text, double seconds) {
  return compile_program(
      {.graph = Graph::parse(text), .symbols = {}, .writes = {}, .name = "test", .tune_seconds = seconds});
}

int64_t choices() {
  auto stats = autotuner().stats();
  return stats.timed + stats.from_disk + stats.from_memory;
}

struct Case {
  const char* name;
  const char* text;
  std::vector<Shape> inputs;
  DType dtype = kFloat32;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"mm",
     R"(%0 = input : f32[33, 70] "x"
        %1 = input : f32[70, 50] "w"
        %2 = mm(%0, %1) : f32[33, 50]
        return %2)",
     {{33, 70}, {70, 50}}},
    {"mm_epilogue",
     R"(%0 = input : f32[33, 70] "x"
        %1 = input : f32[70, 50] "w"
        %2 = input : f32[50] "b"
        %3 = mm(%0, %1) : f32[33, 50]
        %4 = add(%3, %2) : f32[33, 50]
        %5 = relu(%4) : f32[33, 50]
        return %5)",
     {{33, 70}, {70, 50}, {50}}},
    {"mm_epilogue_bf16",
     R"(%0 = input : bf16[33, 70] "x"
        %1 = input : bf16[70, 50] "w"
        %2 = input : bf16[50] "b"
        %3 = mm(%0, %1) : bf16[33, 50]
        %4 = add(%3, %2) : bf16[33, 50]
        %5 = relu(%4) : bf16[33, 50]
        return %5)",
     {{33, 70}, {70, 50}, {50}},
     kBFloat16},
    {"bmm",
     R"(%0 = input : f32[5, 9, 20] "x"
        %1 = input : f32[5, 20, 31] "w"
        %2 = bmm(%0, %1) : f32[5, 9, 31]
        return %2)",
     {{5, 9, 20}, {5, 20, 31}}},
    {"convolution",
     R"(%0 = input : f32[2, 8, 12, 12] "x"
        %1 = input : f32[16, 8, 3, 3] "w"
        %2 = convolution(%0, %1) {stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=false, output_padding=[], groups=1} : f32[2, 16, 12, 12]
        return %2)",
     {{2, 8, 12, 12}, {16, 8, 3, 3}}},
};

class TunedProgram : public ::testing::TestWithParam<Case> {};

TEST_P(TunedProgram, computes_what_the_untuned_one_does) {
  auto& c = GetParam();
  std::vector<TensorArg> inputs;
  for (auto& shape : c.inputs) inputs.push_back(values(shape, double(inputs.size())).to(c.dtype));
  TensorList want(1), got(1);
  int64_t before = choices();
  make(c.text, 0)->run(inputs, {}, want);
  EXPECT_EQ(choices(), before);  // the default does not even look at winners
  auto tuned = make(c.text, 0.01);
  tuned->text();
  EXPECT_EQ(choices(), before);  // neither does looking at the plan
  tuned->run(inputs, {}, got);
  EXPECT_TRUE(is_close(got[0], want[0], c.dtype == kBFloat16 ? 2e-2 : 1e-4)) << tuned->text();
  bool several = runtime::best_cpu_isa() > runtime::CpuIsa::kAvx2 || !runtime::onednn_version().empty();
  if (several && std::string_view(c.name) != "convolution") {
    EXPECT_GT(choices(), before);
  }
  int64_t timed = autotuner().stats().timed;
  make(c.text, 0.01)->run(inputs, {}, got);
  EXPECT_EQ(autotuner().stats().timed, timed);  // remembered
}

INSTANTIATE_TEST_SUITE_P(Autotune, TunedProgram, ::testing::ValuesIn(kCases),
                         [](auto& info) { return std::string(info.param.name); });

// Two products, so that what wins by itself is compared in the program as well.
TEST(Autotune, reports_tell_what_was_tried) {
  const char* text = R"(%0 = input : f32[33, 70] "x"
    %1 = input : f32[70, 50] "w"
    %2 = input : f32[50, 90] "v"
    %3 = mm(%0, %1) : f32[33, 50]
    %4 = relu(%3) : f32[33, 50]
    %5 = mm(%4, %2) : f32[33, 90]
    return %5)";
  TensorList out(1);
  auto report = [&](double seconds) {
    auto program = make(text, seconds);
    program->run(std::vector<TensorArg>{values({33, 70}), values({70, 50}, 1), values({50, 90}, 2)}, {}, out);
    return program->report();
  };
  for (auto& kernel : report(0)->kernels) EXPECT_TRUE(kernel.tried.empty());
  auto tuned = report(0.01);
  if (runtime::best_cpu_isa() <= runtime::CpuIsa::kAvx2 && runtime::onednn_version().empty())
    GTEST_SKIP() << "there is only one way to multiply on this machine";
  bool in_place = false;
  for (auto& kernel : tuned->kernels) {
    ASSERT_GT(kernel.tried.size(), 1u) << kernel.name;
    EXPECT_EQ(std::count_if(kernel.tried.begin(), kernel.tried.end(), [&](auto& way) { return kernel.is_chosen(way); }), 1);
    EXPECT_GT(kernel.tried[0].seconds, 0);
    for (auto& way : kernel.tried) {
      EXPECT_NE(tuned->text().find(way.name), std::string::npos);
      in_place |= way.program_seconds > 0;
    }
  }
  // A default that is replaced has been beaten by itself, in the program, and together with the others.
  for (auto& kernel : tuned->kernels)
    if (!kernel.candidate.empty()) EXPECT_TRUE(in_place && tuned->tuned_seconds < tuned->untuned_seconds);
  EXPECT_EQ(report(0.01)->kernels[0].tried, tuned->kernels[0].tried);  // as remembered
}

TEST(Autotune, every_candidate_of_a_product_gives_the_same) {
  Tensor a = values({40, 64}), b = values({64, 48}, 1), want = mm(a, b), got = empty({40, 48});
  const TensorImpl *inputs[] = {&a.impl(), &b.impl()}, *output = &got.impl();
  std::shared_ptr<CompiledStep> step = make_step(testing::lone_product(a, b), inputs, {&output, 1}, Device());
  step->load();
  StepArguments arguments;
  for (auto* t : {&a, &b, &got}) arguments.add_address(int64_t(reinterpret_cast<uintptr_t>(t->data_ptr())));
  auto candidates = step->other_candidates();
  candidates.push_back(step);
  for (auto& candidate : candidates) {
    got.zero_();
    candidate->launch(arguments);
    EXPECT_TRUE(is_close(got, want)) << candidate->candidate();
  }
}

TEST(Autotune, modes_switch_it_on) {
  auto f = [](const Tensor& x, const Tensor& w) { return relu(matmul(x, w)); };
  Tensor x = values({20, 30}), w = values({30, 40}, 1);
  if (product_candidates({20, 40, 30, 1, {nullptr, 30, 1}, {nullptr, 40, 1}, {nullptr, 40, 1}}, true).size() < 2)
    GTEST_SKIP() << "there is only one way to multiply on this machine";
  auto choices_of = [&](CompileOptions options) {
    int64_t before = choices();
    EXPECT_TRUE(is_close(compile(f, options)(x, w), f(x, w)));
    return choices() - before;
  };
  EXPECT_EQ(choices_of({}), 0);
  EXPECT_EQ(choices_of({.mode = Mode::kReduceOverhead}), 0);
  EXPECT_EQ(choices_of({.mode = Mode::kMaxAutotune}), 1);
  EXPECT_EQ(choices_of({.mode = Mode::kMaxAutotuneNoCudagraphs}), 1);
  EXPECT_EQ(choices_of({.mode = Mode::kMaxAutotune, .options = {{"autotune_budget_ms", int64_t(0)}}}), 0);
}

// --- another process -------------------------------------------------------------------------------------------------

// Run by the test below, as a process with a cache directory of its own.
TEST(AutotuneProcess, DISABLED_tunes_and_says_so) {
  auto tuned = make(kCases[1].text, 0.01);
  std::vector<TensorArg> inputs;
  for (auto& shape : kCases[1].inputs) inputs.push_back(values(shape));
  TensorList out(1);
  tuned->run(inputs, {}, out);
  auto stats = autotuner().stats();
  std::printf("timed %d, from disk %d.\n", int(stats.timed), int(stats.from_disk));
}

TEST(AutotuneProcess, a_second_process_reads_the_winner_without_timing) {
  if (runtime::best_cpu_isa() <= runtime::CpuIsa::kAvx2 && runtime::onednn_version().empty())
    GTEST_SKIP() << "there is only one way to multiply on this machine";
  OwnDirectory directory;
  auto child = [&] {
    std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    std::string command = format("SINTER_CACHE_DIR={} '{}' --gtest_also_run_disabled_tests --gtest_filter={} 2>&1",
                                 directory.path().string(), program, "AutotuneProcess.DISABLED_tunes_and_says_so");
    std::string output;
    FILE* pipe = popen(command.c_str(), "r");
    for (char buffer[256]; fgets(buffer, sizeof buffer, pipe);) output += buffer;
    pclose(pipe);
    return output;
  };
  std::string first = child(), second = child();
  EXPECT_NE(first.find("timed 1, from disk 0."), std::string::npos) << first;
  EXPECT_NE(second.find("timed 0, from disk 1."), std::string::npos) << second;
}

}  // namespace
}  // namespace sinter
