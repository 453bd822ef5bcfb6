#include "sinter/graph/interpreter.h"

#include "tests/graph/test_ops.h"

namespace sinter {
namespace {

using namespace test_ops;
using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;

// The first output of the graph `text` on these inputs.
Array run(const std::string& text, std::vector<Array> inputs) { return interpret(parse(text), inputs).at(0); }

TEST(Interpreter, PointwiseBroadcasts) {
  auto out = run("%0 = input : f32[2, 1]\n%1 = input : f32[3]\n%2 = t_add(%0, %1) : f32[2, 3]\nreturn %2",
                 {floats({2, 1}, {10, 20}), floats({3}, {1, 2, 3})});
  EXPECT_EQ(out.sizes, (IntList{2, 3}));
  EXPECT_EQ(out.f, (Doubles{11, 12, 13, 21, 22, 23}));
  auto none = run("%0 = input : f32[0, 3]\n%1 = t_add(%0, %0) : f32[0, 3]\nreturn %1", {floats({0, 3}, {})});
  EXPECT_EQ(none.numel(), 0);
}

TEST(Interpreter, NarrowIntegersWrap) {
  auto add = [](const char* dtype, Array x) {
    std::string d = dtype;
    return run("%0 = input : " + d + "[2]\n%1 = t_add(%0, %0) : " + d + "[2]\nreturn %1", {std::move(x)}).i;
  };
  EXPECT_EQ(add("i8", integers({2}, {100, -100}, kInt8)), (Integers{-56, 56}));
  EXPECT_EQ(add("u8", integers({2}, {200, 3}, kUInt8)), (Integers{144, 6}));
  EXPECT_EQ(add("i32", integers({2}, {2147483647, 1}, kInt32)), (Integers{-2, 2}));
  EXPECT_EQ(add("bool", integers({2}, {1, 0}, kBool)), (Integers{1, 0}));
}

TEST(Interpreter, TypingRules) {
  auto ints = integers({3}, {7, -3, 0}, kInt32);
  EXPECT_EQ(
      run("%0 = input : i32[3]\n%1 = scalar {value=2} : weak i64[]\n%2 = t_divide(%0, %1) : f32[3]\nreturn %2", {ints})
          .f,
      (Doubles{3.5, -1.5, 0}));
  EXPECT_EQ(
      run("%0 = input : i32[3]\n%1 = scalar {value=-0.5} : weak f64[]\n%2 = t_greater(%0, %1) : bool[3]\nreturn %2",
          {ints})
          .i,
      (Integers{1, 0, 1}));
  EXPECT_EQ(run("%0 = input : i32[3]\n%1 = t_and(%0, %0) : bool[3]\nreturn %1", {ints}).i, (Integers{1, 1, 0}));
  EXPECT_EQ(run("%0 = input : bool[2]\n%1 = t_bit_not(%0) : bool[2]\nreturn %1", {integers({2}, {1, 0}, kBool)}).i,
            (Integers{0, 1}));
  EXPECT_EQ(run("%0 = input : u8[1]\n%1 = t_bit_not(%0) : u8[1]\nreturn %1", {integers({1}, {5}, kUInt8)}).i,
            (Integers{250}));
  EXPECT_EQ(run("%0 = input : bool[2]\n%1 = input : i32[2]\n%2 = scalar {value=0.5} : weak f64[]\n"
                "%3 = t_choose(%0, %1, %2) : f32[2]\nreturn %3",
                {integers({2}, {1, 0}, kBool), integers({2}, {4, 4}, kInt32)})
                .f,
            (Doubles{4, 0.5}));
  EXPECT_EQ(
      run("%0 = input : i64[1]\n%1 = t_draw(%0) : f32[1]\nreturn %1", {integers({1}, {std::bit_cast<int64_t>(0.375)})})
          .f,
      (Doubles{0.375}));
}

TEST(Interpreter, NumbersAreConvertedToTheComputingType) {
  // 0.1f > 0.1 is false in f32, though 0.1f is larger than the double 0.1.
  const char* text =
      "%0 = input : f32[1]\n%1 = scalar {value=0.1} : weak f64[]\n%2 = t_greater(%0, %1) : bool[1]\nreturn %2";
  EXPECT_EQ(run(text, {floats({1}, {double(0.1f)})}).i, (Integers{0}));
}

TEST(Interpreter, CastsRoundAndWrap) {
  auto cast = [](const char* from, const char* to, Array x) {
    return run(
        "%0 = input : " + std::string(from) + "[1]\n%1 = t_cast(%0) {dtype=" + to + "} : " + to + "[1]\nreturn %1",
        {std::move(x)});
  };
  // f32 is the default of the attribute, but the text may state it.
  EXPECT_EQ(cast("f64", "f32", floats({1}, {0.1}, kFloat64)).f[0], double(0.1f));
  EXPECT_EQ(cast("f64", "f16", floats({1}, {0.1}, kFloat64)).f[0], 0.0999755859375);
  EXPECT_EQ(cast("f64", "bf16", floats({1}, {0.1}, kFloat64)).f[0], 0.10009765625);
  EXPECT_EQ(cast("i64", "f32", integers({1}, {16777217})).f[0], 16777216);
  EXPECT_EQ(cast("f32", "i8", floats({1}, {-3.9})).i[0], -3);
  EXPECT_EQ(cast("i64", "u8", integers({1}, {-1})).i[0], 255);
  EXPECT_EQ(cast("f32", "bool", floats({1}, {0.25})).i[0], 1);
  EXPECT_EQ(run("%0 = scalar {value=0.1} : weak f64[]\n%1 = t_cast(%0) {dtype=f64} : f64[]\nreturn %1", {}).f[0], 0.1);
}

TEST(Interpreter, Reductions) {
  auto x = floats({2, 3}, {1, 5, 3, 4, -2, 6});
  EXPECT_EQ(run("%0 = input : f32[2, 3]\n%1 = t_sum(%0) {dims=[1]} : f32[2]\nreturn %1", {x}).f, (Doubles{9, 8}));
  EXPECT_EQ(run("%0 = input : f32[2, 3]\n%1 = t_sum(%0) {dims=[-2], keepdim=true} : f32[1, 3]\nreturn %1", {x}).f,
            (Doubles{5, 3, 9}));
  EXPECT_EQ(run("%0 = input : f32[2, 3]\n%1 = t_sum(%0) : f32[]\nreturn %1", {x}).f, (Doubles{17}));
  EXPECT_EQ(run("%0 = input : f32[2, 3]\n%1 = t_max(%0) {dims=[0]} : f32[3]\nreturn %1", {x}).f, (Doubles{4, 5, 6}));
  EXPECT_EQ(run("%0 = input : f32[2, 3]\n%1 = t_sum(%0) {dtype=i64} : i64[]\nreturn %1",
                {floats({2, 3}, {.9, .9, .9, 1.9, 0, 0})})
                .i,
            (Integers{1}));
  EXPECT_EQ(run("%0 = input : i8[3]\n%1 = t_sum(%0) : i64[]\nreturn %1", {integers({3}, {100, 100, 100}, kInt8)}).i,
            (Integers{300}));
  EXPECT_EQ(run("%0 = input : i64[2]\n%1 = t_sum(%0) : i64[]\nreturn %1", {integers({2}, {INT64_MAX, 1})}).i,
            (Integers{INT64_MIN}));
  EXPECT_EQ(
      run("%0 = input : f32[2, 2]\n%1 = t_any(%0) {dims=[1]} : bool[2]\nreturn %1", {floats({2, 2}, {0, .5, 0, 0})}).i,
      (Integers{1, 0}));
  EXPECT_EQ(run("%0 = input : f32[]\n%1 = t_sum(%0) {dims=[-1]} : f32[]\nreturn %1", {floats({}, {3})}).f,
            (Doubles{3}));
  EXPECT_EQ(run("%0 = input : f32[2, 0]\n%1 = t_sum(%0) {dims=[1]} : f32[2]\nreturn %1", {floats({2, 0}, {})}).f,
            (Doubles{0, 0}));
  EXPECT_EQ(run("%0 = input : f32[2, 0]\n%1 = t_max(%0) {dims=[1]} : f32[2]\nreturn %1", {floats({2, 0}, {})}).f,
            (Doubles{-INFINITY, -INFINITY}));
  EXPECT_NE(message_of([] {
              run("%0 = input : f32[2, 0]\n%1 = t_argmin(%0) {dims=[1]} : i64[2]\nreturn %1", {floats({2, 0}, {})});
            }).find("t_argmin: no elements"),
            std::string::npos);
}

TEST(Interpreter, NaNWinsAndTheFirstOfEqualsIsKept) {
  auto x = floats({3, 4}, {3, 1, 1, 2, 5, NAN, 0, NAN, 2, 2, 2, 2});
  EXPECT_EQ(run("%0 = input : f32[3, 4]\n%1 = t_argmin(%0) {dims=[1]} : i64[3]\nreturn %1", {x}).i,
            (Integers{1, 1, 0}));
  auto max = run("%0 = input : f32[3, 4]\n%1 = t_max(%0) {dims=[1]} : f32[3]\nreturn %1", {x}).f;
  EXPECT_EQ(max[0], 3);
  EXPECT_TRUE(std::isnan(max[1]));
}

TEST(Interpreter, ElementDefinitions) {
  EXPECT_EQ(
      run("%0 = input : f32[2, 3]\n%1 = t_transpose(%0) : f32[3, 2]\nreturn %1", {floats({2, 3}, {1, 2, 3, 4, 5, 6})})
          .f,
      (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("%0 = input : f32[2]\n%1 = t_pad(%0) {before=1, after=2, value=9.0} : f32[5]\nreturn %1",
                {floats({2}, {1, 2})})
                .f,
            (Doubles{9, 1, 2, 9, 9}));
  EXPECT_EQ(
      run("%0 = input : i8[1]\n%1 = t_pad(%0) {before=1, value=-inf} : i8[2]\nreturn %1", {integers({1}, {1}, kInt8)})
          .i,
      (Integers{-128, 1}));
  EXPECT_EQ(run("%0 = input : f32[2, 3]\n%1 = input : f32[3, 2]\n%2 = t_matmul(%0, %1) : f32[2, 2]\nreturn %2",
                {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3, 2}, {1, 0, 0, 1, 1, 1})})
                .f,
            (Doubles{4, 5, 10, 11}));
  EXPECT_EQ(run("%0 = input : i64[2, 3]\n%1 = t_cumsum(%0) {dim=1} : i64[2, 3]\nreturn %1",
                {integers({2, 3}, {1, 2, 3, 4, 5, 6})})
                .i,
            (Integers{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(
      run("%0 = input : i64[2, 3]\n%1 = t_cumsum(%0) : i64[2, 3]\nreturn %1", {integers({2, 3}, {1, 2, 3, 4, 5, 6})}).i,
      (Integers{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(run("%0 = input : f32[]\n%1 = t_cumsum(%0) : f32[]\nreturn %1", {floats({}, {4})}).f, (Doubles{4}));
}

TEST(Interpreter, IndicesAreWrappedAndChecked) {
  const char* text = "%0 = input : f32[5]\n%1 = input : i64[2]\n%2 = t_take(%0, %1) : f32[2]\nreturn %2";
  auto x = floats({5}, {0, 10, 20, 30, 40});
  EXPECT_EQ(run(text, {x, integers({2}, {-1, 2})}).f, (Doubles{40, 20}));
  EXPECT_EQ(message_of([&] { run(text, {x, integers({2}, {0, 7})}); }), "t_take: index 7 is out of range for size 5");
  EXPECT_EQ(message_of([&] { run(text, {x, integers({2}, {0, -6})}); }), "t_take: index -6 is out of range for size 5");
}

TEST(Interpreter, Scatter) {
  auto out =
      run("%0 = input : f32[3]\n%1 = input : i64[4]\n%2 = input : f32[4]\n%3 = t_scatter_add(%0, %1, %2) : "
          "f32[3]\nreturn %3",
          {floats({3}, {1, 1, 1}), integers({4}, {0, 2, 2, -1}), floats({4}, {10, 20, 30, 40})});
  EXPECT_EQ(out.f, (Doubles{11, 1, 91}));
}

TEST(Interpreter, OpaqueOpsMayGiveSeveralResultsAndSizesOfTheirOwn) {
  Graph g = parse("%0 = input : f32[4]\n%1 = t_extremes(%0) : (f32[], f32[])\nreturn %1.1, %1.0");
  auto out = interpret(g, std::vector{floats({4}, {3, -1, 7, 2})});
  EXPECT_EQ(out[0].f[0], 7);
  EXPECT_EQ(out[1].f[0], -1);
  // What follows sees the size that came out, in operands and in attributes.
  auto positions = run(
      "%0 = input : f32[4]\n%1 = t_positions(%0) : i64[u0]\n%2 = t_reshape(%1) {shape=[u0, 1]} : i64[u0, 1]\nreturn %2",
      {floats({4}, {0, 5, 0, 6})});
  EXPECT_EQ(positions.sizes, (IntList{2, 1}));
  EXPECT_EQ(positions.i, (Integers{1, 3}));
}

TEST(Interpreter, SymbolicSizesAreBoundByTheInputs) {
  const char* text =
      "%0 = input : f32[s0, s1]\n%1 = input : f32[2*s1]\n%2 = t_reshape(%0) {shape=[s0*s1]} : f32[s0*s1]\nreturn %2";
  auto out = run(text, {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({6}, {0, 0, 0, 0, 0, 0})});
  EXPECT_EQ(out.sizes, (IntList{6}));
  EXPECT_NE(message_of([&] {
              run(text, {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({4}, {0, 0, 0, 0})});
            }).find("should be 6"),
            std::string::npos);
  const char* same = "%0 = input : f32[s0]\n%1 = input : f32[s0]\nreturn %0";
  EXPECT_EQ(run(same, {floats({2}, {1, 2}), floats({2}, {1, 2})}).numel(), 2);
  EXPECT_THROW(run(same, {floats({2}, {1, 2}), floats({3}, {1, 2, 3})}), Error);
  EXPECT_THROW(run(same, {floats({2}, {1, 2})}), Error);
  EXPECT_THROW(run(same, {floats({2}, {1, 2}), integers({2}, {1, 2})}), Error);
  EXPECT_THROW(run("%0 = input : f32[2*s9]\nreturn %0", {floats({2}, {1, 2})}), Error);
}

TEST(Interpreter, SizesGivenByName) {
  Graph graph = parse("%0 = input : f32[2*s9]\nreturn %0");
  Array two = floats({2}, {1, 2});
  EXPECT_EQ(interpret(graph, {&two, 1}, {{"s9", 1}}).at(0).f, (Doubles{1, 2}));
  EXPECT_THROW(interpret(graph, {&two, 1}, {{"s9", 3}}), Error);
}

TEST(Interpreter, NumbersAsInputs) {
  // A number takes no part in the width of the result: i32 stays i32.
  std::string text = "%0 = input : i32[2]\n%1 = input : weak i64[]\n%2 = t_add(%0, %1) : i32[2]\nreturn %2";
  Array out = run(text, {integers({2}, {1, 2}, kInt32), to_array(Scalar(3))});
  EXPECT_EQ(out.dtype, kInt32);
  EXPECT_EQ(out.i, (Integers{4, 5}));
  EXPECT_EQ(to_array(Scalar(0.5)).f, (Doubles{0.5}));
  EXPECT_EQ(to_array(Scalar(true)).dtype, kBool);
}

TEST(Interpreter, CompositesRunThroughTheirDecomposition) {
  EXPECT_EQ(run("%0 = input : f32[2]\n%1 = input : f32[]\n%2 = t_add_one(%0, %1) : f32[2]\nreturn %2",
                {floats({2}, {1, 2}), floats({}, {10})})
                .f,
            (Doubles{12, 13}));
  EXPECT_EQ(run("%0 = input : f32[2]\n%1 = scalar {value=3} : weak i64[]\n%2 = t_add_one(%0, %1) : f32[2]\nreturn %2",
                {floats({2}, {1, 2})})
                .f,
            (Doubles{5, 6}));
}

TEST(Interpreter, ArraysAndTensors) {
  Tensor base = from_data(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});
  Array transposed = to_array(make_view(base, {3, 2}, {1, 3}, 0));
  EXPECT_EQ(transposed.f, (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(to_array(make_view(base, {2}, {2}, 1)).f, (Doubles{2, 4}));
  EXPECT_EQ(to_array(to_tensor(floats({1}, {0.1}, kFloat64), kBFloat16)).f, (Doubles{0.10009765625}));
  EXPECT_EQ(to_array(to_tensor(floats({3}, {1.7, -1.7, 300}), kInt8)).i, (Integers{1, -1, 44}));
  EXPECT_EQ(to_array(to_tensor(integers({2}, {0, 1}, kBool))).i, (Integers{0, 1}));
  EXPECT_EQ(to_tensor(floats({0, 2}, {})).sizes(), Shape({0, 2}));
}

}  // namespace
}  // namespace sinter
