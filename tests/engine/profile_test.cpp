#include "sinter/engine/profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "sinter/engine/report.h"
#include "sinter/sinter.h"
#include "tests/engine/programs.h"
#include "tests/support/without_thread_sanitizer.h"

namespace sinter {
namespace {

using testing::Runner;
using testing::values;

constexpr const char* kProgram =
    "%0 = input : f32[64, 32]\n%1 = input : f32[32, 48]\n%2 = mm(%0, %1) : f32[64, 48]  // net.cpp:7\n"
    "%3 = cumsum(%2) {dim=0} : f32[64, 48]  // net.cpp:9\nreturn %3";

const Profile::KernelRow& row_of(const std::vector<Profile::KernelRow>& rows, const std::string& name) {
  for (auto& row : rows)
    if (row.name == name) return row;
  throw Error("no row " + name);
}

TEST(Profile, PlacesAreRowsOfTheirOwn) {
  Tensor x = rand({100});
  Profile profile;
  int line = __LINE__ + 1;
  Tensor y = x + 1;
  y = y + 2;
  y.add_(3);
  std::set<std::string> places;
  for (auto& row : profile.kernels()) {
    EXPECT_EQ(row.name, "add");
    EXPECT_EQ(row.calls, 1);
    EXPECT_EQ(row.cost.bytes(), 800);
    places.insert(join_places({row.where}));
  }
  std::set<std::string> expected;
  for (int i = 0; i < 3; ++i) expected.insert(format("profile_test.cpp:{}", line + i));
  EXPECT_EQ(places, expected);
}

TEST(Profile, StopsWhenToldOrWhenTheWorkEnds) {
  Tensor x = rand({10});
  Profile profile;
  exp(x);
  profile.stop();
  exp(x);
  EXPECT_EQ(profile.rows().at("exp").calls, 1);
  auto call = [&] { tanh(x); };
  Profile second{FunctionRef<void()>(call)};
  exp(x);
  EXPECT_EQ(second.rows().size(), 1u);
  EXPECT_EQ(second.rows().at("tanh").calls, 1);
  EXPECT_EQ(Profile::current(), nullptr);
}

TEST(Profile, OneAtATime) {
  Profile profile;
  EXPECT_THROW(Profile(), Error);
}

TEST(Profile, KernelsOfProgramsHaveTheirCost) {
  Runner runner(kProgram);
  Tensor a = values({64, 32}), b = values({32, 48});
  runner({a, b});
  Profile profile;
  runner({a, b});
  runner({a, b});
  auto rows = profile.kernels();
  auto& mm = row_of(rows, "mm");
  EXPECT_EQ(mm.calls, 2);
  EXPECT_EQ(mm.program, "test");
  EXPECT_EQ(mm.cost.read, 2 * (64 * 32 + 32 * 48) * 4);
  EXPECT_EQ(mm.cost.written, 2 * 64 * 48 * 4);
  EXPECT_EQ(mm.cost.flops, 2 * 2.0 * 64 * 32 * 48);
  EXPECT_EQ(row_of(rows, "cumsum").cost.flops, 0);
  EXPECT_GT(mm.best, 0);
  EXPECT_LE(2 * mm.best, mm.seconds);
  std::string table = profile.table();
  EXPECT_NE(table.find("test: mm"), std::string::npos) << table;
  EXPECT_NE(table.find("of ceiling"), std::string::npos) << table;
}

TEST(Profile, AGatherReadsNoMoreThanItTakes) {
  Tensor table = rand({10000, 16}), rows = arange(5);
  Profile profile;
  embedding(table, rows);
  int64_t bytes = 0;
  for (auto& [name, row] : profile.rows()) bytes += row.bytes;
  EXPECT_GE(bytes, 2 * 5 * 16 * 4);
  EXPECT_LT(bytes, 10000);
}

TEST(Profile, CompilingIsNoPartOfAKernelsTime) {
  // A kernel that no other test has: its text is new at least in this process.
  Tensor x = rand({3, 2, 5, 2, 7}).to(kFloat64);
  Profile profile;
  x.cumsum(2);
  auto rows = profile.kernels();
  double kernels = 0, events = 0;
  for (auto& row : rows) kernels += row.seconds;
  for (auto& e : profile.events())
    if (e.kind == Profile::Event::Kind::kKernel) events += e.seconds;
  EXPECT_GT(profile.compile_seconds(), 0);
  EXPECT_NEAR(kernels + profile.compile_seconds(), events, 1e-4);
}

// --- the trace -------------------------------------------------------------------------------------------------------

TEST(ChromeTrace, IsJsonWhoseEventsNest) {
  Runner runner(kProgram);
  Tensor a = values({64, 32}), b = values({32, 48});
  Profile profile;
  runner({a, b});
  a.exp();
  std::thread([&] {
    runner({a, b});
    b.exp();
  }).join();
  auto trace = nlohmann::json::parse(profile.chrome_trace());
  std::map<int, std::vector<nlohmann::json>> threads;
  std::set<std::string> names;
  for (auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    names.insert(event["cat"].get<std::string>() + " " + event["name"].get<std::string>());
    threads[event["tid"].get<int>()].push_back(event);
  }
  EXPECT_EQ(threads.size(), 2u);
  for (auto* name : {"program test", "kernel mm", "kernel cumsum", "eager exp"}) EXPECT_TRUE(names.contains(name)) << name;
  auto begin = [](auto& e) { return std::llround(e["ts"].template get<double>() * 1e3); };
  auto end = [&](auto& e) { return std::llround((e["ts"].template get<double>() + e["dur"].template get<double>()) * 1e3); };
  for (auto& [thread, events] : threads) {
    std::stable_sort(events.begin(), events.end(), [&](auto& x, auto& y) {
      return begin(x) != begin(y) ? begin(x) < begin(y) : end(x) > end(y);
    });
    std::vector<nlohmann::json> open;
    bool inside_program = false;
    for (auto& event : events) {
      while (!open.empty() && end(open.back()) <= begin(event)) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end(event), end(open.back())) << event << " in " << open.back();
      }
      inside_program = inside_program || (!open.empty() && open.front()["cat"] == "program" && event["cat"] == "kernel");
      open.push_back(event);
    }
    EXPECT_TRUE(inside_program);
  }
}

