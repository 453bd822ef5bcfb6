#pragma once
// Lines of C++ as programs for LibTorch have them, each compiled, run and compared with what LibTorch gives for the same line:
//
//   TEST_F(MathIdioms, OfOneTensor) {
//     IDIOM(torch::relu(x));
//     IDIOM_GRAD(torch::tanh(x));
//   }
//
// tools/record_idioms.py compiles these very sources with LibTorch (IDIOMS_OF_LIBTORCH is defined), runs them, and records the
// results under the text of the line. Operands are made by formulas; what is drawn has conditions instead of results.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <tuple>
#include <type_traits>
#include <vector>

#ifdef IDIOMS_OF_LIBTORCH
#include <torch/torch.h>
#else
#include "sinter/torch.h"
#endif
// Lines that run once are not worth optimising; the precompiled header, which is made with -O1, serves all the same.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O0")
#endif
namespace F = torch::nn::functional;
using namespace torch::indexing;

// An expression of the operands; a tensor, a number, sizes, or several of them.
#define IDIOM(...) IDIOM_TRY(expect_recorded(#__VA_ARGS__, results_of(__VA_ARGS__)), #__VA_ARGS__)
// Statements in braces, the last of which returns the result.
#define IDIOM_DO(...) IDIOM_TRY(expect_recorded(#__VA_ARGS__, results_of([&]() __VA_ARGS__())), #__VA_ARGS__)
// An expression of x, here a leaf, and the gradient of x for a fixed gradient of the result.
#define IDIOM_GRAD(...)                                                                            \
  {                                                                                                \
    torch::Tensor x = this->x.clone().set_requires_grad(true);                                     \
    IDIOM_TRY(expect_recorded("grad:" #__VA_ARGS__, with_gradient(__VA_ARGS__, x)), #__VA_ARGS__) \
  }
// A condition: of what is drawn, and of what is no tensor.
#define IDIOM_HOLDS(...) IDIOM_TRY(EXPECT_TRUE((__VA_ARGS__)) << "\n  " #__VA_ARGS__, #__VA_ARGS__)
#define IDIOM_HOLDS_DO(...) IDIOM_TRY(EXPECT_TRUE(([&]() __VA_ARGS__())) << "\n  " #__VA_ARGS__, #__VA_ARGS__)

// One line that throws does not hide those behind it.
#define IDIOM_TRY(statement, text)                               \
  try {                                                          \
    statement;                                                   \
  } catch (const std::exception& error) {                        \
    ADD_FAILURE() << "\n  " << (text) << "\n  " << error.what(); \
  }

// (2 ((37 i + 11 seed) % 61) - 61) / 32 at row-major position i: exact in f32, between -2 and 2, never zero, and different in
// any 61 neighbours.
torch::Tensor formula(torch::IntArrayRef shape, int64_t seed);

// What the lines work on.
struct Idioms : ::testing::Test {
  torch::Tensor x = formula({3, 4}, 1), y = formula({3, 4}, 2);
  torch::Tensor p = formula({3, 4}, 3).abs() + 0.25;      // positive
  torch::Tensor u = (formula({3, 4}, 4) + 2) / 4;         // between 0 and 1
  torch::Tensor v = formula({4}, 5), w = formula({3}, 6);
  torch::Tensor m = formula({4, 4}, 7);                   // regular
  torch::Tensor s = m.matmul(m.t()) + 4 * torch::eye(4);  // symmetric and positive-definite
  torch::Tensor b = formula({2, 3, 4}, 8), c = formula({2, 4, 5}, 9);
  torch::Tensor seq = formula({2, 3, 6}, 11), img = formula({2, 3, 5, 6}, 10), vol = formula({1, 2, 3, 4, 4}, 12);
  torch::Tensor n = (torch::arange(12) * 7 + 3).remainder(11).view({3, 4}) - 5;  // integers
  torch::Tensor k = (torch::arange(12) * 5 + 2).remainder(3).view({3, 4});       // positions below 3
  torch::Tensor rows = torch::tensor({2, 0}), labels = torch::tensor({1, 3, 0});
  torch::Tensor mask = x > 0, other = y > 0;
  torch::Tensor one = torch::tensor(1.5);
};

// The module with parameter j as formula(its shape, j + 1) / 4.
template <class M>
M filled(const M& module) {
  torch::NoGradGuard no_grad;
  int64_t seed = 0;
  for (auto& parameter : module->parameters()) parameter.copy_(formula(parameter.sizes(), ++seed) / 4);
  return module;
}

// --- results as a list of tensors: numbers of 0 dimensions, sizes of 1
using Results = std::vector<torch::Tensor>;
inline Results results_of(const torch::Tensor& result) { return {result}; }
inline Results results_of(const Results& results) { return results; }
Results results_of(torch::IntArrayRef numbers);
Results results_of(const std::vector<int64_t>& numbers);
Results results_of(const std::vector<double>& numbers);
#ifndef IDIOMS_OF_LIBTORCH
inline Results results_of(const torch::Dim& size) { return {torch::tensor(int64_t(size))}; }
inline Results results_of(const torch::Shape& sizes) { return results_of(sizes.vec()); }
#endif
template <class T>
  requires(std::is_arithmetic_v<T>)
Results results_of(T number) {
  using Wide = std::conditional_t<std::is_same_v<T, bool>, bool, std::conditional_t<std::is_integral_v<T>, int64_t, double>>;
  return {torch::full({}, Wide(number), torch::dtype<Wide>())};
}
inline Results results_of(const torch::Scalar& number) { return results_of(number.toDouble()); }
template <class... T>
Results results_of(const std::tuple<T...>& results) {
  Results all;
  auto append = [&](const Results& some) { all.insert(all.end(), some.begin(), some.end()); };
  std::apply([&](auto&... result) { (append(results_of(result)), ...); }, results);
  return all;
}

// The result, and the gradient that formula(its shape, 20) as its own gradient gives x.
Results with_gradient(const torch::Tensor& result, const torch::Tensor& x);

// Fails the test where the results are not those recorded under this text.
void expect_recorded(const char* text, const Results& results);
