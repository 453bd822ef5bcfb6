#include "sinter/passes/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sinter/graph/interpreter.h"
#include "sinter/graph/trace.h"
#include "sinter/sinter.h"

namespace sinter {
namespace {

struct Joint {
  Graph graph;
  size_t inputs = 0, outputs = 0;
};

// The program and the gradients of all its outputs with respect to its floating inputs, where there are any.
Joint trace_joint(const std::function<TensorList(const TensorList&)>& f, const std::vector<std::string>& types) {
  GraphTracer tracer;
  TracerScope scope(&tracer);
  TensorList inputs, leaves, differentiable, tangents;
  for (auto& text : types) {
    Type type = parse_type(text);
    for (auto& size : type.shape)
      if (!size.is_number()) tracer.set_hint(to_string(size), 3);
    inputs.push_back(tracer.add_input(type));
    if (is_floating(type.dtype)) leaves.push_back(inputs.back().requires_grad_());
  }
  TensorList outputs = f(inputs);
  std::vector<Value> values;
  for (auto& y : outputs) {
    values.push_back(tracer.value_of(y));
    if (!y.requires_grad()) continue;
    differentiable.push_back(y);
    tangents.push_back(tracer.tensor_of(tracer.graph().add_input(values.back().type())));
  }
  for (auto& g : autograd::grad(differentiable, leaves, tangents, {}, false, true))
    if (g.defined()) values.push_back(tracer.value_of(g));
  tracer.graph().set_outputs(values);
  tracer.graph().verify();
  return {std::move(tracer.graph()), inputs.size(), outputs.size()};
}

Array some_values(const Type& type, int salt) {
  IntList sizes;
  for (auto& d : type.shape) sizes.push_back(d.is_number() ? d.number() : 3);
  Array out(type.dtype, sizes);
  for (int64_t i = 0; i < out.numel(); ++i) {
    double value = std::sin(double(i * 7 + salt * 3 + 1));
    type.dtype == kInt64 ? out.set(i, i % 2) : out.set(i, value);
  }
  return out;
}

// Forward and backward one after the other, as the joint graph computes them.
void expect_same(const Joint& joint, const Partition& parts) {
  std::vector<Array> inputs;
  for (auto& v : joint.graph.inputs()) inputs.push_back(some_values(v.type(), int(inputs.size())));
  auto expected = interpret(joint.graph, inputs);
  auto results = interpret(parts.forward, std::span(inputs).first(joint.inputs));
  std::vector<Array> given;
  for (auto& s : parts.saved) given.push_back(s.input >= 0 ? inputs[size_t(s.input)] : results[size_t(s.output)]);
  given.insert(given.end(), inputs.begin() + int64_t(joint.inputs), inputs.end());
  auto gradients = interpret(parts.backward, given);
  results.resize(joint.outputs);
  results.insert(results.end(), gradients.begin(), gradients.end());
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].sizes, expected[i].sizes) << "output " << i;
    EXPECT_EQ(results[i].f, expected[i].f) << "output " << i;
    EXPECT_EQ(results[i].i, expected[i].i) << "output " << i;
  }
}

int count_ops(const Graph& graph, std::string_view name) {
  return int(std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op->name == name; }));
}
int count_random(const Graph& graph) {
  return int(std::ranges::count_if(graph.nodes(), [](const Node& node) { return node.op->random; }));
}

// Cuts the joint graph, and checks what holds of every partition.
Partition checked(const Joint& joint, const PartitionOptions& options = {}) {
  Partition parts = partition(joint.graph, joint.inputs, joint.outputs, options);
  parts.forward.verify();
  parts.backward.verify();
  EXPECT_EQ(parts.forward.inputs().size(), joint.inputs);
  EXPECT_EQ(parts.backward.inputs().size(), parts.saved.size() + joint.graph.inputs().size() - joint.inputs);
  EXPECT_EQ(count_random(parts.backward), 0);
  EXPECT_EQ(count_random(parts.forward), count_random(joint.graph));
  for (size_t i = 0; i < parts.saved.size(); ++i) {
    auto& s = parts.saved[i];
    EXPECT_TRUE((s.input >= 0) != (s.output >= 0));
    auto& type =
        (s.input >= 0 ? parts.forward.inputs()[size_t(s.input)] : parts.forward.outputs()[size_t(s.output)]).type();
    EXPECT_EQ(parts.backward.inputs()[i].type(), type);
  }
  EXPECT_EQ(partition(joint.graph, joint.inputs, joint.outputs, options).backward.text(), parts.backward.text());
  expect_same(joint, parts);
  return parts;
}

