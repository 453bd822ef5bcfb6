// The table of ATen's functions: every line says what PyTorch says (tests/data/recorded/aten_schemas.txt, by
// tools/record_aten_schemas.py), and takes arguments as PyTorch does.
#include "sinter/interop/aten/table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "sinter/capture/compiler.h"
#include "sinter/graph/graph.h"
#include "sinter/nn/recurrent.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/norm.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"
#include "sinter/ops/view.h"
#include "tests/support/error_of.h"

namespace sinter::interop {
namespace {

std::set<std::string> recorded_schemas() {
  std::ifstream file(SINTER_TEST_DATA "/recorded/aten_schemas.txt");
  std::set<std::string> out;
  for (std::string line; std::getline(file, line);) out.insert(line);
  return out;
}

// Calls a function with the first arguments given and defaults for the rest.
ValueList call(const std::string& name, ValueList arguments) {
  auto callee = find_callee(name);
  EXPECT_TRUE(callee.has_value()) << name;
  for (size_t i = arguments.size(); i < callee->schema->parameters.size(); ++i)
    arguments.push_back(callee->schema->parameters[i].standard.value());
  return (*callee)(arguments);
}

Tensor tensor_of(const ValueList& results) { return results.at(0).as<Tensor>(); }

TEST(AtenTable, SaysWhatPyTorchSays) {
  const auto recorded = recorded_schemas();
  ASSERT_GT(recorded.size(), 400u);
  for (auto* function : all_functions()) {
    const std::string schema(function->schema());
    if (schema.find("::") == std::string::npos) {
      EXPECT_TRUE(recorded.contains(schema)) << schema;
    }
  }
}

// Each function of PyTorch's core set that Sinter has at all.
TEST(AtenTable, HasTheCoreSet) {
  std::ifstream file(SINTER_TEST_DATA "/core_aten.txt");
  ASSERT_TRUE(file);
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    const std::string name = line.substr(0, colon);
    if (!unavailable_reason(name).empty()) continue;
    for (size_t at = colon + 2; at < line.size() && at != std::string::npos + 2;) {
      const size_t comma = line.find(", ", at);
      const std::string overload = line.substr(at, comma == std::string::npos ? comma : comma - at);
      if (overload != "out") {
        EXPECT_TRUE(find_callee("aten." + name + "." + overload)) << name << "." << overload;
      }
      ++count;
      at = comma == std::string::npos ? line.size() : comma + 2;
    }
  }
  EXPECT_GT(count, 180);
}

// Cells and the loss of a linear layer in pieces are those of nn.
TEST(AtenTable, CallsWhatLayersCall) {
  manual_seed(1);
  Tensor x = randn({2, 3}), h = randn({2, 4}), c = randn({2, 4});
  const auto cell_arguments = [&](const auto& cell, Value state) {
    std::vector<Value> all{{x}, std::move(state)};
    for (auto& p : cell->parameters()) all.push_back({p});
    return all;
  };
  nn::GRUCell gru(3, 4);
  EXPECT_TRUE(allclose(tensor_of(call("aten.gru_cell.default", cell_arguments(gru, {h}))), gru->forward(x, h)));
  nn::RNNCell rnn(3, 4);
  EXPECT_TRUE(allclose(tensor_of(call("aten.rnn_tanh_cell.default", cell_arguments(rnn, {h}))), rnn->forward(x, h)));
  nn::LSTMCell lstm(3, 4);
  const auto states = call("aten.lstm_cell.default", cell_arguments(lstm, {ValueList{{h}, {c}}}));
  auto [want_h, want_c] = lstm->forward(x, std::tuple(h, c));
  EXPECT_TRUE(allclose(states.at(0).as<Tensor>(), want_h) && allclose(states.at(1).as<Tensor>(), want_c));
  Tensor weight = randn({5, 3}), classes = tensor({4, 0});
  const ValueList head{{x},      {weight},      {classes}, {}, {}, {std::string("sum")}, {Dim(-100)}, {Scalar(0.1)},
                       {Dim(1)}, {std::string("auto")}, {kFloat32}, {false}, {false}, {false}, {false}};
  EXPECT_TRUE(allclose(tensor_of(call("torch_nn._linear_cross_entropy_batch_chunked.default", head)),
                       cross_entropy(linear(x, weight), classes, {}, Reduction::kSum, -100, 0.1)));
}

TEST(AtenTable, FillsInDefaults) {
  EXPECT_EQ(tensor_of(call("aten.add.Tensor", {{ones({2})}, {Dim(3)}})).to_vector<float>(), (std::vector<float>{4, 4}));
  EXPECT_EQ(tensor_of(call("aten.arange.default", {{Dim(3)}})).dtype(), kInt64);
  EXPECT_EQ(tensor_of(call("aten.arange.default", {{Scalar(2.5)}})).dtype(), kFloat32);
  EXPECT_EQ(tensor_of(call("aten.randperm.default", {{Dim(3)}})).dtype(), kInt64);
  EXPECT_EQ(call("aten.var.correction", {{arange(5).to(kFloat32)}}).at(0).as<Tensor>().item<float>(), 2.5f);
}

TEST(AtenTable, StoresInPlaceWhatAFunctionGives) {
  Tensor x = ones({2, 2}), row = x.select(0, 0);
  ValueList out = call("aten.mul_.Tensor", {{row}, {Scalar(2.5)}});
  EXPECT_TRUE(tensor_of(out).is_same(row));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{2.5, 2.5, 1, 1}));
  EXPECT_FALSE(find_callee("aten.no_such_.Tensor"));
  EXPECT_FALSE(find_callee("aten.__and__.no_such"));
}

