// Recurrent layers and cells, and their gradients, against PyTorch's: eagerly and compiled.
#include "sinter/nn/recurrent.h"

#include "sinter/capture/compile.h"
#include "tests/nn/recorded_layers.h"

namespace sinter {
namespace {

struct RecurrentCase {
  const char* name;
  std::function<std::shared_ptr<nn::Module>()> make;
  Shape size;
  std::vector<Shape> states;
  std::function<TensorList(nn::Module&, const TensorList&)> run;
};
void PrintTo(const RecurrentCase& c, std::ostream* out) { *out << c.name; }

// Layers of one state, given or not.
template <class Impl, class Options>
RecurrentCase of(const char* name, const Options& options, const Shape& size, const std::vector<Shape>& states = {}) {
  return {name, [=] { return std::make_shared<Impl>(options); }, size, states,
          [](nn::Module& m, const TensorList& x) {
            auto result = nn::call(static_cast<Impl&>(m), x[0], x.size() > 1 ? x[1] : Tensor());
            if constexpr (std::is_same_v<decltype(result), Tensor>)
              return TensorList{result};
            else
              return TensorList{std::get<0>(result), std::get<1>(result)};
          }};
}

RecurrentCase lstm(const char* name, const nn::LSTMOptions& options, const Shape& size,
                   const std::vector<Shape>& states = {}) {
  return {name, [=] { return std::make_shared<nn::LSTMImpl>(options); }, size, states,
          [](nn::Module& m, const TensorList& x) {
            auto& layer = static_cast<nn::LSTMImpl&>(m);
            auto [y, state] = x.size() > 1 ? nn::call(layer, x[0], std::tuple(x[1], x[2])) : nn::call(layer, x[0]);
            return TensorList{y, std::get<0>(state), std::get<1>(state)};
          }};
}

const std::vector<RecurrentCase>& cases() {
  using nn::LSTMOptions, nn::RNNOptions, nn::GRUOptions;
  nn::RecurrentCellOptions cell(3, 4);
  static const std::vector<RecurrentCase> all = {
      of<nn::RNNImpl>("rnn", RNNOptions(3, 4), {5, 2, 3}),
      of<nn::RNNImpl>("rnn_relu", RNNOptions(3, 4).nonlinearity("relu").bias(false).batch_first(true), {2, 5, 3}),
      lstm("lstm", LSTMOptions(3, 4), {5, 2, 3}),
      lstm("lstm_deep", LSTMOptions(3, 4).num_layers(2).bidirectional(true).batch_first(true), {2, 5, 3},
           {{4, 2, 4}, {4, 2, 4}}),
      lstm("lstm_projected", LSTMOptions(3, 4).num_layers(2).proj_size(2), {5, 2, 3}, {{2, 2, 2}, {2, 2, 4}}),
      lstm("lstm_single", LSTMOptions(3, 4), {5, 3}, {{1, 4}, {1, 4}}),
      of<nn::GRUImpl>("gru", GRUOptions(3, 4), {5, 2, 3}, {{1, 2, 4}}),
      of<nn::GRUImpl>("gru_deep", GRUOptions(3, 4).num_layers(2).bidirectional(true), {5, 2, 3}),
      of<nn::RNNCellImpl>("rnn_cell", cell, {2, 3}, {{2, 4}}),
      {"lstm_cell",
       [=] { return std::make_shared<nn::LSTMCellImpl>(cell); },
       {2, 3},
       {{2, 4}, {2, 4}},
       [](nn::Module& m, const TensorList& x) {
         auto [h, c] = nn::call(static_cast<nn::LSTMCellImpl&>(m), x[0], std::tuple(x[1], x[2]));
         return TensorList{h, c};
       }},
      of<nn::GRUCellImpl>("gru_cell", cell, {2, 3}, {{2, 4}}),
  };
  return all;
}

class Recurrent : public ::testing::TestWithParam<RecurrentCase> {
 protected:
  Recurrent() : module(GetParam().make()) {
    module->to(kFloat64);
    NoGradGuard no_grad;
    for (auto& p : module->parameters()) p.copy_(cos(ramp64(p.sizes(), -3, 4)) * 0.5);
    inputs.push_back(sin(ramp64(GetParam().size, -2, 3)).requires_grad_());
    for (size_t i = 0; i < GetParam().states.size(); ++i)
      inputs.push_back(cos(ramp64(GetParam().states[i], -1, 2 + double(i))).requires_grad_());
  }
  std::shared_ptr<nn::Module> module;
  TensorList inputs;
};

TEST_P(Recurrent, GivesWhatPyTorchDoes) {
  expect_differentiated(GetParam().name, GetParam().run(*module, inputs), inputs, module.get());
}

TEST_P(Recurrent, GivesTheSameCompiled) {
  auto fast = compile([&](const TensorList& x) { return GetParam().run(*module, x); }, {.fullgraph = true});
  expect_differentiated(GetParam().name, fast(inputs), inputs, module.get());
}

INSTANTIATE_TEST_SUITE_P(Layers, Recurrent, ::testing::ValuesIn(cases()),
                         [](auto& info) { return std::string(info.param.name); });

TEST(LSTM, NamesAreThoseOfPyTorch) {
  nn::LSTM layer(nn::LSTMOptions(3, 4).num_layers(2).bidirectional(true).proj_size(2));
  std::vector<std::string> names;
  for (auto& [name, tensor] : layer->named_parameters()) names.push_back(name + to_string(tensor.sizes()));
  ASSERT_EQ(names.size(), 20u);
  EXPECT_EQ(names[0], "weight_ih_l0[16, 3]");
  EXPECT_EQ(names[4], "weight_hr_l0[2, 4]");
  EXPECT_EQ(names[6], "weight_hh_l0_reverse[16, 2]");
  EXPECT_EQ(names[10], "weight_ih_l1[16, 4]");
  EXPECT_NE(to_string(*layer).find("LSTM(3, 4, proj_size=2, num_layers=2, bidirectional=true)"), std::string::npos);
  for (auto& parameter : layer->parameters()) EXPECT_LE(parameter.abs().amax().item<double>(), 0.5);
}

TEST(LSTM, DropoutIsBetweenLayersAndWhileTraining) {
  nn::LSTM layer(nn::LSTMOptions(3, 4).num_layers(2).dropout(0.5));
  fill_parameters(*layer);
  Tensor x = sin(ramp({5, 2, 3}, -2, 3));
  layer->eval();
  Tensor y = std::get<0>(layer(x));
  expect_equal(std::get<0>(layer(x)), y);
  layer->train();
  EXPECT_FALSE(std::get<0>(layer(x)).allclose(y));
  nn::LSTM one(nn::LSTMOptions(3, 4).dropout(0.5));
  expect_equal(std::get<0>(one(x)), std::get<0>(one(x)));
}

TEST(GRU, WhatDoesNotFitIsAnError) {
  nn::GRU layer(3, 4);
  EXPECT_NE(error_of([&] { layer(ones({5, 2, 4})); }).find("expected positions of 3 features"), std::string::npos);
  EXPECT_NE(error_of([&] { layer(ones({5, 2, 3}), ones({2, 2, 4})); }).find("a state is"), std::string::npos);
  EXPECT_THROW(layer(ones({3})), Error);
  EXPECT_THROW(layer(ones({0, 2, 3})), Error);
  EXPECT_THROW(nn::GRU(nn::GRUOptions(3, 4).proj_size(2)), Error);
  EXPECT_THROW(nn::LSTM(nn::LSTMOptions(3, 4).proj_size(4)), Error);
  EXPECT_THROW(nn::RNN(nn::RNNOptions(3, 4).nonlinearity("gelu"))(ones({5, 2, 3})), Error);
}

}  // namespace
}  // namespace sinter