Partition traced(const std::function<TensorList(const TensorList&)>& f, const std::vector<std::string>& types) {
  return checked(trace_joint(f, types));
}

using Places = std::vector<Saved>;
Saved input(int i) { return {.input = i}; }
Saved output(int i) { return {.output = i}; }

TEST(Partition, SquareSavesItsInput) {
  auto parts = checked({Graph::parse(R"(
    %0 = input : f32[4] "x"
    %1 = mul(%0, %0) : f32[4]
    %2 = input : f32[4] "dy"
    %3 = mul(%2, %0) : f32[4]
    %4 = add(%3, %3) : f32[4]
    return %1, %4)"),
                        1, 1});
  EXPECT_EQ(parts.saved, Places{input(0)});
  EXPECT_EQ(parts.saved_bytes_hint, 0);
  EXPECT_EQ(parts.forward.text(), "%0 = input : f32[4] \"x\"\n%1 = mul(%0, %0) : f32[4]\nreturn %1\n");
  EXPECT_EQ(parts.backward.text(),
            "%0 = input : f32[4] \"x\"\n%1 = input : f32[4] \"dy\"\n%2 = mul(%1, %0) : f32[4]\n"
            "%3 = add(%2, %2) : f32[4]\nreturn %3\n");
}

TEST(Partition, PointwiseChainSavesItsInput) {
  auto parts =
      traced([](const TensorList& x) { return TensorList{sin(exp(tanh(cos(sigmoid(sin(x[0]))))))}; }, {"f32[5]"});
  EXPECT_EQ(parts.saved, Places{input(0)});
  EXPECT_EQ(parts.forward.outputs().size(), 1u);
}

TEST(Partition, AnOutputIsSavedForNothing) {
  auto parts = traced([](const TensorList& x) { return TensorList{tanh(x[0] + x[1])}; }, {"f32[4, 6]", "f32[6]"});
  EXPECT_EQ(parts.saved, Places{output(0)});
  EXPECT_EQ(parts.forward.outputs().size(), 1u);
  EXPECT_EQ(count_ops(parts.backward, "tanh"), 0);
}

TEST(Partition, SoftmaxSavesTwoNumbersARow) {
  auto parts = traced([](const TensorList& x) { return TensorList{softmax(x[0], 1)}; }, {"f32[4, 6]"});
  EXPECT_EQ(parts.saved, (Places{input(0), output(1), output(2)}));
  EXPECT_EQ(parts.saved_bytes_hint, 2 * 4 * 4);
  // Of a product it is the result that is saved, or something as large, and the numbers.
  auto inner = traced([](const TensorList& x) { return TensorList{matmul(softmax(matmul(x[0], x[1]), 1), x[2])}; },
                      {"f32[4, 3]", "f32[3, 6]", "f32[6, 2]"});
  EXPECT_LE(inner.saved_bytes_hint, (4 * 6 + 2 * 4) * 4);
}

TEST(Partition, ReluOfMatmulSavesOneActivation) {
  auto last =
      traced([](const TensorList& x) { return TensorList{relu(matmul(x[0], x[1]))}; }, {"f32[3, 4]", "f32[4, 5]"});
  EXPECT_EQ(last.saved_bytes_hint, 0);
  // Between two products the activation is needed whole, and the mask comes from it.
  auto inner = traced([](const TensorList& x) { return TensorList{matmul(relu(matmul(x[0], x[1])), x[2])}; },
                      {"f32[3, 4]", "f32[4, 5]", "f32[5, 6]"});
  EXPECT_EQ(inner.saved_bytes_hint, 3 * 5 * 4);
  EXPECT_EQ(count_ops(inner.backward, "mm"), 4);
  // Where only the mask is needed, a byte an element.
  auto mask = traced([](const TensorList& x) { return TensorList{relu(matmul(x[0], x[1])).sum()}; },
                     {"f32[3, 4]", "f32[4, 5]"});
  EXPECT_EQ(mask.saved_bytes_hint, 3 * 5);
}

TEST(Partition, GeluMlpSavesTheHiddenValuesOnce) {
  auto parts =
      traced([](const TensorList& x) { return TensorList{linear(gelu(linear(x[0], x[1], x[2])), x[3], x[4]) + x[0]}; },
             {"f32[s0, 4]", "f32[8, 4]", "f32[8]", "f32[4, 8]", "f32[4]"});
  EXPECT_EQ(parts.saved_bytes_hint, 64 * 8 * 4);
  EXPECT_EQ(count_ops(parts.backward, "gelu"), 1);
}