TEST(AtenTable, TakesGroupsWithTheirOwnMatrices) {
  Tensor x = arange(8).to(kFloat32).view({4, 2}), weight = stack({eye(2), eye(2) * 10, eye(2) * 100});
  Tensor out = tensor_of(call("aten._grouped_mm.default", {{x}, {weight}, {tensor({1, 1, 3}).to(kInt32)}}));
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{0, 1, 200, 300, 400, 500, 0, 0}));
}

TEST(AtenTable, SoftmaxOfNothingIsSafe) {
  Tensor x = tensor({{0.f, 0.f}, {-INFINITY, -INFINITY}});
  Tensor out = tensor_of(call("aten._safe_softmax.default", {{x}, {Dim(1)}}));
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{0.5, 0.5, 0, 0}));
}

TEST(AtenTable, RefusesArgumentsOfAnotherKind) {
  EXPECT_NE(message_of([] {
              call("aten.permute.default", {{ones({2})}, {std::string("x")}});
            }).find("an integer was expected"),
            std::string::npos);
  EXPECT_NE(
      message_of([] { call("aten.relu.default", {{std::string("x")}}); }).find("a tensor or a number was expected"),
      std::string::npos);
  EXPECT_NE(message_of([] {
              call("aten.embedding.default", {{ones({2, 2})}, {tensor({0})}, {Dim(-1)}, {true}});
            }).find("nothing but the default was expected, not True"),
            std::string::npos);
}

// What PyTorch's decompositions make of conversions.
TEST(AtenTable, TakesConversionsOfPrims) {
  const Tensor out = tensor_of(call("prims.convert_element_type.default", {{tensor({1.5, -2.5})}, {kInt64}}));
  EXPECT_EQ(out.dtype(), kInt64);
  EXPECT_TRUE(equal(out, tensor({1, -2})));
}

