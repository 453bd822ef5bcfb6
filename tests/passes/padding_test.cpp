#include "sinter/passes/padding.h"

#include "tests/passes/padding_check.h"

namespace sinter {
namespace {

using testing::Case, testing::distance, testing::kMask, testing::kTokens, testing::Program, testing::traced;

void expect_sound(const Program& f, const std::vector<std::string>& types) {
  Case c = traced(f, types);
  auto report = check_padding(c.graph, "s0", c.masks);
  for (auto& fault : report.faults) ADD_FAILURE() << fault.what << "\n" << c.graph.text();
  for (auto [size, padded] : {std::pair(8, 12), {8, 16}, {12, 16}, {4, 32}, {8, 8}})
    EXPECT_LT(distance(c, report, size, padded), 1e-9) << size << " padded to " << padded << "\n" << c.graph.text();
}

// The first fault names the op and the user's line, and the program does go wrong.
void expect_fault(const std::string& op, const std::string& what, const Program& f,
                  const std::vector<std::string>& types) {
  Case c = traced(f, types);
  auto report = check_padding(c.graph, "s0", c.masks);
  ASSERT_FALSE(report.faults.empty()) << c.graph.text();
  auto& fault = report.faults[0];
  EXPECT_EQ(fault.node->op->name, op) << fault.what;
  EXPECT_NE(fault.what.find("padding_test.cpp:"), std::string::npos) << fault.what;
  EXPECT_NE(fault.what.find(what), std::string::npos) << fault.what;
  EXPECT_GT(distance(c, report, 8, 12), 1e-6) << "a false alarm: " << fault.what << "\n" << c.graph.text();
}

TEST(Padding, TokensOneByOne) {
  expect_sound([](auto& x) { return TensorList{gelu(linear(x[0], x[1], x[2])) * 2 + 1}; },
               {kTokens, "f32[5, 6]", "f32[5]"});
  expect_sound([](auto& x) { return TensorList{layer_norm(x[0], {6}, x[1], x[2])}; }, {kTokens, "f32[6]", "f32[6]"});
  expect_sound([](auto& x) { return TensorList{softmax(x[0], -1), x[0].sum({-1}), mean(x[0], {2})}; }, {kTokens});
  expect_sound(
      [](auto& x) { return TensorList{embedding(x[1], x[0]) + embedding(x[2], arange_of_size(x[0].size(1)))}; },
      {"i64[2, s0]", "f32[4, 6]", "f32[99, 6]"});
  expect_sound([](auto& x) { return TensorList{x[0] + arange_of_size(x[0].size(1)).unsqueeze(1)}; }, {kTokens});
}

TEST(Padding, Views) {
  expect_sound(
      [](auto& x) {
        return TensorList{x[0].transpose(1, 2), x[0].unsqueeze(1), x[0].slice(1, 1)};
      },
      {kTokens});
  expect_sound(
      [](auto& x) {
        return TensorList{x[0].reshape({2, x[0].size(1), 3, 2}).permute({0, 2, 1, 3})};
      },
      {kTokens});
  expect_sound([](auto& x) { return TensorList{x[0].slice(1, 0, 3), x[0].select(1, 2)}; }, {kTokens});
  // A multiple of the size, and back.
  expect_sound(
      [](auto& x) {
        return TensorList{x[0].reshape({x[0].size(0) * 6}), x[0].reshape({x[0].size(0) / 2, 2, 6})};
      },
      {"f32[s0, 6]"});
  // Merged with the batch on the way only.
  expect_sound(
      [](auto& x) {
        Dim s = x[0].size(1);
        return TensorList{exp(x[0].reshape({s * 2, 6})).reshape({2, s, 3, 2})};
      },
      {kTokens});
  expect_sound(
      [](auto& x) {
        return TensorList{x[0].reshape({-1, 3}).exp().reshape({2, x[0].size(1), 6})};
      },
      {kTokens});
  expect_fault("view", "inside a merged dimension",
               [](auto& x) {
                 return TensorList{x[0].reshape({x[0].size(1) * 2, 6})};
               },
               {kTokens});
  expect_fault("select", "what it reads", [](auto& x) { return TensorList{x[0].select(1, -1)}; }, {kTokens});
  expect_fault("view", "what it reads",
               [](auto& x) {
                 return TensorList{x[0].reshape({6, 2, x[0].size(1)})};
               },
               {kTokens});
}

TEST(Padding, Reductions) {
  expect_sound([](auto& x) { return TensorList{x[0].sum({1}), x[0].sum()}; }, {kTokens});
  expect_fault("sum", "padding of s0", [](auto& x) { return TensorList{exp(x[0]).sum({1})}; }, {kTokens});
  expect_fault("sym_value", "value of the padded size", [](auto& x) { return TensorList{mean(x[0], {1})}; }, {kTokens});
  expect_fault("prod", "which are 0", [](auto& x) { return TensorList{prod(x[0], 1)}; }, {kTokens});
  expect_fault("amax", "which are -1", [](auto& x) { return TensorList{amax(-square(x[0]) - 1, {1})}; }, {kTokens});
  expect_fault("amin", "which are 0", [](auto& x) { return TensorList{amin(exp(x[0]) * x[0] * x[0], {1})}; },
               {kTokens});
  // The padding is 0, and so is the least that a square can be.
  expect_sound([](auto& x) { return TensorList{amax(square(x[0]), {1}), argmax(square(x[0]), 1)}; }, {kTokens});
  expect_sound(
      [](auto& x) {
        return TensorList{any(x[0], {1}), all(logical_not(x[0]), {1}), count_nonzero(x[0], {1})};
      },
      {kMask});
  expect_fault("all", "which are 0",
               [](auto& x) {
                 return TensorList{all(exp(x[0]) < 1 + x[0] * x[0] * 8, {1}), all(square(x[0]) > 0, {1})};
               },
               {kTokens});
  expect_fault("argmax", "which are 0", [](auto& x) { return TensorList{argmax(-square(x[0]), 1)}; }, {kTokens});
  expect_fault("argmax", "it makes a value of the padded size",
               [](auto& x) { return TensorList{argmax(square(x[0]))}; }, {kTokens});
  expect_sound(
      [](auto& x) {
        auto [values, positions] = max(x[0].masked_fill(logical_not(x[1]).unsqueeze(-1), -INFINITY), 1);
        return TensorList{values, positions};
      },
      {kTokens, kMask});
}

TEST(Padding, Pooling) {
  expect_sound(
      [](auto& x) {
        Tensor weight = x[1].to(kFloat32).unsqueeze(-1);
        return TensorList{(x[0].exp() * weight).sum({1}) / weight.sum({1})};
      },
      {kTokens, kMask});
  expect_sound(
      [](auto& x) {
        Tensor weight = x[1].unsqueeze(-1);
        Tensor h = layer_norm(linear(x[0], x[2], x[3]), {6});
        return TensorList{(h * weight).sum({1}) / weight.sum({1}).clamp(1e-9)};
      },
      {kTokens, "mask f32[2, s0]", "f32[6, 6]", "f32[6]"});
  // 0 * -inf is no zero.
  expect_fault("sum", "NaN", [](auto& x) { return TensorList{(log(x[0].abs()) * x[1].unsqueeze(-1)).sum({1})}; },
               {kTokens, kMask});
  expect_sound([](auto& x) { return TensorList{where(x[1].unsqueeze(-1), log(x[0].abs()), 0).sum({1})}; },
               {kTokens, kMask});
  expect_fault("sum", "which are 5", [](auto& x) { return TensorList{where(x[1].unsqueeze(-1), x[0], 5).sum({1})}; },
               {kTokens, kMask});
  expect_fault("sum", "which are 1", [](auto& x) { return TensorList{(x[0] == x[0]).sum({1})}; }, {kMask});
}

TEST(Padding, Softmax) {
  auto types = std::vector<std::string>{"f32[2, s0]", kMask};
  expect_fault(
      "amax", "which are 0", [](auto& x) { return TensorList{softmax(x[0], 1)}; }, types);
  for (double never : {-double(INFINITY), -1e9, -1e4, double(std::numeric_limits<float>::lowest())}) {
    expect_sound([&](auto& x) { return TensorList{softmax(where(x[1], x[0], never), 1)}; }, types);
    expect_sound(
        [&](auto& x) {
          return TensorList{log_softmax(x[0].masked_fill(logical_not(x[1]), never), 1),
                            logsumexp(where(x[1], x[0], never), {1})};
        },
        types);
  }
  expect_sound([](auto& x) { return TensorList{softmax(x[0] + (1 - x[1].to(kFloat32)) * -1e9, 1)}; }, types);
  expect_sound([](auto& x) { return TensorList{softmax(where(x[1], exp(x[0]) + 3, -1e9), 1)}; }, types);
  expect_fault(
      "amax", "which are -1", [](auto& x) { return TensorList{softmax(where(x[1], x[0], -1), 1)}; }, types);
}

TEST(Padding, Contractions) {
  auto scores = std::vector<std::string>{kTokens, "f32[2, s0, 4]"};
  expect_sound(
      [](auto& x) {
        return TensorList{matmul(x[0].transpose(1, 2), x[1]),
                          matmul(x[0], x[1].slice(2, 0, 3)
                                           .matmul(x[1].slice(2, 0, 3).transpose(1, 2))
                                           .transpose(1, 2)
                                           .matmul(x[0])
                                           .transpose(1, 2))};
      },
      scores);
  expect_sound([](auto& x) { return TensorList{matmul(x[0].transpose(1, 2), exp(x[1]))}; }, scores);
  expect_fault(
      "bmm", "padding of s0", [](auto& x) { return TensorList{matmul(exp(x[0]).transpose(1, 2), exp(x[1]))}; }, scores);
  expect_fault(
      "bmm", "NaN", [](auto& x) { return TensorList{matmul(x[0].transpose(1, 2), 1 / x[1])}; }, scores);
  // Over all tokens of all sentences: the padding lies inside the merged dimension.
  expect_sound(
      [](auto& x) {
        return TensorList{matmul(x[0].reshape({-1, 6}).t(), exp(x[1]).reshape({-1, 4}))};
      },
      scores);
  expect_sound(
      [](auto& x) {
        return TensorList{einsum("bsf,bsg->fg", {x[0], x[1]}), einsum("bsf,btf->bst", {x[0], x[0]})};
      },
      scores);
}

Tensor heads(const Tensor& x) { return x.reshape({2, x.size(1), 3, 2}).permute({0, 2, 1, 3}); }

TEST(Padding, Attention) {
  auto attend = [](const Tensor& x, const Tensor& mask, bool causal = false) {
    Tensor y = scaled_dot_product_attention(heads(x), heads(x), heads(x), mask, 0, causal);
    return y.permute({0, 2, 1, 3}).reshape({2, x.size(1), 6});
  };
  auto seen = [](const Tensor& mask) { return mask.unsqueeze(1).unsqueeze(1); };
  auto types = std::vector<std::string>{kTokens, kMask};
  expect_sound([&](auto& x) { return TensorList{attend(x[0], seen(x[1]))}; }, types);
  expect_sound([&](auto& x) { return TensorList{attend(x[0], seen(where(x[1], 0.0, -1e9)))}; }, types);
  expect_sound([&](auto& x) { return TensorList{attend(x[0] + 1, {}, true)}; }, types);
  expect_sound(
      [&](auto& x) {
        return TensorList{attend(x[0] + 1, tril(ones({x[0].size(1), x[0].size(1)}, kBool)))};
      },
      types);
  expect_fault(
      "scaled_dot_product_attention", "its amax", [&](auto& x) { return TensorList{attend(x[0] + 1, {})}; }, types);
  expect_fault(
      "scaled_dot_product_attention", "its amax",
      [&](auto& x) { return TensorList{attend(x[0], seen(where(x[1], 0.0, -1.0)))}; }, types);
  // A mask of queries does not hide keys.
  expect_fault(
      "scaled_dot_product_attention", "its amax",
      [&](auto& x) {
        return TensorList{
            attend(x[0] + 1, x[1].unsqueeze(1).unsqueeze(-1) | logical_not(x[1].unsqueeze(1).unsqueeze(-1)))};
      },
      types);
  // Query heads that share key heads.
  expect_sound(
      [&](auto& x) {
        Tensor k = x[2].unsqueeze(1);
        return TensorList{scaled_dot_product_attention(heads(x[0]), k, k, seen(x[1]), 0, false, {}, true)};
      },
      {kTokens, kMask, "f32[2, s0, 2]"});
}

TEST(Padding, ATransformerLayer) {
  auto layer = [](const Tensor& in, const TensorList& w, const Tensor& mask) {
    Tensor n = layer_norm(in, {6}), q = heads(linear(n, w[0])), k = heads(linear(n, w[1])), v = heads(linear(n, w[2]));
    Tensor scores = matmul(q, k.transpose(-2, -1)) / std::sqrt(2.0);
    Tensor p = softmax(scores.masked_fill(logical_not(mask).unsqueeze(1).unsqueeze(1), -1e9), -1);
    Tensor x = in + linear(matmul(p, v).permute({0, 2, 1, 3}).reshape({2, in.size(1), 6}), w[3]);
    return x + linear(gelu(linear(layer_norm(x, {6}), w[4])), w[4].t());
  };
  expect_sound(
      [&](auto& x) {
        TensorList weights(x.begin() + 3, x.end());
        Tensor h = embedding(x[2], x[0]) + arange_of_size(x[0].size(1)).unsqueeze(1) * 0.1;
        for (int n = 0; n < 3; ++n) h = layer(h, weights, x[1]);
        Tensor weight = x[1].to(kFloat32).unsqueeze(-1);
        return TensorList{h, (h * weight).sum({1}) / weight.sum({1}), h.select(1, 0)};
      },
      {"i64[2, s0]", kMask, "f32[4, 6]", "f32[6, 6]", "f32[6, 6]", "f32[6, 6]", "f32[6, 6]", "f32[12, 6]"});
}

TEST(Padding, Order) {
  expect_sound(
      [](auto& x) {
        return TensorList{cumsum(exp(x[0]), 1), cumprod(x[0], 1), cumsum(x[0], 2), flip(x[0], {2}),
                          roll(x[0], {2}, {2})};
      },
      {kTokens});
  expect_fault("sum", "padding of s0", [](auto& x) { return TensorList{cumsum(x[0], 1).sum({1})}; }, {kTokens});
  expect_fault("cumsum", "between real elements",
               [](auto& x) {
                 return TensorList{cumsum(exp(x[0]).reshape({-1, 6}), 0).reshape({2, x[0].size(1), 6})};
               },
               {kTokens});
  expect_fault("flip", "what it reads", [](auto& x) { return TensorList{flip(x[0], {1})}; }, {kTokens});
  expect_fault("roll", "", [](auto& x) { return TensorList{roll(x[0], {1}, {1})}; }, {kTokens});
  expect_fault("topk", "all elements at once", [](auto& x) { return TensorList{std::get<0>(topk(-exp(x[0]), 2, 1))}; },
               {kTokens});
}

TEST(Padding, JoinsAndWindows) {
  // A prefix moves the padding, and leaves it at the end.
  expect_sound(
      [](auto& x) {
        return TensorList{cat({x[1], x[0]}, 1), cat({x[0], x[0]}, 2)};
      },
      {kTokens, "f32[2, 3, 6]"});
  expect_fault("cat", "what it reads",
               [](auto& x) {
                 return TensorList{cat({x[0], x[1]}, 1)};
               },
               {kTokens, "f32[2, 3, 6]"});
  expect_fault("cat", "inside a merged dimension", [](auto& x) { return TensorList{cat({x[0], x[0]}, 1)}; }, {kTokens});
  expect_sound(
      [](auto& x) {
        return TensorList{constant_pad_nd(x[0], {0, 0, 1, 0}), constant_pad_nd(x[0], {0, 0, 2, 3})};
      },
      {kTokens});
  expect_fault("constant_pad_nd", "what it reads",
               [](auto& x) {
                 return TensorList{constant_pad_nd(x[0], {0, 0, 0, 1}, 7)};
               },
               {kTokens});
  auto types = std::vector<std::string>{"f32[2, 6, s0]", "f32[4, 6, 3]", "f32[4]"};
  expect_sound(
      [](auto& x) {
        return TensorList{conv1d(x[0], x[1]), conv1d(x[0], x[1], x[2], 1, 1), conv1d(exp(x[0]), x[1], x[2], 2, 0)};
      },
      types);
  // The bias fills what the second convolution takes for zeros.
  expect_fault(
      "convolution", "what it reads",
      [](auto& x) {
        return TensorList{conv1d(conv1d(x[0], x[1], x[2], 1, 1)
                                     .reshape({2, 4, -1})
                                     .transpose(1, 2)
                                     .matmul(x[1].select(2, 0))
                                     .transpose(1, 2),
                                 x[1], x[2], 1, 1)};
      },
      types);
  expect_sound([](auto& x) { return TensorList{max_pool1d(x[0], 2, 2)}; }, types);
}

TEST(Padding, Indices) {
  expect_sound(
      [](auto& x) {
        return TensorList{index_select(x[0], 2, x[1]), index_select(x[0], 1, x[1].clamp(0))};
      },
      {kTokens, "i64[3]"});
  expect_fault("index_select", "may be negative", [](auto& x) { return TensorList{index_select(x[0], 1, x[1] - 2)}; },
               {kTokens, "i64[3]"});
  // Padded tokens all carry the index 0; zeros add nothing there, others do.
  expect_sound(
      [](auto& x) {
        return TensorList{scatter_add(zeros({2, 4}), 1, x[0], x[1])};
      },
      {"i64[2, s0]", "f32[2, s0]"});
  expect_fault("scatter_add", "among real ones",
               [](auto& x) {
                 return TensorList{scatter_add(zeros({2, 4}), 1, x[0], exp(x[1]))};
               },
               {"i64[2, s0]", "f32[2, s0]"});
  expect_sound([](auto& x) { return TensorList{scatter_add(x[1], 1, x[0].clamp(0), x[1])}; },
               {"i64[2, 1]", "f32[2, s0]"});
}

TEST(Padding, ConstantsBesideTheSamplesAreTried) {
  // No comparison is taken for settled because the numbers tried first are all on one side.
  for (double pivot : {5.0, 7.25, 1234.0, -17.0})
    for (auto compare :
         {+[](const Tensor&a, double b) { return a == b; }, +[](const Tensor&a, double b) { return a > b; }}) {
      Case c =
          traced([&](auto& x) { return TensorList{compare(x[0] * 0 + x[1], pivot).sum({0})}; }, {"f32[s0]", "f32[]"});
      EXPECT_EQ(check_padding(c.graph, "s0", c.masks).faults.size(), 1u) << c.graph.text();
    }
}

TEST(Padding, OtherSizesMayBeSymbolsToo) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  tracer.set_hint("s0", 48);
  tracer.set_hint("s1", 5);
  Tensor x = tracer.add_input(parse_type("f32[s1, s0, 6]")), w = tracer.add_input(parse_type("f32[6, 6]"));
  Tensor h = linear(x, w), p = softmax(matmul(h, x.transpose(1, 2)), -1);
  tracer.graph().set_outputs({tracer.value_of(h)});
  EXPECT_TRUE(check_padding(tracer.graph(), "s0", {false, false}).faults.empty());
  EXPECT_EQ(check_padding(tracer.graph(), "s1", {false, false}).output_padded[0],
            (std::vector<bool>{true, false, false}));
  tracer.graph().set_outputs({tracer.value_of(p)});
  EXPECT_FALSE(check_padding(tracer.graph(), "s0", {false, false}).faults.empty());
  EXPECT_TRUE(check_padding(tracer.graph(), "s1", {false, false}).faults.empty());
}

TEST(Padding, SaysWhatToCut) {
  Case c = traced(
      [](auto& x) {
        return TensorList{cat({x[1], x[0]}, 1), x[0].sum({1}), x[0].transpose(1, 2),
                          x[0].reshape({2, x[0].size(1) * 6})};
      },
      {kTokens, "f32[2, 3, 6]"});
  auto report = check_padding(c.graph, "s0", c.masks);
  EXPECT_TRUE(report.faults.empty());
  EXPECT_EQ(report.output_padded, (std::vector<std::vector<bool>>{
                                      {false, true, false}, {false, false}, {false, false, true}, {false, true}}));
}

TEST(Padding, ASizeThatShrinksIsAFault) {
  Case c = traced([](auto& x) { return TensorList{x[1].slice(0, x[0].size(0))}; }, {"f32[s0]", "f32[99]"});
  auto report = check_padding(c.graph, "s0", c.masks);
  ASSERT_FALSE(report.faults.empty());
  EXPECT_EQ(report.faults[0].node->op->name, "slice");
}

TEST(Padding, OnlyWhatTheOutputsNeed) {
  expect_sound(
      [](auto& x) {
        mean(x[0], {1});
        return TensorList{x[0]};
      },
      {kTokens});
}

}  // namespace
}  // namespace sinter