TEST(Partition, LayerNormSavesTwoNumbersARow) {
  auto parts = traced([](const TensorList& x) { return TensorList{layer_norm(x[0], {6}, x[1], x[2])}; },
                      {"f32[4, 6]", "f32[6]", "f32[6]"});
  EXPECT_LE(parts.saved_bytes_hint, 2 * 4 * 4);
  EXPECT_GT(parts.saved_bytes_hint, 0);
}

TEST(Partition, DropoutSavesItsMask) {
  auto parts = traced([](const TensorList& x) { return TensorList{matmul(dropout(x[0], 0.5), x[1])}; },
                      {"f32[8, 8]", "f32[8, 2]"});
  EXPECT_EQ(parts.saved_bytes_hint, 8 * 8);
  ASSERT_EQ(parts.saved.size(), 3u);
  EXPECT_EQ(parts.saved[2], output(1));
  EXPECT_EQ(parts.forward.outputs()[1].type().dtype, kBool);
}

TEST(Partition, RandomNodesStayInTheForward) {
  // One that only a gradient needs, and one that nothing does.
  auto parts = checked({Graph::parse(R"(
    %0 = input : f32[4]
    %1 = input : f32[4]
    %2 = scalar {value=5} : weak i64[]
    %3 = scalar {value=1} : weak i64[]
    %4 = rand(%2, %3) {size=[4]} : f32[4]
    %5 = rand(%2, %2) {size=[4]} : f32[4]
    %6 = mul(%1, %4) : f32[4]
    return %0, %6)"),
                        1, 1});
  EXPECT_EQ(parts.saved, Places{output(1)});
}

TEST(Partition, MatmulChainSavesEachProductOnce) {
  auto parts = traced([](const TensorList& x) { return TensorList{matmul(matmul(matmul(x[0], x[1]), x[2]), x[3])}; },
                      {"f32[2, 3]", "f32[3, 4]", "f32[4, 5]", "f32[5, 6]"});
  EXPECT_EQ(parts.saved_bytes_hint, (2 * 4 + 2 * 5) * 4);
  EXPECT_EQ(count_ops(parts.forward, "mm"), 3);
  EXPECT_EQ(count_ops(parts.backward, "mm"), 6);
}

TEST(Partition, GradientsThatNeedNoWork) {
  // The tangent itself, twice; an input; an output; a number.
  auto parts = checked({Graph::parse(R"(
    %0 = input : f32[4] "x"
    %1 = sum(%0) : f32[]
    %2 = input : f32[] "dy"
    %3 = scalar {value=2.0} : weak f64[]
    return %1, %2, %0, %2, %1, %3)"),
                        1, 1});
  EXPECT_EQ(parts.saved, (Places{input(0), output(0)}));
  EXPECT_EQ(parts.backward.text(),
            "%0 = input : f32[4] \"x\"\n%1 = input : f32[]\n%2 = input : f32[] \"dy\"\n"
            "%3 = scalar {value=2.0} : weak f64[]\nreturn %2, %0, %2, %1, %3\n");
}

TEST(Partition, NumbersAreInputsOrCopied) {
  auto parts = checked({Graph::parse(R"(
    %0 = input : f32[4]
    %1 = input : weak f64[] "scale"
    %2 = scalar {value=3.0} : weak f64[]
    %3 = mul(%0, %1) : f32[4]
    %4 = mul(%3, %2) : f32[4]
    %5 = input : f32[4]
    %6 = mul(%5, %2) : f32[4]
    %7 = mul(%6, %1) : f32[4]
    return %4, %7)"),
                        2, 1});
  EXPECT_EQ(parts.saved, Places{input(1)});
  EXPECT_EQ(count_ops(parts.backward, "scalar"), 1);
}

TEST(Partition, ViewsAreMadeAgain) {
  auto parts = checked({Graph::parse(R"(
    %0 = input : f32[3, 4]
    %1 = permute(%0) {dims=[1, 0]} : f32[4, 3]
    %2 = mm(%0, %1) : f32[3, 3]
    %3 = permute(%2) {dims=[1, 0]} : f32[3, 3]
    %4 = sum(%3) : f32[]
    %5 = input : f32[3, 3]
    %6 = mm(%5, %3) : f32[3, 3]
    %7 = mm(%6, %0) : f32[3, 4]
    %8 = mm(%1, %6) : f32[4, 3]
    return %4, %7, %8)"),
                        1, 1});
  EXPECT_EQ(parts.saved, (Places{input(0), output(1)}));
  EXPECT_EQ(count_ops(parts.backward, "permute"), 2);
  EXPECT_EQ(parts.forward.outputs()[1].node->op->name, "mm");
}

