// Values outside what an op is defined for, which only the values tell: refused eagerly, compiled and on a GPU.
#include "sinter/sinter.h"
#include "tests/errors/expect_error.h"

namespace sinter {
namespace {

struct Case {
  const char* op;
  std::function<Tensor(const TensorList&)> run;
  TensorList good, bad;
};

std::vector<Case> cases() {
  Tensor logits = ones({3, 5}), half = full({6}, 0.5), ints = arange(40);
  Tensor divisors = full({40}, 3, kInt64), zero_last = divisors.clone();
  zero_last.index_put_({39}, 0);
  auto with = [](const TensorList& first, const Tensor& last) {
    TensorList all = first;
    all.push_back(last);
    return all;
  };
  std::vector<Case> out;
  auto add = [&](const char* op, auto run, const TensorList& first, const Tensor& good, const TensorList& bad) {
    for (auto& b : bad) out.push_back({op, run, with(first, good), with(first, b)});
  };
  auto divide = [&](const char* op, auto run) {
    add(op, run, {ints}, divisors, {zero_last});
    add(op, run, {ints.to(kInt32)}, divisors.to(kInt32), {zero_last.to(kInt32)});
    add(op, run, {ints}, tensor(7), {tensor(0)});
  };
  divide("floor_divide", [](const TensorList& x) { return floor_divide(x[0], x[1]); });
  divide("floor_divide", [](const TensorList& x) { return div(x[0], x[1], "floor"); });
  divide("trunc_divide", [](const TensorList& x) { return div(x[0], x[1], "trunc"); });
  divide("remainder", [](const TensorList& x) { return x[0] % x[1]; });
  divide("fmod", [](const TensorList& x) { return fmod(x[0], x[1]); });
  add("one_hot", [](const TensorList& x) { return one_hot(x[0], 4); }, {}, tensor({0, 3}),
      {tensor({0, 4}), tensor({-1, 2})});
  add("nll_loss", [](const TensorList& x) { return nll_loss(x[0], x[1]); }, {logits}, tensor({0, 4, -100}),
      {tensor({0, 5, 1}), tensor({0, -1, 1})});
  add("cross_entropy", [](const TensorList& x) { return cross_entropy(x[0], x[1]); }, {logits}, tensor({0, 4, -100}),
      {tensor({0, 5, 1}), tensor({0, -1, 1})});
  add("binary_cross_entropy", [](const TensorList& x) { return binary_cross_entropy(x[1], x[0]); }, {half},
      linspace(0, 1, 6), {linspace(0, 1.1, 6), linspace(-0.1, 1, 6), full({6}, kNan)});
  add("bernoulli", [](const TensorList& x) { return bernoulli(x[0]); }, {}, linspace(0, 1, 5),
      {full({3}, 2.0), tensor({0.5, -0.1}), tensor({0.5, double(kNan)})});
  for (bool replacement : {false, true})
    add("multinomial", [=](const TensorList& x) { return multinomial(x[0], 1, replacement); }, {},
        tensor({0.0, 2.0, 1.0}),
        {zeros({3}), tensor({0.5, -0.5, 1.0}), tensor({1.0, double(kNan), 1.0}), tensor({1.0, double(kInf), 1.0}),
         tensor({{1.0, 2.0}, {0.0, 0.0}})});
  return out;
}

// The message that a run leaves, as soon as the host looks at the result.
std::string refusal(const std::function<Tensor(const TensorList&)>& run, const TensorList& inputs) {
  try {
    run(inputs).to_vector<double>();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Domains, Eager) {
  for (auto& c : cases()) {
    EXPECT_EQ(refusal(c.run, c.good), "") << c.op;
    EXPECT_NE(refusal(c.run, c.bad).find(std::string(c.op) + ": "), std::string::npos)
        << c.op << ": " << refusal(c.run, c.bad);
  }
}

TEST(Domains, Compiled) {
  for (auto& c : cases()) {
    auto fast = compile([&](const TensorList& x) { return c.run(x); });
    for (int call = 0; call < 2; ++call) {
      EXPECT_EQ(refusal(fast, c.good), "") << c.op;
      std::string told = refusal(fast, c.bad);
      EXPECT_NE(told.find(std::string(c.op) + ": "), std::string::npos) << c.op << ": " << told;
    }
  }
}

TEST(Domains, ByTheReferee) {
  for (auto& c : cases()) {
    auto slow = compile([&](const TensorList& x) { return c.run(x); }, {.backend = "interpreter"});
    EXPECT_EQ(refusal(slow, c.good), "") << c.op;
    EXPECT_NE(refusal(slow, c.bad).find(std::string(c.op) + ": "), std::string::npos) << c.op;
  }
}

TEST(GpuDomains, EagerAndCompiled) {
  if (!runtime::cuda_is_available()) GTEST_SKIP() << runtime::cuda_problem();
  auto moved = [](const TensorList& tensors) {
    TensorList out;
    for (auto& t : tensors) out.push_back(t.cuda());
    return out;
  };
  for (auto& c : cases()) {
    auto fast = compile([&](const TensorList& x) { return c.run(x); });
    for (auto& run : {c.run, std::function<Tensor(const TensorList&)>(fast)}) {
      EXPECT_EQ(refusal(run, moved(c.good)), "") << c.op;
      EXPECT_NE(refusal(run, moved(c.bad)).find(std::string(c.op) + ": "), std::string::npos) << c.op;
      EXPECT_EQ(refusal(run, moved(c.good)), "") << c.op << " is not usable after an Error";
    }
  }
}

TEST(Domains, NumbersAreRefusedAtTheLine) {
  Tensor x = arange(4);
  EXPECT_ERROR(x % 0, "remainder", "by zero");
  EXPECT_ERROR(floor_divide(x, 0), "floor_divide", "by zero");
  EXPECT_ERROR(x.remainder(tensor({1, 0, 1, 1})), "remainder", "by zero");
  EXPECT_ERROR(bernoulli(2.0), "bernoulli", "between 0 and 1");
  EXPECT_ERROR(multinomial(zeros({3}), 1), "multinomial", "all 0");
  EXPECT_ERROR(multinomial(tensor({-1.0, 2.0}), 1), "multinomial", "negative");
  EXPECT_ERROR(embedding(ones({3, 2}), tensor({1}), 3), "embedding", "padding_idx 3", "3 rows");
  EXPECT_ERROR(binary_cross_entropy(tensor({1.5}), tensor({1.0})), "binary_cross_entropy", "sigmoid()");
}

TEST(Domains, FloatingPointDividesByZero) {
  EXPECT_TRUE(has_values(floor_divide(tensor({1.0, -1.0}), 0), {kInf, -kInf}));
  EXPECT_TRUE(has_values(arange(1, 3) / 0, {kInf, kInf}));
  EXPECT_TRUE(has_values(tensor({1.0}) % 0, {kNan}));
}

// What is checked computes the same, also where it is differentiated.
TEST(Domains, ChecksChangeNoResult) {
  Tensor a = arange(-500, 500), b = (arange(1000) % 7) + 1;
  auto f = [](const Tensor& a, const Tensor& b) { return floor_divide(a, b) * 10 + a % b; };
  EXPECT_TRUE(equal(compile(f)(a, b), f(a, b)));
  auto loss = [](const Tensor& x, const Tensor& t) { return binary_cross_entropy(sigmoid(x), t); };
  Tensor x = linspace(-2, 2, 9).requires_grad_(), t = linspace(0, 1, 9);
  Tensor eager = autograd::grad({loss(x, t)}, {x})[0];
  auto fast = compile(loss);
  EXPECT_TRUE(allclose(autograd::grad({fast(x, t)}, {x})[0], eager, 1e-4, 1e-6));
}

}  // namespace
}  // namespace sinter
