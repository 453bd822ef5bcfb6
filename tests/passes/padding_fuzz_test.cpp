// What the analysis calls sound, of random programs and of every op alone, is run and compared.
#include <set>

#include "tests/passes/padding_check.h"
#include "tests/support/samples.h"

namespace sinter {
namespace {

using testing::Case, testing::distance, testing::kMask, testing::kTokens, testing::traced;

// Random programs: whatever the analysis calls sound must be.
TEST(PaddingFuzz, RandomPrograms) {
  using Step = std::function<Tensor(const Tensor& a, const Tensor& b, const TensorList& x)>;
  auto column = [](const Tensor& mask) { return mask.unsqueeze(-1); };
  const std::vector<Step> steps = {
      [](auto& a, auto& b, auto&) { return a + b; },
      [](auto& a, auto& b, auto&) { return a * b; },
      [](auto& a, auto& b, auto&) { return maximum(a, b); },
      [](auto& a, auto& b, auto&) { return where(a > b, a, b - 1); },
      [](auto& a, auto&, auto&) { return tanh(a); },
      [](auto& a, auto&, auto&) { return exp(tanh(a)); },
      [](auto& a, auto&, auto&) { return relu(a); },
      [](auto& a, auto&, auto&) { return 1 / a; },
      [](auto& a, auto&, auto&) { return log(a); },
      [](auto& a, auto&, auto&) { return sqrt(a); },
      [](auto& a, auto&, auto&) { return 1 - a; },
      [](auto& a, auto&, auto&) { return (a > 0).to(kFloat32); },
      [](auto& a, auto&, auto&) { return (a == 0).to(kFloat32); },
      [&](auto& a, auto&, auto& x) { return a * column(x[1]); },
      [&](auto& a, auto&, auto& x) { return where(column(x[1]), a, 0); },
      [&](auto& a, auto&, auto& x) { return where(column(x[1]), a, -INFINITY); },
      [&](auto& a, auto&, auto& x) { return where(column(x[1]), a, INFINITY); },
      [&](auto& a, auto&, auto& x) { return where(column(x[1]), a, 1); },
      [&](auto& a, auto&, auto& x) { return a + where(column(x[1]), 0.0, -1e9); },
      [](auto& a, auto&, auto&) { return a - a.amax({1}, true); },
      [](auto& a, auto&, auto&) { return a + a.sum({1}, true); },
      [](auto& a, auto&, auto&) { return a + a.sum({2}, true); },
      [](auto& a, auto&, auto&) { return a * prod(a, 1, true); },
      [](auto& a, auto&, auto&) { return a - amin(a, {1}, true); },
      [](auto& a, auto&, auto&) { return softmax(a, 1); },
      [](auto& a, auto&, auto&) { return layer_norm(a, {6}); },
      [](auto& a, auto&, auto&) { return tanh(cumsum(a, 1)); },
      [](auto& a, auto&, auto&) { return flip(a, {1}); },
      [](auto& a, auto&, auto&) { return flip(a, {2}); },
      [](auto& a, auto& b, auto&) {
        return cat({a.slice(2, 0, 3), b.slice(2, 3)}, 2);
      },
      [](auto& a, auto& b, auto&) {
        return cat({a.slice(1, 0, 1), b.slice(1, 1)}, 1);
      },
      [](auto& a, auto& b, auto&) { return matmul(tanh(matmul(a, b.transpose(1, 2))), a); },
      [](auto& a, auto& b, auto&) { return matmul(tril(tanh(matmul(a, b.transpose(1, 2)))), a); },
      [](auto& a, auto& b, auto&) { return a.matmul(matmul(a.transpose(1, 2), b)); },
      [&](auto& a, auto& b, auto& x) { return scaled_dot_product_attention(a, b, a, x[1].unsqueeze(1)); },
      [](auto& a, auto& b, auto&) { return scaled_dot_product_attention(a, b, b, {}, 0, true); },
      [](auto& a, auto&, auto&) {
        return a.reshape({-1, 3}).tanh().reshape({2, a.size(1), 6});
      },
      [](auto& a, auto&, auto&) { return a + argmax(a, 1, true); },
      [](auto& a, auto&, auto&) { return a + std::get<0>(max(a, 1, true)); },
      [](auto& a, auto&, auto&) {
        return constant_pad_nd(a, {0, 0, 0, 1}).slice(1, 1) + a;
      },
  };
  std::mt19937 random(7);
  int sound = 0, faulty = 0;
  for (int n = 0; n < 300; ++n) {
    Case c = traced(
        [&](auto& x) {
          TensorList values{x[0], x[2]};
          auto pick = [&] { return values[std::max(random() % values.size(), random() % values.size())]; };
          for (int step = 0, count = 2 + int(random() % 4); step < count; ++step) {
            Tensor a = pick(), b = pick();
            values.push_back(steps[random() % steps.size()](a, b, x));
          }
          return TensorList{values.back()};
        },
        {kTokens, kMask, kTokens});
    auto report = check_padding(c.graph, "s0", c.masks);
    double difference = std::max(distance(c, report, 8, 12), distance(c, report, 5, 16));
    (report.faults.empty() ? sound : faulty) += 1;
    EXPECT_TRUE(!report.faults.empty() || difference < 1e-6) << difference << "\n" << c.graph.text();
  }
  EXPECT_GT(sound, 100);
  EXPECT_GT(faulty, 100);
}

// Every op of the library alone, each size of its samples padded in turn.
TEST(PaddingFuzz, EveryOp) {
  int sound = 0, faulty = 0;
  for (auto* op : all_ops()) {
    if (op->random) continue;
    for (auto& sample : testing::samples_of(*op, kFloat32)) {
      std::set<int64_t> sizes;
      for (auto& operand : sample.operands)
        for (int64_t size : operand.values.sizes)
          if (size > 2 && !operand.scalar) sizes.insert(size);
      for (int64_t size : sizes) {
        auto symbolic = [&](const Dim& d) { return d.same_as(size) ? Dim::symbol("s0") : d; };
        Graph graph;
        std::vector<Value> operands;
        std::vector<Array> inputs;
        for (auto& operand : sample.operands) {
          if (operand.scalar) {
            operands.push_back(graph.add_scalar(operand.number));
            continue;
          }
          Type type{operand.values.dtype, Shape(operand.values.sizes), {}, false};
          for (auto& d : type.shape) d = symbolic(d);
          operands.push_back(graph.add_input(type));
          inputs.push_back(operand.values);
        }
        try {
          const Node& node = graph.add(*op, operands, sample.attrs.map_dims(symbolic), "padding_test.cpp:1");
          std::vector<Value> outputs;
          for (int n = 0; n < int(node.types.size()); ++n) outputs.push_back(node.result(n));
          graph.set_outputs(outputs);
          graph.verify();
          interpret(graph, inputs);
        } catch (const Error&) {
          continue;  // the op does not take a symbol there
        }
        auto report = check_padding(graph, "s0", std::vector<bool>(inputs.size(), false));
        (report.faults.empty() ? sound : faulty) += 1;
        if (!report.faults.empty()) continue;
        for (int64_t more : {1, 9}) {
          double difference = 0;
          try {
            difference = distance(graph, report, inputs, size + more);
          } catch (const Error&) {
            continue;  // other operands fit this size alone
          }
          EXPECT_EQ(difference, 0) << "padded by " << more << "\n" << graph.text();
        }
      }
    }
  }
  EXPECT_GT(sound, 800);
  EXPECT_GT(faulty, 150);
}

}  // namespace
}  // namespace sinter
