// Models that PyTorch exported to ONNX (tests/data/onnx, by tools/record_onnx.py): results and gradients as PyTorch has them,
// eagerly and compiled.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/interop/onnx.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/optim/optim.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

std::string file_of(const std::string& name) { return SINTER_TEST_DATA "/onnx/" + name; }

TensorList numbered(const SafeTensorsFile& file, const std::string& prefix) {
  TensorList out;
  for (int i = 0; file.contains(prefix + std::to_string(i)); ++i)
    out.push_back(file.tensor(prefix + std::to_string(i)).clone());
  return out;
}

void expect_close(const Tensor& have, const Tensor& want, const std::string& what) {
  ASSERT_EQ(have.dtype(), want.dtype()) << what;
  ASSERT_EQ(to_string(have.sizes()), to_string(want.sizes())) << what;
  EXPECT_TRUE(allclose(have.to(kFloat64), want.to(kFloat64), 2e-5, 2e-5)) << what << "\nhave " << have << "\nwant " << want;
}

void check_recorded(const std::string& name, bool is_compiled) {
  ExportedModel model = load_onnx(file_of(name + ".onnx"));
  const SafeTensorsFile recorded(file_of(name + ".safetensors"));
  auto run = compile(model, {.fullgraph = true});
  for (std::string prefix : {"", "second."}) {
    if (!recorded.contains(prefix + "input.0")) continue;
    SCOPED_TRACE(prefix + (is_compiled ? " compiled" : " eager"));
    const TensorList inputs = numbered(recorded, prefix + "input."), wanted = numbered(recorded, prefix + "output.");
    const TensorList results = is_compiled ? run(inputs) : model->forward(inputs);
    ASSERT_EQ(results.size(), wanted.size());
    for (size_t i = 0; i < results.size(); ++i) expect_close(results[i], wanted[i], "result " + std::to_string(i));
    model->zero_grad();
    Tensor loss = zeros({});
    for (auto& result : results)
      if (result.requires_grad()) loss = loss + (result * arange(result.numel()).view(result.sizes())).sum();
    if (!loss.requires_grad()) continue;
    loss.backward();
    for (auto& [parameter, tensor] : model->named_parameters())
      if (recorded.contains(prefix + "grad." + parameter))
        expect_close(tensor.grad(), recorded.tensor(prefix + "grad." + parameter), "gradient of " + parameter);
  }
}

class OnnxModels : public ::testing::TestWithParam<const char*> {};

TEST_P(OnnxModels, AreRightEagerly) { check_recorded(GetParam(), false); }
TEST_P(OnnxModels, AreRightCompiled) { check_recorded(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Recorded, OnnxModels,
                         ::testing::Values("mlp", "outside", "conv_net", "block", "branch", "tied", "norms", "shapes"),
                         [](auto& info) { return std::string(info.param); });

// --- as a module

TEST(OnnxModel, HasParametersByTheirNames) {
  ExportedModel model = load_onnx(file_of("mlp.onnx"));
  std::map<std::string, std::string> sizes;
  for (auto& [name, tensor] : model->named_parameters()) sizes[name] = to_string(tensor.sizes());
  EXPECT_EQ(sizes, (std::map<std::string, std::string>{
                       {"fc1.weight", "[8, 4]"}, {"fc1.bias", "[8]"}, {"fc2.weight", "[3, 8]"}, {"fc2.bias", "[3]"}}));
  EXPECT_EQ(model->input_names(), std::vector<std::string>{"x"});
  ASSERT_EQ(model->example_inputs().size(), 1u);
  EXPECT_EQ(to_string(model->example_inputs()[0].sizes()), "[1, 4]");
}

TEST(OnnxModel, KeepsRunningStatisticsOutOfTheParameters) {
  ExportedModel model = load_onnx(file_of("norms.onnx"));
  const NamedTensors buffers = model->named_buffers();
  for (std::string name : {"norm.running_mean", "norm.running_var"})
    EXPECT_TRUE(std::any_of(buffers.begin(), buffers.end(), [&](auto& b) { return b.first == name; })) << name;
  for (auto& [name, tensor] : model->named_parameters()) EXPECT_EQ(name.find("running"), std::string::npos) << name;
}

TEST(OnnxModel, RefusesInputsItWasNotMadeFor) {
  ExportedModel model = load_onnx(file_of("mlp.onnx"));
  auto error = [&](const TensorList& inputs) { return message_of([&] { model->forward(inputs); }); };
  EXPECT_NE(error({rand({5, 3})}).find("size 1 has to be 4"), std::string::npos) << error({rand({5, 3})});
  EXPECT_NE(error({rand({5, 4}).to(kFloat64)}).find("f64"), std::string::npos);
  EXPECT_NE(error({}).find("0 inputs are given; the program takes 1"), std::string::npos);
}

TEST(OnnxModel, Trains) {
  ExportedModel model = load_onnx(file_of("mlp.onnx"));
  manual_seed(1);
  Tensor x = rand({16, 4}), y = rand({16, 3});
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.1));
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = square(model(x)[0] - y).mean();
    loss.backward();
    optimizer.step();
    return loss;
  });
  const float first = step(x, y).item<float>();
  float last = first;
  for (int i = 0; i < 20; ++i) last = step(x, y).item<float>();
  EXPECT_LT(last, first * 0.8f);
}

TEST(OnnxModel, MapsWeightsThatLieBesideIt) {
  ExportedModel model = load_onnx(file_of("outside.onnx"));
  std::ifstream maps("/proc/self/maps");
  uintptr_t low = 0, high = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("onnx/outside.bin") != std::string::npos) {
      uintptr_t begin = 0, end = 0;
      ASSERT_EQ(std::sscanf(line.c_str(), "%lx-%lx", &begin, &end), 2);
      low = low == 0 ? begin : low;
      high = end;
    }
  ASSERT_NE(low, 0u);
  for (auto& [name, tensor] : model->named_parameters()) {
    auto at = uintptr_t(tensor.data_ptr());
    EXPECT_TRUE(at >= low && at + size_t(int64_t(tensor.nbytes())) <= high) << name;
  }
}

}  // namespace
}  // namespace sinter
