// The examples of the reference (sinter/cli/examples.inc): each compiles and runs, and every public function has one.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sinter/cli/functions.h"
#include "sinter/ops/quantized.h"
#include "sinter/sinter.h"
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O0")
#endif

namespace sinter::cli {
namespace {

using namespace sinter::indexing;

// What the examples name, as the reference says (index_page in reference.cpp).
struct Examples {
  Tensor x = randn({3, 4}), y = randn({3, 4}), p = rand({3, 4}) + 0.25, u = rand({3, 4}) * 0.9 + 0.05;
  Tensor v = randn({4}), w = randn({3}), m = randn({4, 4}) + 4 * eye(4), s = matmul(m, m.t()) + eye(4);
  Tensor b = randn({2, 3, 4}), c = randn({2, 4, 5}), z = complex(x, y), one = tensor(1.5);
  Tensor n = randint(-5, 6, {3, 4}), k = randint(0, 3, {3, 4}), rows = tensor({2, 0}), labels = tensor({1, 3, 0});
  Tensor mask = x > 0, other = y > 0;
  Tensor sequence = randn({2, 3, 6}), image = randn({2, 3, 5, 6}), volume = randn({1, 2, 3, 4, 4});
  Tensor weight = randn({4, 3, 3, 3}), table = randn({5, 3}), maps = randn({2, 2, 3}), signal = randn({64}), directions = randn({2, 3});

  struct One {
    const char *name, *text;
    std::function<void()> run;
  };
  std::vector<One> list() {
    return {
#define EXAMPLE(name, ...) {#name, #__VA_ARGS__, [this] { static_cast<void>(__VA_ARGS__); }},
#include "sinter/cli/examples.inc"
#undef EXAMPLE
    };
  }
};

TEST(ReferenceExamples, Run) {
  manual_seed(5);
  Examples examples;
  for (auto& example : examples.list()) {
    try {
      example.run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << example.text << "\n  " << error.what();
    }
  }
}

TEST(ReferenceExamples, EveryFunctionHasOneThatCallsIt) {
  std::map<std::string, std::string> text;
  for (auto& example : Examples().list()) {
    EXPECT_TRUE(text.emplace(example.name, example.text).second) << example.name << " twice";
    EXPECT_NE(text[example.name].find(std::string(example.name) + "("), std::string::npos) << example.text;
    EXPECT_FALSE(functions_named(example.name).empty()) << example.name << " is no public function";
    EXPECT_EQ(example_of(example.name), example.text);
  }
  std::set<std::string> missing;
  for (auto& f : public_functions())
    // An op of one's own takes more than a line: the header begins with one.
    if (!text.contains(f.name) && std::string_view(f.header) != "sinter/ops/custom.h") missing.insert(f.name);
  for (auto& name : missing) ADD_FAILURE() << name << " has no example: add a line to sinter/cli/examples.inc";
}

TEST(ReferenceFunctions, AreFoundByLibTorchsNames) {
  for (const char* name : {"linalg::inv", "inv", "linalg_inv", "fft_rfft", "add_out", "linalg_inv_out"})
    EXPECT_FALSE(functions_named(name).empty()) << name;
  for (const char* name : {"linalg_rfft", "linalg_", "_out", "sparrow_out"}) EXPECT_TRUE(functions_named(name).empty()) << name;
}

}  // namespace
}  // namespace sinter::cli