// --- advice ----------------------------------------------------------------------------------------------------------

class AdviceFromAProfile : public testing::WithoutThreadSanitizer {};

TEST_F(AdviceFromAProfile, AChainIsOneKernel) {
  constexpr int64_t kElements = 1 << 20;
  Tensor x = rand({kElements}), y = rand({kElements}), z;
  auto chain = [&] {
    Tensor a = x * y;
    Tensor b = tanh(a);
    Tensor c = b + x;
    z = c * 0.5;
  };
  int line = __LINE__ - 5;
  chain();
  Profile profile;
  for (int i = 0; i < 8; ++i) chain();
  auto list = profile.advise();
  ASSERT_EQ(list.size(), 1u) << profile.advice();
  EXPECT_EQ(list[0].where, format("profile_test.cpp:{}-{}", line, line + 3));
  EXPECT_EQ(list[0].calls, 8);
  EXPECT_EQ(list[0].ops, 4);
  EXPECT_EQ(list[0].kernels, 1);
  EXPECT_EQ(list[0].bytes, 10 * kElements * 4);
  EXPECT_EQ(list[0].compiled_bytes, 3 * kElements * 4);
  EXPECT_GT(list[0].gain(), 1);
  EXPECT_NE(profile.advice().find("4 ops, 41.9 MB moved, 12.6 MB in 1 kernel would do"), std::string::npos) << profile.advice();
}

TEST_F(AdviceFromAProfile, OneLineCalledAgainAndAgain) {
  Tensor x = rand({1 << 20}), y;
  auto line = [&] { y = tanh(x * 2) + x; };
  line();
  Profile profile;
  for (int i = 0; i < 8; ++i) line();
  auto list = profile.advise();
  ASSERT_EQ(list.size(), 1u) << profile.advice();
  EXPECT_EQ(list[0].calls, 8);
  EXPECT_EQ(list[0].ops, 3);
  EXPECT_EQ(list[0].compiled_bytes, 2 * (1 << 20) * 4);
}

TEST_F(AdviceFromAProfile, NothingWhereNothingFuses) {
  Tensor a = rand({96, 96});
  a.mm(a);
  Profile profile;
  a.mm(a);
  EXPECT_TRUE(profile.advise().empty()) << profile.advice();
}

}  // namespace
}  // namespace sinter
