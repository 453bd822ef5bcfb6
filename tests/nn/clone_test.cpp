// Module::clone and Cloneable.
#include <gtest/gtest.h>

#include "sinter/nn/recurrent.h"
#include "sinter/sinter.h"

namespace sinter {
namespace {

using namespace nn;

struct BlockImpl : nn::Cloneable<BlockImpl> {
  explicit BlockImpl(int64_t width, double scale = 1) : width(width), scale(scale) {
    reset();
    guarded(this->scale);
  }
  void reset() override {
    fc = register_module("fc", Linear(width, width));
    drop = register_module("drop", Dropout(0.5));
    gain = register_parameter("gain", ones({1}));
    seen = register_buffer("seen", zeros({1}));
  }
  Tensor forward(const Tensor& x) { return drop(fc(x)) * gain * scale; }

  int64_t width;
  double scale;
  Linear fc{nullptr};
  Dropout drop{nullptr};
  Tensor gain, seen;
};
SINTER_MODULE(Block);

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", Block(3));
    rest = register_module("rest", Sequential({{"norm", BatchNorm1d(3)}, {"act", ReLU()}, {"out", Linear(3, 2)}}));
  }
  Tensor forward(const Tensor& x) { return rest(first(x)); }
  Block first{nullptr};
  Sequential rest{nullptr};
};
SINTER_MODULE(Net);

void expect_equal_and_apart(const Module& a, const Module& b) {
  auto of_a = a.state_dict(), of_b = b.state_dict();
  ASSERT_EQ(of_a.keys(), of_b.keys());
  for (size_t i = 0; i < of_a.size(); ++i) {
    EXPECT_TRUE(of_a[i].second.equal(of_b[i].second)) << of_a[i].first;
    if (of_a[i].second.numel() > 0) {
      EXPECT_NE(of_a[i].second.data_ptr(), of_b[i].second.data_ptr()) << of_a[i].first;
    }
  }
  EXPECT_EQ(to_string(a), to_string(b));
}

template <class Holder>
Holder copy_of(const Holder& holder) {
  auto copy = std::dynamic_pointer_cast<std::remove_cvref_t<decltype(*holder)>>(holder->clone());
  EXPECT_TRUE(copy);
  expect_equal_and_apart(*holder, *copy);
  return Holder(copy);
}

TEST(Clone, OfATreeHasItsOwnTensorsAndHandles) {
  manual_seed(1);
  Net net;
  net->first->gain.set_data(full({1}, 3.0));
  net->first->scale = 0.5;
  net->first->drop->options.p(0.25);
  net->eval();
  Net copy = copy_of(net);
  EXPECT_FALSE(copy->is_training());
  EXPECT_FALSE(copy->rest->is_training());
  EXPECT_EQ(copy->first->scale, 0.5);
  EXPECT_EQ(copy->first->drop->options.p(), 0.25);
  // The members are handles on what the tree has.
  EXPECT_TRUE(copy->first->gain.is_same(copy->named_parameters()["first.gain"]));
  EXPECT_TRUE(copy->first->fc->weight.is_same(copy->named_parameters()["first.fc.weight"]));
  Tensor x = randn({4, 3});
  EXPECT_TRUE(copy(x).equal(net(x)));
  NoGradGuard no_grad;
  copy->first->fc->weight.zero_();
  EXPECT_FALSE(copy(x).equal(net(x)));
}

TEST(Clone, LearnsApart) {
  Net net;
  net->first->fc->weight.requires_grad_(false);
  Tensor x = randn({4, 3});
  net(x).sum().backward();
  Net copy = copy_of(net);
  EXPECT_FALSE(copy->first->fc->weight.requires_grad());
  EXPECT_TRUE(copy->first->fc->bias.requires_grad());
  EXPECT_TRUE(net->first->fc->bias.grad().defined());
  EXPECT_FALSE(copy->first->fc->bias.grad().defined());
  copy(x).sum().backward();
  EXPECT_TRUE(copy->first->fc->bias.grad().defined());
}

TEST(Clone, DrawsNothing) {
  manual_seed(3);
  Net net;
  manual_seed(7);
  Tensor before = randn({3});
  manual_seed(7);
  auto copy = net->clone();
  EXPECT_TRUE(randn({3}).equal(before));
}

TEST(Clone, OfAnEmptyModuleOfTheUsersNeedsNoReset) {
  struct Plain : nn::Cloneable<Plain> {
    int64_t n = 4;
  };
  Plain plain;
  plain.n = 5;
  EXPECT_EQ(std::dynamic_pointer_cast<Plain>(plain.clone())->n, 5);
}