TEST(Partition, OneOfSeveralResults) {
  auto parts = traced([](const TensorList& x) { return TensorList{std::get<0>(topk(x[0] * 2, 2))}; }, {"f32[3, 5]"});
  ASSERT_EQ(parts.saved.size(), 1u);
  EXPECT_EQ(parts.saved[0], output(1));
  EXPECT_EQ(parts.saved_bytes_hint, 3 * 2 * 8);
}

// Nothing of the forward needs the sum: in the backward it runs for the first time.
TEST(Partition, WhatOnlyGradientsNeedRunsOnce) {
  auto parts = checked({Graph::parse(R"(
    %0 = input : f32[3, 4]
    %1 = sin(%0) : f32[3, 4]
    %2 = sum(%0) {dims=[1], keepdim=true} : f32[3, 1]
    %3 = input : f32[3, 4]
    %4 = mul(%3, %2) : f32[3, 4]
    return %1, %4)"),
                        1, 1});
  EXPECT_EQ(parts.saved, Places{input(0)});
  EXPECT_EQ(count_ops(parts.forward, "sum"), 0);
}

TEST(Partition, ChainsRunAgainAreBounded) {
  auto parts = traced(
      [](const TensorList& x) {
        Tensor y = x[0];
        for (int i = 0; i < 100; ++i) y = sin(y);
        return TensorList{y};
      },
      {"f32[5]"});
  EXPECT_EQ(parts.saved_bytes_hint, 3 * 5 * 4);
  std::vector<int> chain(parts.backward.nodes().size());
  for (auto& node : parts.backward.nodes())
    if (node.op->name == "sin") chain[size_t(node.id)] = chain[size_t(node.inputs[0].node->id)] + 1;
  EXPECT_EQ(std::ranges::max(chain), kLongestChain);
}

// Each layer adds to one stream that all gradients need: its sums are saved once, not with what was added.
TEST(Partition, ResidualStreamSavesEachSumOnce) {
  auto parts = traced(
      [](const TensorList& x) {
        Tensor y = x[0];
        for (int i = 0; i < 3; ++i) y = y + matmul(sin(y), x[1]);
        return TensorList{y};
      },
      {"f32[6, 4]", "f32[4, 4]"});
  EXPECT_EQ(parts.saved_bytes_hint, 2 * 6 * 4 * 4);
  EXPECT_EQ(count_ops(parts.backward, "mm"), 6);
}

TEST(Partition, HintsWeighSymbolicSizes) {
  Joint joint{Graph::parse(R"(
    %0 = input : f32[s0, 2]
    %1 = input : i64[s1]
    %2 = sum(%0) {dims=[1]} : f32[s0]
    %3 = index_select(%2, %1) {dim=0} : f32[s1]
    %4 = sum(%3) : f32[]
    %5 = input : f32[s1]
    %6 = mul(%5, %3) : f32[s1]
    return %4, %6)"),
              2, 1};
  auto given = [](int64_t s0, int64_t s1) {
    return PartitionOptions{.hint = [=](const Dim& d) { return to_string(d) == "s0" ? s0 : s1; }};
  };
  auto rows = checked(joint, given(10, 100)), picked = checked(joint, given(100, 10));
  EXPECT_EQ(rows.saved, (Places{input(1), output(1)}));
  EXPECT_EQ(rows.saved_bytes_hint, 40);
  EXPECT_EQ(picked.saved, Places{output(1)});
  EXPECT_EQ(picked.saved_bytes_hint, 40);
}

TEST(Partition, AnOverwrittenInputIsSavedAsAnOutput) {
  Joint joint = trace_joint([](const TensorList& x) { return TensorList{x[0] * x[1]}; }, {"f32[4]", "f32[4]"});
  auto parts = checked(joint, {.overwritten = {1}});
  EXPECT_EQ(parts.saved, (Places{input(0), output(1)}));
  EXPECT_EQ(parts.saved_bytes_hint, 16);
  EXPECT_EQ(parts.forward.outputs()[1], parts.forward.inputs()[1]);
}

TEST(Partition, AnOutputMadeOfATangentIsAnError) {
  Graph joint = Graph::parse("%0 = input : f32[2]\n%1 = input : f32[2]\n%2 = add(%0, %1) : f32[2]\nreturn %2, %1");
  EXPECT_THROW(partition(joint, 1, 1), InternalError);
  EXPECT_THROW(partition(joint, 3, 1), InternalError);
}

}  // namespace
}  // namespace sinter
