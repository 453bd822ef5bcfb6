#include <cstdio>
#include <sstream>

#include "tests/nn/common.h"

namespace sinter {
namespace {

struct NetImpl : nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr};
  Tensor scale, steps;

  NetImpl() {
    fc1 = register_module("fc1", nn::Linear(3, 4));
    fc2 = register_module("fc2", nn::Linear(nn::LinearOptions(4, 2).bias(false)));
    scale = register_parameter("scale", ones({2}));
    steps = register_buffer("steps", zeros({}, kInt64));
    register_buffer("cache", zeros({5}), /*persistent=*/false);
  }
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))) * scale; }
};
SINTER_MODULE(Net);

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

TEST(Module, NamesFollowRegistrationOwnFirst) {
  Net net;
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(net->named_parameters()), (Names{"scale", "fc1.weight", "fc1.bias", "fc2.weight"}));
  EXPECT_EQ(names_of(net->named_parameters(false)), Names{"scale"});
  EXPECT_EQ(names_of(net->named_buffers()), (Names{"steps", "cache"}));
  EXPECT_EQ(names_of(net->state_dict()), (Names{"scale", "steps", "fc1.weight", "fc1.bias", "fc2.weight"}));
  Names modules;
  for (auto& [name, module] : net->named_modules()) modules.push_back(name + ":" + module->name());
  EXPECT_EQ(modules, (Names{":Net", "fc1:Linear", "fc2:Linear"}));
  EXPECT_EQ(net->children().size(), 2u);
}

TEST(Module, NamesAreChecked) {
  NetImpl net;
  EXPECT_NE(error_of([&] { net.register_parameter("a.b", ones({1})); }).find("dot"), std::string::npos);
  EXPECT_NE(error_of([&] { net.register_buffer("", ones({1})); }).find("needs a name"), std::string::npos);
  EXPECT_NE(error_of([&] { net.register_module("scale", nn::ReLU()); }).find("'scale' is taken"), std::string::npos);
  EXPECT_NE(error_of([&] { net.register_module("none", nn::Linear(nullptr)); }).find("empty"), std::string::npos);
}

TEST(Module, SharedParametersAreListedOnce) {
  nn::Linear shared(2, 2);
  nn::Sequential net(shared, shared);
  EXPECT_EQ(net->parameters().size(), 2u);
  EXPECT_EQ(net->state_dict().size(), 4u);
  EXPECT_EQ(net->modules().size(), 2u);
}

TEST(Module, HandlesShareAndEmptyOnesSaySo) {
  Net net;
  Net same = net;
  same->scale.detach().fill_(3);
  EXPECT_EQ(net->scale.to_vector<float>(), (std::vector<float>{3, 3}));
  nn::Linear empty{nullptr};
  EXPECT_TRUE(empty.is_empty());
  EXPECT_NE(error_of([&] { empty->reset_parameters(); }).find("never assigned"), std::string::npos);
}

TEST(Module, ErrorsOfLayersNameTheUsersLine) {
  nn::Linear fc(3, 4);
  int line = __LINE__ + 1;
  std::string message = error_of([&] { fc(ones({2, 5})); });
  EXPECT_NE(message.find("module_test.cpp:" + std::to_string(line)), std::string::npos) << message;
  nn::MultiheadAttention attention(4, 2);
  Tensor x = ones({2, 1, 5});
  line = __LINE__ + 1;
  message = error_of([&] { attention(x, x, x); });
  EXPECT_NE(message.find("module_test.cpp:" + std::to_string(line)), std::string::npos) << message;
}

TEST(Module, TrainReachesEveryModule) {
  nn::Sequential net(nn::Dropout(0.5), nn::Sequential(nn::Dropout(0.5), nn::ReLU()));
  EXPECT_TRUE(net->is_training());
  net->eval();
  for (auto* module : net->modules()) EXPECT_FALSE(module->is_training());
  Tensor x = ones({4, 4});
  expect_equal(net(x), x);
  net->train();
  EXPECT_TRUE(net->modules().back()->is_training());
}

TEST(Module, ApplyVisitsChildrenFirst) {
  Net net;
  std::string order;
  net->apply([&](nn::Module& module) { order += module.name() + " "; });
  EXPECT_EQ(order, "Linear Linear Net ");
}

TEST(Module, GradientsComeAndGo) {
  Net net;
  net(ones({2, 3})).sum().backward();
  for (auto& parameter : net->parameters()) EXPECT_TRUE(parameter.grad().defined());
  net->zero_grad(false);
  EXPECT_EQ(net->scale.grad().to_vector<float>(), (std::vector<float>{0, 0}));
  net->zero_grad();
  for (auto& parameter : net->parameters()) EXPECT_FALSE(parameter.grad().defined());
  net->requires_grad_(false);
  EXPECT_FALSE(net(ones({2, 3})).requires_grad());
}

