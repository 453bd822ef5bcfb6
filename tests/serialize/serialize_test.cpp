// save and load: round trips through files and streams, and files that Python wrote (tools/record_saved.py).
#include "sinter/serialize.h"

#include <gtest/gtest.h>

#include <sstream>

#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/optim/optim.h"
#include "tests/support/error_of.h"
#include "tests/support/own_directory.h"

namespace sinter {
namespace {

struct NetImpl : nn::Module {
  nn::Linear first{nullptr}, last{nullptr};
  nn::BatchNorm1d norm{nullptr};
  NetImpl() {
    norm = register_module("norm", nn::BatchNorm1d(3));
    first = register_module("first", nn::Linear(3, 4));
    last = register_module("last", nn::Linear(4, 2));
  }
  Tensor forward(const Tensor& x) { return last(tanh(first(norm(x)))); }
};
SINTER_MODULE(Net);

Tensor input() { return sin(arange(15, kFloat32)).view({5, 3}); }

void step(Net& net, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  square(net(input())).mean().backward();
  optimizer.step();
}

TEST(SaveAndLoad, TensorsOfEveryDType) {
  for (DType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    std::stringstream stream;
    Tensor x = (arange(12) % 2).view({3, 4}).to(dtype), back;
    save(x.t(), stream);
    load(back, stream);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_TRUE(equal(back, x.t())) << dtype;
  }
  std::stringstream stream;
  Tensor empty_one = zeros({0, 3}), back;
  save(empty_one, stream);
  load(back, stream);
  EXPECT_EQ(to_string(back.sizes()), "[0, 3]");
}

TEST(SaveAndLoad, ListsShareWhatIsThereTwice) {
  Tensor a = ones({1000}), b = tensor({1, 2, 3});
  std::stringstream stream;
  save(TensorList{a, b, a}, stream);
  EXPECT_LT(stream.str().size(), 6000u);
  TensorList back;
  load(back, stream);
  ASSERT_EQ(back.size(), 3u);
  EXPECT_TRUE(back[0].is_alias_of(back[2]));
  EXPECT_TRUE(equal(back[1], b));
}

TEST(SaveAndLoad, ModulesAndOptimisersGoOnWhereTheyWere) {
  OwnDirectory folder;
  const std::string net_file = folder.file("net.pt"), optimizer_file = folder.file("optimizer.pt");
  Net net, other;
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2)),
      resumed(other->parameters(), optim::AdamWOptions(1));
  for (int i = 0; i < 3; ++i) step(net, optimizer);
  save(net, net_file);
  save(optimizer, optimizer_file);
  load(other, net_file);
  load(resumed, optimizer_file);
  EXPECT_EQ(resumed.lr(), 1e-2);
  step(net, optimizer);
  step(other, resumed);
  auto want = net->state_dict(), got = other->state_dict();
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(equal(got[i].second, want[i].second)) << want[i].first;
}

TEST(SaveAndLoad, ReadsWhatPythonWrote) {
  Net net;
  load(net, SINTER_TEST_DATA "/saved/net.pt");
  optim::Adam optimizer(net->parameters(), optim::AdamOptions(1));
  load(optimizer, SINTER_TEST_DATA "/saved/adam.pt");
  EXPECT_EQ(optimizer.lr(), 0.01);
  step(net, optimizer);
  Net after;
  load(after, SINTER_TEST_DATA "/saved/net_after.pt");
  auto want = after->state_dict(), got = net->state_dict();
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(allclose(got[i].second, want[i].second, 1e-5, 1e-6))
        << want[i].first << got[i].second << want[i].second;
}

// The structure that Python's reader asks for: entries that are not compressed, the program first.
TEST(SaveAndLoad, WritesTheLayoutOfTorchSave) {
  std::stringstream stream;
  save(tensor({1.0f, 2.0f}), stream);
  const std::string bytes = stream.str();
  for (auto* part : {"archive/data.pkl", "archive/byteorder", "archive/data/0", "archive/version",
                     "ctorch._utils\n_rebuild_tensor_v2\n", "ctorch\nFloatStorage\n"})
    EXPECT_NE(bytes.find(part), std::string::npos) << part;
}

TEST(SaveAndLoad, SayWhatDoesNotFit) {
  auto says = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  std::stringstream stream;
  save(TensorList{ones({2})}, stream);
  Tensor one;
  says(message_of([&] { load(one, stream); }), "no tensor by itself");
  stream = std::stringstream("nonsense");
  says(message_of([&] { load(one, stream); }), "'the stream' is not a ZIP archive");
  nn::Linear small(2, 3), large(3, 3);
  stream = std::stringstream();
  save(small, stream);
  says(message_of([&] { load(large, stream); }), "weight");
  says(message_of([&] { save(Tensor(), stream); }), "undefined");
}

}  // namespace
}  // namespace sinter
