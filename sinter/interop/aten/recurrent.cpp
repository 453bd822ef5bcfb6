// Recurrent layers, whose weights are a list.
#include "sinter/base/error.h"
#include "sinter/interop/aten/table.h"
#include "sinter/nn/recurrent_steps.h"
#include "sinter/ops/matmul.h"

namespace sinter::interop {

namespace {

struct Layers {
  bool biases;
  Int count;
  double dropout;
  bool train, bidirectional, batch_first;
};

// Weights as PyTorch lists them, for each layer and direction: those of the input and of the state, their biases, and what
// projects the results.
TensorList run_layers(const char* name, nn::RecurrentStep step, In x, const TensorList& states,
                      const TensorList& weights, const Layers& layers, const char* nonlinearity = "tanh") {
  const size_t parts = size_t(layers.count) * (layers.bidirectional ? 2 : 1);
  const size_t plain = layers.biases ? 4 : 2;
  check(layers.count > 0 && (weights.size() == parts * plain || weights.size() == parts * (plain + 1)),
        "{}: {} layers have not {} weights", name, layers.count, weights.size());
  const size_t each = weights.size() / parts;
  std::vector<nn::RecurrentWeights> by_part;
  for (size_t at = 0; at < weights.size(); at += each) {
    nn::RecurrentWeights one;
    one.ih = weights[at];
    one.hh = weights[at + 1];
    if (layers.biases) {
      one.bias_ih = weights[at + 2];
      one.bias_hh = weights[at + 3];
    }
    if (each > plain) one.hr = weights[at + plain];
    by_part.push_back(one);
  }
  const int64_t gates = step == nn::lstm_step ? 4 : step == nn::gru_step ? 3 : 1;
  const int64_t hidden = by_part[0].ih.size(0) / gates;
  nn::RecurrentOptions options(by_part[0].ih.size(1), hidden);
  options.num_layers(layers.count).bias(layers.biases).batch_first(layers.batch_first).dropout(layers.dropout);
  options.bidirectional(layers.bidirectional).nonlinearity(nonlinearity);
  if (each > plain) options.proj_size(by_part[0].hr.size(0));
  return nn::run_recurrent(name, step, options, by_part, layers.train, x, states);
}

std::tuple<Tensor, Tensor, Tensor> lstm(In x, const TensorList& states, const TensorList& weights, bool biases,
                                        Int count, double dropout, bool train, bool bidirectional, bool batch_first) {
  check(states.size() == 2, "LSTM: {} states are given and not two", states.size());
  TensorList out = run_layers("LSTM", nn::lstm_step, x, states, weights,
                              {biases, count, dropout, train, bidirectional, batch_first});
  return {out[0], out[1], out[2]};
}

std::tuple<Tensor, Tensor> gru(In x, const Tensor& state, const TensorList& weights, bool biases, Int count,
                               double dropout, bool train, bool bidirectional, bool batch_first) {
  TensorList out =
      run_layers("GRU", nn::gru_step, x, {state}, weights, {biases, count, dropout, train, bidirectional, batch_first});
  return {out[0], out[1]};
}

std::tuple<Tensor, Tensor> rnn_tanh(In x, const Tensor& state, const TensorList& weights, bool biases, Int count,
                                    double dropout, bool train, bool bidirectional, bool batch_first) {
  TensorList out =
      run_layers("RNN", nn::rnn_step, x, {state}, weights, {biases, count, dropout, train, bidirectional, batch_first});
  return {out[0], out[1]};
}

std::tuple<Tensor, Tensor> rnn_relu(In x, const Tensor& state, const TensorList& weights, bool biases, Int count,
                                    double dropout, bool train, bool bidirectional, bool batch_first) {
  TensorList out = run_layers("RNN", nn::rnn_step, x, {state}, weights,
                              {biases, count, dropout, train, bidirectional, batch_first}, "relu");
  return {out[0], out[1]};
}

// One step with the weights of a cell.
TensorList step_of(nn::RecurrentStep step, In x, const TensorList& states, const Tensor& w_ih, const Tensor& w_hh,
                   const Tensor& b_ih, const Tensor& b_hh, const char* nonlinearity = "tanh") {
  nn::RecurrentWeights weights;
  weights.ih = w_ih, weights.hh = w_hh, weights.bias_ih = b_ih, weights.bias_hh = b_hh;
  nn::RecurrentOptions options(w_ih.size(1), w_hh.size(1));
  options.bias(b_ih.defined()).nonlinearity(nonlinearity);
  return step(linear(x, w_ih, b_ih), states, weights, options);
}

}  // namespace

std::span<const Function> recurrent_functions() {
  static const Function kList[] = {
      {"lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
       lstm},
      {"gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       gru},
      {"rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       rnn_tanh},
      {"rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
       "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
       rnn_relu},
      {"lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       "(Tensor, Tensor)",
       [](In x, const TensorList& states, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
          const Tensor& b_hh) {
         check(states.size() == 2, "lstm_cell: {} states are given and not two", states.size());
         TensorList out = step_of(nn::lstm_step, x, states, w_ih, w_hh, b_ih, b_hh);
         return std::tuple(out[0], out[1]);
       }},
      {"gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
       [](In x, const Tensor& state, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
         return step_of(nn::gru_step, x, {state}, w_ih, w_hh, b_ih, b_hh)[0];
       }},
      {"rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       "Tensor",
       [](In x, const Tensor& state, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
         return step_of(nn::rnn_step, x, {state}, w_ih, w_hh, b_ih, b_hh)[0];
       }},
      {"rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
       "Tensor",
       [](In x, const Tensor& state, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
         return step_of(nn::rnn_step, x, {state}, w_ih, w_hh, b_ih, b_hh, "relu")[0];
       }},
  };
  return kList;
}

}  // namespace sinter::interop
