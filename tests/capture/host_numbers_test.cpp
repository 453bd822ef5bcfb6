// Numbers that the host reads and feeds back: right in every call, and no kernel for each of them.
#include "common.h"
#include "sinter/base/stage_times.h"

namespace sinter {
namespace {

// Calls with `count` different numbers, each result as eager gives it; how many kernel texts were written on the way.
template <class Compiled, class F>
int64_t kernels_for(Compiled& compiled, F&& eager, int count, double tolerance = 1e-5) {
  int64_t kernels = 0;
  for (int i = 0; i < count; ++i) {
    Tensor x = wave({5}, i), number = full({}, 0.25 * i - 3, kFloat32);
    Tensor want = eager(x.clone(), number.clone());
    auto before = stage_times().kernels;
    Tensor got = compiled(x.clone(), number.clone());
    kernels += stage_times().kernels - before;
    EXPECT_TRUE(close(got, want, tolerance)) << i;
    if (::testing::Test::HasFailure()) break;
  }
  return kernels;
}

size_t segments_of(const auto& compiled) {
  size_t count = 0;
  for (auto& entry : compiled.function().entries()) count += entry->segments.size();
  return count;
}

std::string notes_of(const auto& compiled) {
  std::string text;
  for (auto& program : capture::explain(compiled.function()).programs) text += program.note + "\n";
  return text;
}

constexpr int kMany = 1000;

TEST(HostNumbers, ReadAsADouble) {
  std::string line;
  auto body = [&](const Tensor& x, const Tensor& t) {
    double factor = t.item<double>();
    line = line_before(-1);
    return x * factor + 1;
  };
  auto f = compile(body);
  EXPECT_LE(kernels_for(f, body, kMany), 12);
  EXPECT_LE(segments_of(f), 4u);
  EXPECT_TRUE(has(notes_of(f), "called every time"));
  EXPECT_TRUE(has(notes_of(f), line + " changes and is a value"));
}

TEST(HostNumbers, ReadAsAnInteger) {
  auto body = [](const Tensor& x, const Tensor& t) {
    int64_t n = (t * 4).to(kInt64).item<int64_t>();
    return x / n - n;
  };
  auto f = compile(body);
  int64_t kernels = 0;
  for (int i = 1; i < kMany; ++i) {
    Tensor x = wave({5}, i), t = full({}, double(i), kFloat32);
    auto before = stage_times().kernels;
    Tensor got = f(x, t);
    kernels += stage_times().kernels - before;
    ASSERT_TRUE(close(got, body(x, t))) << i;
  }
  EXPECT_LE(kernels, 12);
  EXPECT_LE(segments_of(f), 4u);
}

TEST(HostNumbers, ReadThroughAPointer) {
  std::string line;
  auto body = [&](const Tensor& x, const Tensor& t) {
    float factor = (t + 1).data_ptr<float>()[0];
    line = line_before(-1);
    return sin(x * factor) + factor * factor;
  };
  auto f = compile(body);
  EXPECT_LE(kernels_for(f, body, kMany), 12);
  EXPECT_LE(segments_of(f), 4u);
  EXPECT_TRUE(has(notes_of(f), line + " changes and is a value"));
}

TEST(HostNumbers, DecideAndAreUsed) {
  auto body = [](const Tensor& x, const Tensor& t) {
    float f = t.item<float>();
    if (f > 0) return x * 2 + f;
    if (f < -2) return x - 1;
    return -x;
  };
  auto f = compile(body);
  EXPECT_LE(kernels_for(f, body, kMany), 24);
  EXPECT_LE(segments_of(f), 8u);
}

// Equal numbers are one node of the graph: two that are equal in one call must not stay so.
TEST(HostNumbers, EqualOnceAndDifferentLater) {
  auto body = [](const Tensor& x, const Tensor& t) {
    double a = t.item<double>(), b = std::min(a, 2.0);
    return x * a + x * b + (a - b);
  };
  auto f = compile(body);
  EXPECT_LE(kernels_for(f, body, 100), 16);
}

TEST(HostNumbers, ThatNeverChangeStayConstants) {
  auto body = [](const Tensor& x, const Tensor& t) {
    double a = t.item<double>();
    return (x * 3 + a) * 0.5;
  };
  auto f = compile(body);
  kernels_for(f, body, 20);
  int texts = 0;
  for (auto& program : capture::explain(f.function()).programs)
    for (auto& graph : program.graphs) texts += has(graph, "number at") && has(graph, "value=0.5") && has(graph, "value=3");
  EXPECT_EQ(texts, 1);
}

TEST(HostNumbers, ThatBeginToVaryOneAfterTheOther) {
  int call = 0;
  auto body = [&](const Tensor& x, const Tensor& t) {
    Tensor y = x + (t.item<double>() > 1e9 ? 1 : 0);
    for (int k = 0; k < 12; ++k) y = y * 0.9 + (call > 4 * k ? call : 0);
    return y;
  };
  auto f = compile(body, {.options = {{"edge_limit", int64_t(1)}}});
  for (call = 0; call < 60; ++call) {
    Tensor x = wave({3}, call), t = full({}, double(call));
    ASSERT_TRUE(close(f(x, t), body(x, t))) << call;
  }
  EXPECT_LE(segments_of(f), 8u);
}

TEST(HostNumbers, ReachTheGradient) {
  auto body = [](const Tensor& x, const Tensor& t) {
    Tensor y = exp(x * 0.1);
    double n = 2.5 + t.item<double>() * t.item<double>();
    return pow(y, n) * n + y / n;
  };
  auto f = compile(body);
  int64_t kernels = 0;
  for (int i = 0; i < 40; ++i) {
    Tensor t = full({}, 0.05 * i), a = wave({5}, i).requires_grad_(), b = wave({5}, i).requires_grad_();
    auto before = stage_times().kernels;
    Tensor got = f(a, t);
    got.sum().backward();
    kernels += stage_times().kernels - before;
    Tensor want = body(b, t);
    want.sum().backward();
    ASSERT_TRUE(close(got, want)) << i;
    ASSERT_TRUE(close(a.grad(), b.grad(), 1e-4)) << i;
  }
  EXPECT_LE(kernels, 40);
}

// A loss scale that is read back and adapted, as mixed-precision training does.
TEST(HostNumbers, LossScaleReadBack) {
  auto train = [](bool compiled) {
    Tensor w = wave({4}).requires_grad_(), scale = full({}, 1024.0);
    auto step = [w, scale](const Tensor& x) {
      double factor = scale.item<double>();
      Tensor loss = ((w * x).sum() - 1).square();
      (loss * factor).backward();
      NoGradGuard no_history;
      w.sub_(w.grad() * (0.05 / factor));
      w.set_grad({});
      scale.copy_(loss.item() > 0.1 ? scale * 0.75 : scale + 8);
      return loss.detach();
    };
    auto f = compile(step);
    TensorList losses;
    for (int i = 0; i < 60; ++i) losses.push_back(compiled ? f(wave({4}, i)) : step(wave({4}, i)));
    if (compiled) {
      EXPECT_LE(segments_of(f), 12u);
    }
    return stack(losses);
  };
  EXPECT_TRUE(close(train(true), train(false), 1e-4));
}

TEST(HostNumbers, SizesRunOpByOpBeyondTheLimit) {
  std::string line;
  auto body = [&](const Tensor& x, const Tensor& t) {
    line = line_before(-1);
    int64_t n = t.item<int64_t>();
    return x.narrow(0, 0, n) * double(n) + 1;
  };
  auto f = compile(body, {.name = "cut"});
  int64_t kernels = 0;
  std::string said = logged("", [&] {
    for (int i = 0; i < 300; ++i) {
      Tensor x = wave({400}, i), t = tensor(int64_t(1 + i));
      auto before = stage_times().kernels;
      Tensor got = f(x, t);
      kernels += stage_times().kernels - before;
      ASSERT_TRUE(close(got, body(x, t))) << i;
    }
  });
  EXPECT_EQ(count_of(said, "recompile_limit"), 1) << said;
  EXPECT_TRUE(has(said, line));
  EXPECT_TRUE(has(notes_of(f), "run op by op"));
  EXPECT_TRUE(has(notes_of(f), line));
  EXPECT_LE(segments_of(f), 12u);
  EXPECT_LE(kernels, 60);
}

TEST(HostNumbers, SizesBeyondTheLimitHaveGradients) {
  auto body = [](const Tensor& x, const Tensor& t) {
    Tensor y = x * x;
    int64_t n = t.item<int64_t>();
    return (y.narrow(0, 0, n) * double(n)).sum();
  };
  auto f = compile(body, {.options = {{"recompile_limit", int64_t(2)}, {"edge_limit", int64_t(2)}}});
  for (int i = 0; i < 10; ++i) {
    Tensor a = wave({20}, i).requires_grad_(), b = wave({20}, i).requires_grad_(), t = tensor(int64_t(1 + i));
    f(a, t).backward();
    body(b, t).backward();
    ASSERT_TRUE(close(a.grad(), b.grad())) << i;
  }
}

// Branches by number share what is the same: the tensors and the numbers are those of the branch.
TEST(HostNumbers, BranchesKeepTheirOwnTensors) {
  TensorList tables = {full({3}, 1.0), full({3}, 2.0), full({3}, 3.0)};
  int traces = 0;
  auto f = compile([&, tables](const Tensor& x, const Tensor& t) {
    ++traces;
    int64_t n = t.item<int64_t>();
    return std::tuple(x * tables[size_t(n)] + tensor({1.0 * n, 2.0, 3.0}), x * double(n), n);
  });
  for (int64_t n : {0, 1, 2, 0, 1, 2, 1, 0}) {
    auto [a, b, number] = f(ones({3}), tensor(n));
    EXPECT_TRUE(close(a, tables[size_t(n)] + tensor({1.0 * n, 2.0, 3.0}))) << n;
    EXPECT_TRUE(close(b, full({3}, double(n)))) << n;
    EXPECT_EQ(number, n);
  }
  EXPECT_EQ(traces, 3);
}

TEST(HostNumbers, BranchesKeepTheirOwnLayout) {
  auto body = [](const Tensor& x, const Tensor& t) {
    double n = t.item<double>();
    return (x * 2).clone(n > 0 ? MemoryFormat::kContiguous : MemoryFormat::kChannelsLast);
  };
  for (int64_t edges : {1, 8}) {
    auto f = compile(body, {.options = {{"edge_limit", edges}}});
    for (double n : {1.0, -1.0, 2.0, -2.0}) {
      Tensor x = wave({2, 3, 4, 5}), t = full({}, n);
      EXPECT_EQ(f(x, t).strides(), body(x, t).strides()) << n;
    }
  }
}

}  // namespace
}  // namespace sinter
