// Programs that PyTorch exported (tests/data/pt2, by tools/record_exported.py): results, gradients and what is written to, as
// PyTorch has them, eagerly and compiled.
#include "sinter/interop/exported.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/io/safetensors.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/optim/optim.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

std::string file_of(const std::string& name) { return SINTER_TEST_DATA "/pt2/" + name; }

class Recorded {
 public:
  explicit Recorded(const std::string& name) : file_(file_of(name + ".safetensors")) {}

  bool contains(const std::string& name) const { return file_.contains(name); }
  Tensor at(const std::string& name) const { return file_.tensor(name).clone(); }
  TensorList list(const std::string& prefix) const {
    TensorList out;
    for (int i = 0; file_.contains(prefix + std::to_string(i)); ++i) out.push_back(at(prefix + std::to_string(i)));
    return out;
  }

 private:
  SafeTensorsFile file_;
};

void expect_close(const Tensor& have, const Tensor& want, const std::string& what) {
  ASSERT_EQ(have.dtype(), want.dtype()) << what;
  ASSERT_EQ(to_string(have.sizes()), to_string(want.sizes())) << what;
  const double tolerance = want.dtype() == kBFloat16 ? 2e-2 : 2e-5;
  EXPECT_TRUE(allclose(have.to(kFloat64), want.to(kFloat64), tolerance, tolerance))
      << what << "\nhave " << have << "\nwant " << want;
}

// Runs the calls that were recorded, one after another: a buffer goes on from where the last one left it.
void check_recorded(const std::string& file, const std::string& name, bool is_compiled) {
  ExportedModel model = load_exported(file_of(file + ".pt2"));
  const Recorded recorded(name);
  auto run = compile(model, {.fullgraph = true});
  for (std::string prefix : {"", "second."}) {
    if (!recorded.contains(prefix + "input.0")) continue;
    SCOPED_TRACE(prefix + (is_compiled ? " compiled" : " eager"));
    TensorList inputs = recorded.list(prefix + "input."), wanted = recorded.list(prefix + "output.");
    TensorList results = is_compiled ? run(inputs) : model->forward(inputs);
    ASSERT_EQ(results.size(), wanted.size());
    for (size_t i = 0; i < results.size(); ++i) expect_close(results[i], wanted[i], "result " + std::to_string(i));
    for (size_t i = 0; i < inputs.size(); ++i)
      expect_close(inputs[i], recorded.at(prefix + "written." + std::to_string(i)), "input " + std::to_string(i));
    for (auto& [buffer, tensor] : model->named_buffers())
      if (recorded.contains(prefix + "after." + buffer))
        expect_close(tensor, recorded.at(prefix + "after." + buffer), buffer);
    if (!recorded.contains(prefix + "grad." + (model->parameters().empty() ? "" : model->named_parameters()[0].first)))
      continue;
    model->zero_grad();
    Tensor loss = zeros({});
    for (auto& result : results)
      if (result.requires_grad()) loss = loss + (result * arange(result.numel()).view(result.sizes())).sum();
    loss.backward();
    for (auto& [parameter, tensor] : model->named_parameters())
      expect_close(tensor.grad(), recorded.at(prefix + "grad." + parameter), "gradient of " + parameter);
  }
}

class ExportedPrograms : public ::testing::TestWithParam<const char*> {};

TEST_P(ExportedPrograms, AreRightEagerly) { check_recorded(GetParam(), GetParam(), false); }
TEST_P(ExportedPrograms, AreRightCompiled) { check_recorded(GetParam(), GetParam(), true); }
TEST_P(ExportedPrograms, AreRightDecomposed) {
  check_recorded(std::string(GetParam()) + "_decomposed", GetParam(), false);
}
TEST_P(ExportedPrograms, AreRightDecomposedAndCompiled) {
  check_recorded(std::string(GetParam()) + "_decomposed", GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(Models, ExportedPrograms,
                         ::testing::Values("mlp", "conv_net_train", "conv_net", "block", "writes", "branch", "loop",
                                           "sizes", "tied", "recurrent", "turned", "experts"),
                         [](auto& info) { return std::string(info.param); });

// --- as a module

TEST(ExportedModel, HasParametersByTheirNames) {
  ExportedModel model = load_exported(file_of("mlp.pt2"));
  std::vector<std::string> names;
  for (auto& [name, tensor] : model->named_parameters()) names.push_back(name + to_string(tensor.sizes()));
  EXPECT_EQ(names, (std::vector<std::string>{"fc1.weight[8, 4]", "fc1.bias[8]", "fc2.weight[3, 8]", "fc2.bias[3]"}));
  EXPECT_EQ(model->input_names(), std::vector<std::string>{"x"});
  EXPECT_EQ(model->extra_repr(), "x: float32[s77, 4], s77 from 2 to 64");
  ASSERT_EQ(model->example_inputs().size(), 1u);
  EXPECT_EQ(to_string(model->example_inputs()[0].sizes()), "[5, 4]");
}

TEST(ExportedModel, KeepsWhatIsNotPersistentOutOfTheState) {
  ExportedModel model = load_exported(file_of("writes.pt2"));
  NamedTensors state = model->state_dict();
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].first, "seen");
}