// Values of torchvision 0.29.
TEST(AtenTable, HasRegionsOfImages) {
  const Tensor x = (pow(arange(32).to(kFloat32), 1.5) / 10).view({2, 1, 4, 4});
  const Tensor rois = tensor({1.0, 0.5, 0.5, 3.0, 2.5, 0.0, -3.0, -3.0, 2.0, 6.0}).to(kFloat32).view({2, 5});
  const Tensor want[] = {tensor({9.03532, 9.71552, 11.27882, 12.00991, 0.06, 0.17132, 1.65227, 3.59873}),
                         tensor({7.41538, 8.05267, 9.51311, 10.20475, 0.0, 0.015, 0.0, 3.05526})};
  const Tensor grad[] = {
      tensor({1.4875, 0.875,  0.0875, 0.0,    0.6375, 0.375, 0.0375, 0.0,  2.7675, 1.575, 0.1575,
              0.0,    3.3825, 1.925,  0.1925, 0.0,    0.0,   0.035,  0.15, 0.015,  0.14,  0.95,
              1.56,   0.15,   0.21,   1.215,  1.44,   0.135, 0.0,    0.0,  0.0,    0.0}),
      tensor({1.75, 0.75, 0.0,  0.0, 0.98, 0.42, 0.0,  0.0, 1.47, 0.63, 0.0,  0.0, 2.45, 1.05, 0.0, 0.0,
              0.06, 0.55, 0.34, 0.0, 0.96, 2.26, 1.08, 0.0, 0.18, 0.39, 0.18, 0.0, 0.0,  0.0,  0.0, 0.0})};
  for (bool aligned : {false, true}) {
    const Value two{Dim(2)}, one{Dim(1)}, four{Dim(4)};
    auto align = [=](const Tensor& x) {
      return tensor_of(call("torchvision.roi_align.default", {{x}, {rois}, {Scalar(0.8)}, two, two, two, {aligned}}));
    };
    EXPECT_TRUE(allclose(align(x).flatten().to(kFloat64), want[aligned].to(kFloat64), 1e-4, 1e-4)) << aligned;
    EXPECT_TRUE(allclose(compile(align)(x).flatten().to(kFloat64), want[aligned].to(kFloat64), 1e-4, 1e-4)) << aligned;
    const Tensor back =
        tensor_of(call("torchvision._roi_align_backward.default", {{arange(8).to(kFloat32).view({2, 1, 2, 2})},
                                                                   {rois},
                                                                   {Scalar(0.8)},
                                                                   two,
                                                                   two,
                                                                   two,
                                                                   one,
                                                                   four,
                                                                   four,
                                                                   two,
                                                                   {aligned}}));
    EXPECT_TRUE(allclose(back.flatten().to(kFloat64), grad[aligned].to(kFloat64), 1e-4, 1e-4)) << aligned;
  }
}

TEST(AtenTable, ComputesWithNumbers) {
  auto dim = [](const ValueList& results) { return results.at(0).as<Dim>().number(); };
  EXPECT_EQ(dim(call("_operator.floordiv", {{Dim(-7)}, {Dim(2)}})), -4);
  EXPECT_EQ(dim(call("_operator.mod", {{Dim(-7)}, {Dim(2)}})), 1);
  EXPECT_EQ(dim(call("_operator.pow", {{Dim(3)}, {Dim(2)}})), 9);
  EXPECT_EQ(dim(call("torch.sym_max", {{Dim(3)}, {Dim(5)}})), 5);
  EXPECT_EQ(dim(call("math.ceil", {{Scalar(2.5)}})), 3);
  EXPECT_EQ(call("_operator.truediv", {{Dim(1)}, {Dim(2)}}).at(0).as<Scalar>().to_double(), 0.5);
  EXPECT_TRUE(call("_operator.ge", {{Dim(3)}, {Dim(3)}}).at(0).as<bool>());
  EXPECT_NE(message_of([] {
              call("_operator.floordiv", {{Dim(1)}, {Dim(0)}});
            }).find("divided by 0"),
            std::string::npos);
}

TEST(Schemas, AreParsed) {
  const Schema schema = parse_schema(
      "f.o(Tensor(a!) self, Tensor?[] list, int[2] size=[1, 2], *, float eps=1e-05, str mode=\"a\", "
      "ScalarType? dtype=4) -> (Tensor(a!), Tensor)");
  EXPECT_EQ(schema.name, "aten.f.o");
  ASSERT_EQ(schema.parameters.size(), 6u);
  EXPECT_EQ(schema.parameters[0].name, "self");
  EXPECT_EQ(schema.parameters[1].type, "Tensor?[]");
  EXPECT_EQ(schema.parameters[2].standard->as<ValueList>().size(), 2u);
  EXPECT_EQ(schema.parameters[3].standard->as<Scalar>().to_double(), 1e-5);
  EXPECT_EQ(schema.parameters[4].standard->as<std::string>(), "a");
  EXPECT_EQ(schema.parameters[5].standard->as<DType>(), kInt64);
  EXPECT_NE(message_of([] { parse_schema("f(Tensor"); }).find("is no schema"), std::string::npos);
}

}  // namespace
}  // namespace sinter::interop