TEST(Clone, OfLayers) {
  manual_seed(2);
  copy_of(Linear(LinearOptions(3, 4).bias(false)));
  copy_of(Bilinear(2, 3, 4));
  copy_of(Embedding(EmbeddingOptions(5, 3).padding_idx(-1)));
  copy_of(EmbeddingBag(5, 3));
  copy_of(Conv2d(Conv2dOptions(4, 6, 3).groups(2).padding(1)));
  copy_of(ConvTranspose1d(4, 6, 3));
  copy_of(MaxPool2d(2));
  copy_of(LPPool2d(2, 3));
  copy_of(AdaptiveAvgPool2d(3));
  copy_of(ConstantPad2d(1, 2.5));
  copy_of(ReflectionPad1d(2));
  copy_of(Upsample(UpsampleOptions().scale_factor({2.0})));
  copy_of(PixelShuffle(2));
  copy_of(Unfold(3));
  copy_of(LayerNorm(4));
  copy_of(RMSNorm(4));
  copy_of(GroupNorm(2, 4));
  copy_of(BatchNorm2d(4));
  copy_of(InstanceNorm2d(InstanceNormOptions(4).affine(true).track_running_stats(true)));
  copy_of(Dropout(0.3));
  copy_of(PReLU(3));
  copy_of(Softmax(1));
  copy_of(Hardtanh(-2, 2));
  copy_of(Flatten());
  copy_of(MSELoss());
  copy_of(TransformerEncoderLayer(4, 2));
  copy_of(LSTM(LSTMOptions(3, 4).num_layers(2).bidirectional(true).proj_size(2)));
  copy_of(GRUCell(3, 4));
  Tensor x = randn({2, 5, 3});
  RNN rnn(3, 4), same = copy_of(rnn);
  EXPECT_TRUE(std::get<0>(same(x)).equal(std::get<0>(rnn(x))));
  MultiheadAttention attention(MultiheadAttentionOptions(4, 2).kdim(3).vdim(3).add_bias_kv(true)),
      other = copy_of(attention);
  Tensor q = randn({2, 5, 4});
  EXPECT_TRUE(std::get<0>(other(q, x, x)).equal(std::get<0>(attention(q, x, x))));
}

TEST(Clone, OfALossHasItsOwnWeights) {
  Tensor weight = tensor({1.0, 2.0, 3.0});
  CrossEntropyLoss loss(CrossEntropyLossOptions().weight(weight)), copy = copy_of(loss);
  Tensor x = randn({4, 3}), target = tensor({0, 1, 2, 1});
  EXPECT_TRUE(copy(x, target).equal(loss(x, target)));
  copy->options.weight().fill_(1);
  EXPECT_EQ(weight.select(0, 2).item<float>(), 3);
}

TEST(Clone, OfContainers) {
  Sequential net(Linear(2, 3), Functional(relu), Linear(3, 1));
  Sequential copy = copy_of(net);
  Tensor x = randn({4, 2});
  EXPECT_TRUE(copy(x).equal(net(x)));
  net->push_back(Tanh());
  EXPECT_EQ(copy->size(), 3u);
  ModuleList list(Linear(2, 2), ReLU());
  EXPECT_EQ(copy_of(list)->at<LinearImpl>(0).options.out_features(), 2);
  ModuleListOf<Block> blocks;
  blocks->push_back(Block(2));
  EXPECT_EQ((*copy_of(blocks))[0]->width, 2);
  ModuleDict dict;
  dict->insert("fc", Linear(2, 2));
  EXPECT_TRUE(copy_of(dict)->contains("fc"));
  ParameterList parameters(ones({2}), zeros({3}));
  parameters[0].requires_grad_(false);
  EXPECT_FALSE(copy_of(parameters)[0].requires_grad());
  ParameterDict named;
  named->insert("w", ones({2}));
  EXPECT_TRUE(copy_of(named)["w"].requires_grad());
  TransformerEncoder encoder(TransformerEncoderLayer(4, 2), 2);
  encoder->eval();
  Tensor y = randn({3, 2, 4});
  EXPECT_TRUE(copy_of(encoder)(y).equal(encoder(y)));
  Transformer transformer(TransformerOptions(4, 2, 1, 1).dim_feedforward(8));
  copy_of(transformer);
  AnyModule any(Linear(2, 2)), again = any.clone();
  EXPECT_TRUE(again.get<Linear>().weight.equal(any.get<Linear>().weight));
  EXPECT_FALSE(again.get<Linear>().weight.is_same(any.get<Linear>().weight));
}

TEST(Clone, KeepsDtypeAndGoesToADevice) {
  Net net;
  net->to(kFloat64);
  auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone(Device(kCPU)));
  EXPECT_EQ(copy->first->fc->weight.dtype(), kFloat64);
  expect_equal_and_apart(*net, *copy);
}

TEST(Clone, HasTheHooksAndIsGuardedByItsOwnFields) {
  Block block(2);
  int calls = 0;
  block->register_forward_hook([&](Module&, const TensorList&, TensorList&) { ++calls; });
  block->eval();
  Block copy = copy_of(block);
  auto compiled = compile(copy);
  Tensor x = randn({2, 2});
  EXPECT_TRUE(compiled(x).allclose(block(x)));
  copy->scale = 2;
  EXPECT_TRUE(compiled(x).allclose(2 * block(x)));
  EXPECT_GT(calls, 2);
}

TEST(Clone, ErrorsSayWhatToDo) {
  auto message = [](const Module& module) -> std::string {
    try {
      module.clone();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  struct PlainImpl : nn::Module {};
  EXPECT_NE(message(PlainImpl()).find("derive PlainImpl from nn::Cloneable<PlainImpl>"), std::string::npos);
  struct LateImpl : nn::Cloneable<LateImpl> {
    LateImpl() { w = register_parameter("w", ones({1})); }
    Tensor w;
  };
  EXPECT_NE(message(LateImpl()).find("Late has the parameters w, and its reset() registers none"), std::string::npos);
  struct MyLinearImpl : LinearImpl {
    MyLinearImpl() : LinearImpl(2, 2) {}
  };
  EXPECT_NE(message(MyLinearImpl()).find("derive MyLinearImpl from nn::Cloneable<MyLinearImpl, Base>"),
            std::string::npos);
  Net net;
  net->replace_module("rest", Sequential(Linear(3, 3)));
  EXPECT_EQ(message(*net), "");
  net->replace_module("first", Linear(3, 3));
  EXPECT_NE(message(*net).find("module first of Net is a Linear, and its reset() makes a Block"), std::string::npos);
}

}  // namespace
}  // namespace sinter