TEST(Module, ConversionKeepsIdentity) {
  Net net;
  Tensor weight = net->fc1->weight;
  auto before = weight.to_vector<double>();
  net(ones({1, 3})).sum().backward();
  net->to(kFloat64);
  EXPECT_TRUE(net->parameters()[1].is_same(weight));
  EXPECT_EQ(weight.dtype(), kFloat64);
  EXPECT_EQ(weight.to_vector<double>(), before);
  EXPECT_EQ(weight.grad().dtype(), kFloat64);
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE(weight.is_leaf());
  EXPECT_EQ(net->steps.dtype(), kInt64);
  Tensor y = net(ones({1, 3}, kFloat64));
  EXPECT_EQ(y.dtype(), kFloat64);
  net->zero_grad();
  y.sum().backward();
  EXPECT_EQ(weight.grad().dtype(), kFloat64);
  EXPECT_NE(error_of([&] { net->to(kInt64); }).find("no floating-point type"), std::string::npos);
}

TEST(Module, MemoryFormatConcernsImagesOnly) {
  nn::Conv2d conv(3, 4, 3);
  Tensor x = randn({1, 3, 5, 5}), expected = conv(x);
  conv->to(kChannelsLast);
  EXPECT_TRUE(conv->weight.is_contiguous(kChannelsLast));
  EXPECT_FALSE(conv->weight.is_contiguous());
  EXPECT_TRUE(conv->bias.is_contiguous());
  expect_values(conv(x), expected.to_vector<double>(), 1e-5);
}

TEST(Module, StateDictIsACopyTargetAndSource) {
  Net a, b;
  b->load_state_dict(a->state_dict());
  for (size_t i = 0; i < 4; ++i) {
    expect_equal(a->parameters()[i], b->parameters()[i]);
    EXPECT_FALSE(a->parameters()[i].is_alias_of(b->parameters()[i]));
  }
  EXPECT_TRUE(b->fc1->weight.requires_grad());
  // Values are converted to the dtype of the module.
  auto state = a->state_dict();
  for (auto& [name, tensor] : state) tensor = tensor.to(kFloat64);
  b->load_state_dict(state);
  EXPECT_EQ(b->fc1->weight.dtype(), kFloat32);
}

TEST(Module, AssignedStateIsShared) {
  Net a, b;
  auto state = a->state_dict();
  Tensor held = b->fc1->weight;
  for (auto& [name, tensor] : state)
    if (tensor.is_floating_point()) tensor = tensor.to(kBFloat16);
  b->load_state_dict(state, {.assign = true});
  EXPECT_EQ(held.dtype(), kBFloat16);
  EXPECT_TRUE(held.is_alias_of(state[2].second));
  EXPECT_TRUE(held.requires_grad());
}

