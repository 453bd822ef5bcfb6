// from_blob() inside a compiled function: memory of the host that changes, and goes.
#include <array>

#include "common.h"

namespace sinter {
namespace {

TEST(LentMemory, GoesWhenTheFunctionReturns) {
  auto f = compile([](const Tensor& x, double v) {
    std::vector<float> local(4, float(v));
    Tensor blob = from_blob(local.data(), {4});
    Tensor y = x + blob;
    std::fill(local.begin(), local.end(), -1.f);
    return y * blob;
  });
  for (double v : {1.0, 2.0, 1.0, 5.0}) EXPECT_TRUE(close(f(ones({4}), v), full({4}, -(1 + v)))) << v;
}

TEST(LentMemory, ChangesBetweenCalls) {
  std::array<float, 3> buffer{1, 2, 3};
  auto f = compile([&](const Tensor& x) { return x * from_blob(buffer.data(), {3}); });
  for (float v : {1.f, 7.f, 9.f}) {
    buffer[1] = v;
    EXPECT_TRUE(close(f(ones({3})), tensor({1.f, v, 3.f})));
  }
}

TEST(LentMemory, IsWrittenToAtOnce) {
  float seen = 0;
  auto body = [&](const Tensor& x) {
    std::array<float, 4> local{1, 2, 3, 4};
    Tensor blob = from_blob(local.data(), {2, 2});
    blob.add_(x);
    blob.slice(0, 1, 2).fill_(9);
    seen = local[0] * 100 + local[3];
    local[1] = 50;
    return blob.sum() + blob.index({0, 1});
  };
  auto f = compile(body);
  for (double v : {1.0, 2.0}) {
    Tensor got = f(full({2, 2}, v));
    float first = seen;
    EXPECT_TRUE(close(got, body(full({2, 2}, v))));
    EXPECT_EQ(first, seen);
  }
}

TEST(LentMemory, IsExplained) {
  std::array<float, 2> buffer{1, 2};
  std::string line;
  auto body = [&](const Tensor& x) {
    line = line_before(-1);
    return x + from_blob(buffer.data(), {2});
  };
  auto f = compile(body);
  auto text = compiler::explain(f, ones({2})).text();
  EXPECT_TRUE(has(text, "from_blob"));
  EXPECT_TRUE(has(text, line));
  auto whole = compile(body, {.fullgraph = true});
  EXPECT_TRUE(has(error_of([&] { whole(ones({2})); }), "from_blob"));
}

TEST(LentMemory, OfTheOutsideIsCapturedAsEver) {
  std::array<float, 2> buffer{1, 2};
  Tensor blob = from_blob(buffer.data(), {2});
  int traces = 0;
  auto f = compile([&, blob](const Tensor& x) {
    ++traces;
    return x + blob;
  });
  for (float v : {1.f, 7.f}) {
    buffer[1] = v;
    EXPECT_TRUE(close(f(ones({2})), tensor({2.f, v + 1})));
  }
  EXPECT_EQ(traces, 1);
}

}  // namespace
}  // namespace sinter
