// A module as a function of its parameters: values, gradients, batches, programs, and the module as it was afterwards.
#include "sinter/nn/functional_call.h"

#include "sinter/autograd/functional.h"
#include "sinter/capture/entry.h"
#include "tests/nn/common.h"

namespace sinter {
namespace {

nn::Sequential small_net() {
  nn::Sequential net(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  fill_parameters(*net);
  return net;
}

NamedTensors scaled(const nn::Sequential& net, double factor) {
  NamedTensors all;
  for (auto& [name, tensor] : net->named_parameters())
    all.emplace_back(name, (tensor.detach() * factor).requires_grad_());
  return all;
}

// What net gives with these weights, by formula.
Tensor by_hand(const NamedTensors& w, const Tensor& x) {
  return linear(tanh(linear(x, w["0.weight"], w["0.bias"])), w["2.weight"], w["2.bias"]);
}

TEST(FunctionalCall, GivenWeightsAreUsedAndGetTheGradients) {
  auto net = small_net();
  auto own = net->parameters()[0].detach().clone();
  NamedTensors values = scaled(net, 2), same = scaled(net, 2);
  Tensor x = ramp({5, 3}, -1, 1);
  Tensor y = func::functional_call(net, values, x), want = by_hand(same, x);
  expect_equal(y, want);
  expect_equal(net->parameters()[0], own);
  square(y).sum().backward();
  square(want).sum().backward();
  for (size_t i = 0; i < values.size(); ++i) expect_equal(values[i].second.grad(), same[i].second.grad());
  for (auto& p : net->parameters()) {
    EXPECT_FALSE(p.grad().defined());
    EXPECT_TRUE(p.requires_grad());
    EXPECT_TRUE(p.is_leaf());
  }
}

TEST(FunctionalCall, OtherNamesKeepTheModulesOwn) {
  auto net = small_net();
  NamedTensors values = scaled(net, 3), all;
  for (auto& [name, tensor] : net->named_parameters())
    all.emplace_back(name, name == "2.bias" ? values["2.bias"] : tensor);
  Tensor x = ramp({2, 3}, -1, 1), y = func::functional_call(net, {{"2.bias", values["2.bias"]}}, x);
  expect_equal(y, by_hand(all, x));
  y.sum().backward();
  EXPECT_TRUE(net->parameters()[0].grad().defined());
  EXPECT_FALSE(net->named_parameters()["2.bias"].grad().defined());
  EXPECT_TRUE(values["2.bias"].grad().defined());
}

TEST(FunctionalCall, GradientsOfSingleSamples) {
  auto net = small_net();
  Tensor xs = ramp({6, 3}, -1, 2), ys = ramp({6, 2}, 0, 1);
  auto loss = [&](const TensorList& weights, const Tensor& x, const Tensor& y) {
    return square(func::functional_call(net, weights, x) - y).sum();
  };
  TensorList each = func::vmap(func::grad(loss), {{}, 0, 0})(net->parameters(), xs, ys);
  ASSERT_EQ(each.size(), 4u);
  for (int64_t i = 0; i < 6; ++i) {
    net->zero_grad();
    square(net->forward(xs[i]) - ys[i]).sum().backward();
    for (size_t p = 0; p < each.size(); ++p)
      EXPECT_TRUE(each[p][i].allclose(net->parameters()[p].grad(), 1e-5, 1e-6))
          << "sample " << i << ", parameter " << p;
  }
  auto [grads, value] = func::grad_and_value(loss)(net->parameters(), xs[0], ys[0]);
  EXPECT_EQ(grads.size(), 4u);
  EXPECT_NEAR(value.item<double>(), loss(net->parameters(), xs[0], ys[0]).item<double>(), 1e-6);
}

TEST(FunctionalCall, Ensemble) {
  std::vector<nn::Sequential> nets;
  for (int i = 0; i < 3; ++i) {
    nets.push_back(small_net());
    NoGradGuard no_grad;
    for (auto& p : nets.back()->parameters()) p.mul_(i - 0.5);
  }
  auto [parameters, buffers] = func::stack_module_state(nets);
  EXPECT_TRUE(buffers.is_empty());
  EXPECT_EQ(to_string(parameters["0.weight"].sizes()), "[3, 4, 3]");
  EXPECT_TRUE(parameters["0.weight"].requires_grad() && parameters["0.weight"].is_leaf());
  Tensor x = ramp({5, 3}, -1, 1);
  auto one = [&](const TensorList& weights, const Tensor& x) { return func::functional_call(nets[0], weights, x); };
  Tensor all = func::vmap(one, {0, {}})(parameters.values(), x);
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(all[i].allclose(nets[size_t(i)]->forward(x), 1e-5, 1e-6));
}

TEST(FunctionalCall, BuffersGivenAreWritten) {
  nn::BatchNorm1d norm(3);
  Tensor mean = ones({3}), x = ramp({8, 3}, -1, 4);
  func::functional_call(norm, {{"running_mean", mean}}, x);
  EXPECT_TRUE(mean.allclose(ones({3}) * 0.9 + x.mean(0) * 0.1));
  expect_equal(norm->running_mean, zeros({3}));
}

struct PickImpl : nn::Module {
  Tensor table, rows;
  PickImpl() {
    table = register_parameter("table", ramp({4, 2}, 0, 7));
    rows = register_buffer("rows", tensor({0, 1}));
  }
  Tensor forward(const Tensor& x) { return index_select(table, 0, rows) * x; }
};
SINTER_MODULE(Pick);

TEST(FunctionalCall, WhatAGradientKeepsIsTheGivenTensor) {
  Pick pick;
  Tensor y = func::functional_call(pick, {{"rows", tensor({3, 3})}}, tensor(2.0f));
  y.sum().backward();
  expect_values(pick->table.grad(), {0, 0, 0, 0, 0, 0, 4, 4});
}

struct TiedImpl : nn::Module {
  nn::Linear in{nullptr}, out{nullptr};
  TiedImpl() {
    in = register_module("in", nn::Linear(nn::LinearOptions(3, 3).bias(false)));
    out = register_module("out", nn::Linear(nn::LinearOptions(3, 3).bias(false)));
    out->unregister_parameter("weight");
    out->weight = out->register_parameter("weight", in->weight);
  }
  Tensor forward(const Tensor& x) { return out(in(x)); }
  Tensor weight() { return in->weight; }
};
SINTER_MODULE(Tied);

TEST(FunctionalCall, TiedParametersGoTogether) {
  Tied tied;
  Tensor own = tied->weight().detach().clone();
  Tensor w = eye(3) * 2, x = ramp({2, 3}, 0, 1);
  for (const char* name : {"in.weight", "out.weight"}) expect_equal(func::functional_call(tied, {{name, w}}, x), x * 4);
  EXPECT_NE(error_of([&] {
              func::functional_call(tied, {{"in.weight", w}, {"out.weight", eye(3)}}, x);
            }).find("'out.weight' is tied"),
            std::string::npos);
  expect_equal(tied->weight(), own);
  expect_equal(func::functional_call(tied, {{"in.weight", w}, {"out.weight", w}}, x), x * 4);
}

struct ThrowsImpl : nn::Module {
  Tensor weight;
  ThrowsImpl() { weight = register_parameter("weight", ones({2})); }
  Tensor forward(const Tensor& x) {
    if (x.dim() == 0) throw std::runtime_error("no");
    return weight;
  }
};
SINTER_MODULE(Throws);

TEST(FunctionalCall, ResultsAndExceptionsLeaveTheModuleAsItWas) {
  Throws module;
  Tensor w = ones({2}) * 5;
  EXPECT_EQ(&func::functional_call(module, {{"weight", w}}, ones({1})).impl(), &w.impl());
  EXPECT_THROW(func::functional_call(module, {{"weight", w}}, ones({})), std::runtime_error);
  expect_values(module->weight, {1, 1});
  EXPECT_NE(error_of([&] {
              func::functional_call(module, {{"wait", w}}, ones({1}));
            }).find("Throws has no parameter or buffer 'wait'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              func::functional_call(module, TensorList{w, w}, ones({1}));
            }).find("2 tensors for the 1 parameters"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              func::functional_call(module, {{"weight", Tensor()}}, ones({1}));
            }).find("is undefined"),
            std::string::npos);
}

TEST(FunctionalCall, InsideACompiledFunction) {
  auto net = small_net();
  NamedTensors reached = scaled(net, 2);
  Tensor x = ramp({5, 3}, -1, 1);
  auto given =
      compile([&](const TensorList& weights, const Tensor& x) { return func::functional_call(net, weights, x); },
              {.fullgraph = true});
  auto both = compile([&](const Tensor& x) { return net(x) - func::functional_call(net, reached, x) + net(x); },
                      {.fullgraph = true});
  for (double factor : {1.0, -2.0}) {
    NamedTensors values = scaled(net, factor);
    Tensor y = given(values.values(), x);
    EXPECT_TRUE(y.allclose(by_hand(values, x), 1e-5, 1e-6));
    y.sum().backward();
    EXPECT_TRUE(values[0].second.grad().defined());
    NoGradGuard no_grad;
    for (auto& [name, tensor] : reached) tensor.mul_(factor);
    EXPECT_TRUE(both(x).allclose(net->forward(x) * 2 - by_hand(reached, x), 1e-5, 1e-6));
  }
  EXPECT_FALSE(net->parameters()[0].grad().defined());
  both(x).sum().backward();
  EXPECT_TRUE(reached[0].second.grad().defined());
  EXPECT_TRUE(net->parameters()[0].grad().defined());
}

TEST(FunctionalCall, OfAModuleThatIsCompiledInPlace) {
  auto net = small_net(), plain = small_net();
  net->compile();
  Tensor x = ramp({5, 3}, -1, 1);
  for (double factor : {1.0, 3.0}) {
    EXPECT_TRUE(net(x).allclose(plain(x), 1e-5, 1e-6));
    NamedTensors values = scaled(net, factor), same = scaled(plain, factor);
    Tensor y = func::functional_call(net, values, x), want = by_hand(same, x);
    EXPECT_TRUE(y.allclose(want, 1e-5, 1e-6));
    y.sum().backward();
    want.sum().backward();
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_TRUE(values[i].second.grad().allclose(same[i].second.grad(), 1e-5, 1e-6)) << values[i].first;
  }
  EXPECT_FALSE(net->parameters()[0].grad().defined());
}

}  // namespace
}  // namespace sinter