TEST(Module, StateThatDoesNotFitIsListedAndChangesNothing) {
  Net net;
  auto state = Net()->state_dict();
  state[2].second = ones({4, 7});  // fc1.weight
  state[3].first = "fc1.offset";   // instead of fc1.bias
  auto before = net->scale.to_vector<float>();
  state[0].second = zeros({2});
  std::string message = error_of([&] { net->load_state_dict(state); });
  for (auto* part : {"fc1.weight is [4, 3] in the module, [4, 7] in the state", "missing from the state: fc1.bias",
                     "not in the module: fc1.offset", "Net"})
    EXPECT_NE(message.find(part), std::string::npos) << part << "\n" << message;
  EXPECT_EQ(net->scale.to_vector<float>(), before);
  // A wrong shape stays an error when not strict.
  EXPECT_THROW(net->load_state_dict(state, {.strict = false}), Error);
  state.erase(state.begin() + 2);
  auto result = net->load_state_dict(state, {.strict = false});
  EXPECT_EQ(result.missing, (std::vector<std::string>{"fc1.weight", "fc1.bias"}));
  EXPECT_EQ(result.unexpected, std::vector<std::string>{"fc1.offset"});
  EXPECT_EQ(net->scale.to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Module, SavesAndLoadsAFile) {
  std::string path = testing::TempDir() + "sinter_module_test.safetensors";
  Net a, b;
  a->steps.fill_(7);
  a->save(path);
  b->load(path);
  Tensor x = randn({5, 3});
  expect_equal(a(x), b(x));
  EXPECT_EQ(b->steps.item<int64_t>(), 7);
  std::remove(path.c_str());
}

TEST(Module, HooksSeeAndReplaceUntilRemoved) {
  nn::Linear fc(2, 2);
  NoGradGuard no_grad;
  fc->weight.copy_(eye(2));
  fc->bias.zero_();
  Tensor x = tensor({{1.0, 2.0}});
  int calls = 0;
  auto pre = fc->register_forward_pre_hook([&](nn::Module& module, TensorList& inputs) {
    EXPECT_EQ(module.name(), "Linear");
    inputs[0] = inputs[0] * 10;
    ++calls;
  });
  auto post = fc->register_forward_hook([&](nn::Module&, const TensorList& inputs, TensorList& outputs) {
    EXPECT_EQ(inputs[0].to_vector<float>(), (std::vector<float>{10, 20}));
    outputs[0] = outputs[0] + 1;
    ++calls;
  });
  expect_values(fc(x), {11, 21});
  EXPECT_EQ(calls, 2);
  pre.remove();
  pre.remove();
  post.remove();
  expect_values(fc(x), {1, 2});
  EXPECT_EQ(calls, 2);
}

TEST(Module, HooksSeeTuplesAndModulesOfUsers) {
  nn::MultiheadAttention attention(4, 2);
  auto handle = attention->register_forward_hook([](nn::Module&, const TensorList& inputs, TensorList& outputs) {
    EXPECT_EQ(inputs.size(), 3u);
    EXPECT_EQ(outputs.size(), 2u);
    outputs[0] = outputs[0] * 0;
  });
  Tensor x = randn({3, 1, 4});
  EXPECT_EQ(std::get<0>(attention(x, x, x)).abs().sum().item<double>(), 0);

  Net net;
  net->register_forward_pre_hook([](nn::Module&, TensorList& inputs) { inputs.push_back(inputs[0]); });
  EXPECT_NE(error_of([&] { net(ones({1, 3})); }).find("changed the number of inputs"), std::string::npos);
  {
    nn::HookHandle outlives = Net()->register_forward_hook([](auto&...) {});
    outlives.remove();
  }
}

TEST(Module, StructureVersionChangesWithTheTreeOnly) {
  Net net;
  uint64_t version = net->structure_version();
  auto expect_change = [&](bool expected) {
    EXPECT_EQ(net->structure_version() != version, expected);
    version = net->structure_version();
  };
  net->eval();
  net->to(kFloat64);
  Net other;
  expect_change(false);
  net->fc1->register_buffer("extra", ones({1}));
  expect_change(true);
  net->fc2 = net->replace_module("fc2", nn::Linear(4, 2));
  expect_change(true);
  auto hook = net->fc1->register_forward_hook([](auto&...) {});
  expect_change(true);
  hook.remove();
  expect_change(true);
  net->unregister_module("fc1");
  expect_change(true);
  EXPECT_THROW(net->unregister_module("fc1"), Error);
  EXPECT_GE(nn::Module::structure_clock(), version);
}

TEST(Module, PrintsAsATree) {
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(),
                     nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 6, 3).stride(2).padding(1))));
  std::ostringstream out;
  out << net;
  EXPECT_EQ(out.str(),
            "Sequential(\n"
            "  (0): Linear(in_features=4, out_features=8, bias=true)\n"
            "  (1): ReLU()\n"
            "  (2): Sequential(\n"
            "    (0): Conv2d(3, 6, kernel_size=[3, 3], stride=[2, 2], padding=[1, 1])\n"
            "  )\n"
            ")");
}

TEST(Module, ParameterScopeDecidesDtypeAndFilling) {
  {
    nn::ParameterScope scope(kBFloat16, /*initialise=*/false);
    nn::Sequential net(nn::Linear(2, 2), nn::LayerNorm(2), nn::Embedding(3, 2));
    for (auto& parameter : net->parameters()) EXPECT_EQ(parameter.dtype(), kBFloat16);
    EXPECT_FALSE(nn::initialises_parameters());
  }
  EXPECT_TRUE(nn::initialises_parameters());
  EXPECT_EQ(nn::Linear(2, 2)->weight.dtype(), kFloat32);
}

TEST(Containers, SequentialTakesModulesAndFunctions) {
  nn::Sequential net(nn::Flatten(), [](const Tensor& x) { return x * 2; });
  net->push_back("double", std::make_shared<nn::FunctionalImpl>([](const Tensor& x) { return x * 2; }));
  EXPECT_EQ(net->named_children().back().first, "double");
  expect_values(net(ones({1, 2, 2})), {4, 4, 4, 4});
  EXPECT_EQ(net->at<nn::FlattenImpl>(0).start_dim, 1);
  EXPECT_THROW(net->at<nn::LinearImpl>(0), Error);
  EXPECT_THROW(net->at(3), Error);
}

TEST(Containers, ListsAndDictsHoldModules) {
  nn::ModuleListOf<nn::Linear> list;
  for (int i = 0; i < 3; ++i) list->push_back(nn::Linear(2, 2));
  EXPECT_EQ(list->parameters().size(), 6u);
  Tensor x = randn({1, 2}), y = x;
  for (auto& layer : *list) y = layer(y);
  expect_equal(y, list[2](list[1](list[0](x))));
  EXPECT_THROW(list[3], Error);

  nn::ModuleDict dict;
  dict->insert("relu", nn::ReLU());
  dict->insert("fc", nn::Linear(2, 3));
  EXPECT_EQ(names_of(dict->named_parameters()), (std::vector<std::string>{"fc.weight", "fc.bias"}));
  EXPECT_TRUE(dict->contains("relu"));
  EXPECT_EQ(dict["fc"]->as<nn::Linear>()->forward(x).size(1), 3);
  EXPECT_THROW(dict["none"], Error);
}

}  // namespace
}  // namespace sinter