TEST(ExportedModel, HasOneTensorWhereTwoNamesWereOne) {
  ExportedModel model = load_exported(file_of("tied.pt2"));
  EXPECT_EQ(model->parameters().size(), 1u);
}

TEST(ExportedModel, TakesTensorsOneByOne) {
  ExportedModel model = load_exported(file_of("sizes.pt2"));
  const Recorded recorded("sizes");
  TensorList results = model(recorded.at("input.0"), recorded.at("input.1"));
  expect_close(results[1], recorded.at("output.1"), "result 1");
}

TEST(ExportedModel, RefusesInputsItWasNotExportedFor) {
  ExportedModel model = load_exported(file_of("mlp.pt2"));
  auto error = [&](const TensorList& inputs) { return message_of([&] { model->forward(inputs); }); };
  EXPECT_NE(error({rand({65, 4})}).find("the size s77 is 65, and the program was exported for 64 or less"),
            std::string::npos);
  EXPECT_NE(error({rand({1, 4})}).find("the size s77 is 1, and the program was exported for 2 or more"),
            std::string::npos);
  EXPECT_NE(error({rand({5, 3})}).find("size 1 has to be 4"), std::string::npos) << error({rand({5, 3})});
  EXPECT_NE(error({rand({5})}).find("exported for float32[s77, 4]"), std::string::npos);
  EXPECT_NE(error({rand({5, 4}).to(kFloat64)}).find("f64"), std::string::npos);
  EXPECT_NE(error({}).find("0 inputs are given; the program takes 1"), std::string::npos);
  EXPECT_NE(error({Tensor()}).find("undefined"), std::string::npos);
  ExportedModel sizes = load_exported(file_of("sizes.pt2"));
  const std::string differ = message_of([&] { sizes->forward(rand({4, 6}), rand({5, 2})); });
  EXPECT_NE(differ.find("size 0 has to be 6"), std::string::npos) << differ;
}

TEST(ExportedModel, AnswersWhatOnlyTheDataKnows) {
  const Recorded recorded("data");
  ExportedModel model = load_exported(file_of("data.pt2"));
  auto compiled = compile(model);
  for (std::string prefix : {"", "second."})
    for (bool is_compiled : {false, true}) {
      TensorList inputs = recorded.list(prefix + "input.");
      TensorList results = is_compiled ? compiled(inputs) : model->forward(inputs);
      expect_close(results[0], recorded.at(prefix + "output.0"), prefix);
      expect_close(results[1], recorded.at(prefix + "output.1"), prefix);
    }
  EXPECT_NE(message_of([&] {
              model->forward(tensor({1, 0, 1}), tensor(10));
            }).find("Runtime assertion failed"),
            std::string::npos);
}

TEST(ExportedModel, Trains) {
  ExportedModel model = load_exported(file_of("mlp.pt2"));
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

// --- memory

TEST(ExportedModel, MapsItsWeights) {
  ExportedModel model = load_exported(file_of("mlp.pt2"));
  // The file is mapped once: weights lie in it as far apart as in the file, at multiples of 64 bytes.
  std::ifstream maps("/proc/self/maps");
  uintptr_t low = 0, high = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("pt2/mlp.pt2") != std::string::npos) {
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

TEST(ExportedModel, KeepsTheFileAsItIs) {
  {
    ExportedModel model = load_exported(file_of("mlp.pt2"));
    NoGradGuard no_grad;
    model->parameters()[0].fill_(0);
  }
  ExportedModel again = load_exported(file_of("mlp.pt2"));
  EXPECT_GT(again->parameters()[0].abs().sum().item<float>(), 0.f);
}

}  // namespace
}  // namespace sinter
