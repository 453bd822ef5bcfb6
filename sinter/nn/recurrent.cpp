#include "sinter/nn/recurrent.h"

#include <cmath>
#include <functional>

#include "sinter/base/error.h"
#include "sinter/nn/init.h"
#include "sinter/nn/recurrent_steps.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::nn {

// --- one step; `input` is the input times its weights

static bool is_relu(const std::string& layer, const std::string& nonlinearity) {
  check(nonlinearity == "tanh" || nonlinearity == "relu",
        "nn::{}: nonlinearity \"{}\" is neither \"tanh\" nor \"relu\"", layer, nonlinearity);
  return nonlinearity == "relu";
}

static Tensor plain_step(const Tensor& input, const Tensor& h, const RecurrentWeights& w, bool is_relu) {
  Tensor sum = input + linear(h, w.hh, w.bias_hh);
  return is_relu ? relu(sum) : tanh(sum);
}

TensorList rnn_step(const Tensor& input, const TensorList& states, const RecurrentWeights& w,
                    const RecurrentOptions& options) {
  return {plain_step(input, states[0], w, is_relu("RNN", options.nonlinearity()))};
}

TensorList lstm_step(const Tensor& input, const TensorList& states, const RecurrentWeights& w,
                     const RecurrentOptions&) {
  TensorList gates = (input + linear(states[0], w.hh, w.bias_hh)).chunk(4, -1);
  Tensor cell = sigmoid(gates[1]) * states[1] + sigmoid(gates[0]) * tanh(gates[2]);
  Tensor result = sigmoid(gates[3]) * tanh(cell);
  return {w.hr.defined() ? linear(result, w.hr) : result, cell};
}

TensorList gru_step(const Tensor& input, const TensorList& states, const RecurrentWeights& w, const RecurrentOptions&) {
  TensorList in = input.chunk(3, -1), own = linear(states[0], w.hh, w.bias_hh).chunk(3, -1);
  Tensor reset = sigmoid(in[0] + own[0]), update = sigmoid(in[1] + own[1]);
  Tensor fresh = tanh(in[2] + reset * own[2]);
  return {(states[0] - fresh) * update + fresh};
}

static void fill_uniformly(const Module& module, int64_t hidden_size) {
  double bound = hidden_size > 0 ? 1 / std::sqrt(double(hidden_size)) : 0;
  for (auto& parameter : module.parameters(false)) init::uniform_(parameter, -bound, bound);
}

// --- layers

RecurrentImpl::RecurrentImpl(const RecurrentOptions& given, int64_t gates) : options(given), gates_(gates) { reset(); }

void RecurrentImpl::reset() {
  weights.clear();
  int64_t hidden = options.hidden_size(), result = options.proj_size() > 0 ? options.proj_size() : hidden;
  check(options.input_size() > 0 && hidden > 0 && options.num_layers() > 0,
        "nn: a recurrent layer of input_size {}, hidden_size {} and num_layers {}", options.input_size(), hidden,
        options.num_layers());
  check(options.proj_size() >= 0 && options.proj_size() < hidden, "nn: proj_size {} is not below hidden_size {}",
        options.proj_size(), hidden);
  check(options.dropout() >= 0 && options.dropout() <= 1, "nn: dropout {} is no probability", options.dropout());
  int directions = options.bidirectional() ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers(); ++layer)
    for (int direction = 0; direction < directions; ++direction) {
      int64_t in = layer == 0 ? options.input_size() : result * directions;
      auto parameter = [&](const char* name, const Shape& shape) {
        return register_parameter(format("{}_l{}{}", name, layer, direction ? "_reverse" : ""), new_parameter(shape));
      };
      RecurrentWeights one;
      one.ih = parameter("weight_ih", {gates_ * hidden, in});
      one.hh = parameter("weight_hh", {gates_ * hidden, result});
      if (options.bias()) {
        one.bias_ih = parameter("bias_ih", {gates_ * hidden});
        one.bias_hh = parameter("bias_hh", {gates_ * hidden});
      }
      if (options.proj_size() > 0) one.hr = parameter("weight_hr", {result, hidden});
      weights.push_back(one);
    }
  if (initialises_parameters()) reset_parameters();
}

void RecurrentImpl::reset_parameters() { fill_uniformly(*this, options.hidden_size()); }

// One direction of one layer over all positions: its results, and behind them the states.
static TensorList walk(RecurrentStep step, const RecurrentOptions& options, const Tensor& x, const TensorList& states,
                       const RecurrentWeights& w, bool reverse) {
  TensorList inputs = linear(x, w.ih, w.bias_ih).unbind(0), outputs(inputs.size()), now = states;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t at = reverse ? inputs.size() - 1 - i : i;
    now = step(inputs[at], now, w, options);
    outputs[at] = now[0];
  }
  TensorList results{stack(outputs)};
  results.insert(results.end(), now.begin(), now.end());
  return results;
}

// What takes one direction of one layer over all positions.
using Walk = std::function<TensorList(RecurrentStep step, const RecurrentOptions& options, const Tensor& x, const TensorList& states,
                                      const RecurrentWeights& w, bool reverse)>;

// The last layer's results, and behind them the states of all layers and directions.
static TensorList run_layers(RecurrentStep step, const RecurrentOptions& options, const std::vector<RecurrentWeights>& weights,
                             bool training, Tensor x, const TensorList& states, const Walk& walk) {
  const size_t directions = options.bidirectional() ? 2 : 1;
  std::vector<TensorList> after(states.size());
  for (size_t first = 0; first < weights.size(); first += directions) {
    if (first > 0 && options.dropout() > 0) x = dropout(x, options.dropout(), training);
    TensorList sides;
    for (size_t i = first; i < first + directions; ++i) {
      TensorList own;
      for (auto& state : states) own.push_back(state.select(0, int64_t(i)));
      TensorList side = walk(step, options, x, own, weights[i], i > first);
      sides.push_back(side[0]);
      for (size_t s = 0; s < states.size(); ++s) after[s].push_back(side[s + 1]);
    }
    x = sides.size() == 1 ? sides[0] : cat(sides, -1);
  }
  TensorList results{x};
  for (auto& state : after) results.push_back(stack(state));
  return results;
}

// The states that a call begins with, of n sequences: zeros where they are undefined.
static TensorList complete_states(const std::string& name, const RecurrentOptions& options,
                                  const std::vector<RecurrentWeights>& weights, const Tensor& x, const Dim& n, TensorList states) {
  for (size_t s = 0; s < states.size(); ++s) {
    int64_t size = s == 0 ? weights[0].hh.size(1) : Dim(options.hidden_size());
    Shape expected{Dim(int64_t(weights.size())), n, Dim(size)};
    if (!states[s].defined()) states[s] = zeros(expected, x.options());
    check(states[s].sizes().same_as(expected), "nn::{}: a state is {} and not {}", name, states[s].sizes(), expected);
  }
  return states;
}

TensorList run_recurrent(const std::string& name, RecurrentStep step, const RecurrentOptions& options,
                         const std::vector<RecurrentWeights>& weights, bool training, const TensorArg& arg,
                         TensorList states) {
  UserPosition here(arg.where());
  Tensor x = arg.tensor();
  check(x.dim() == 2 || x.dim() == 3, "nn::{}: expected [l, n, {}] or [l, {}], got {}", name, options.input_size(),
        options.input_size(), x.sizes());
  bool is_batched = x.dim() == 3, swaps = is_batched && options.batch_first();
  if (!is_batched) x = x.unsqueeze(1);
  if (swaps) x = x.transpose(0, 1);
  check(x.size(2) == options.input_size() && x.size(0) > 0, "nn::{}: expected positions of {} features, got {}", name,
        options.input_size(), arg.sizes());
  if (!is_batched)
    for (auto& state : states)
      if (state.defined() && state.dim() == 2) state = state.unsqueeze(1);
  states = complete_states(name, options, weights, x, x.size(1), states);

  TensorList results = run_layers(step, options, weights, training, x, states, walk);
  if (swaps) results[0] = results[0].transpose(0, 1);
  if (!is_batched)
    for (auto& result : results) result = result.squeeze(1);
  return results;
}

// One direction of one layer over packed sequences. A state ends, or begins, where its sequence does; the shortest are the last rows.
static Walk packed_walk(const std::vector<int64_t>& batch_sizes) {
  return [&batch_sizes](RecurrentStep step, const RecurrentOptions& options, const Tensor& x, const TensorList& states,
                        const RecurrentWeights& w, bool reverse) {
    TensorList inputs = split(linear(x, w.ih, w.bias_ih), batch_sizes), outputs(inputs.size()), now = states, ended(states.size());
    int64_t rows = reverse ? batch_sizes.back() : batch_sizes.front();
    for (auto& state : now) state = state.narrow(0, 0, rows);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t at = reverse ? inputs.size() - 1 - i : i;
      const int64_t wanted = batch_sizes[at];
      for (size_t s = 0; s < now.size() && wanted != rows; ++s) {
        if (reverse) {
          now[s] = cat({now[s], states[s].narrow(0, rows, wanted - rows)}, 0);
          continue;
        }
        Tensor end = now[s].narrow(0, wanted, rows - wanted);
        ended[s] = ended[s].defined() ? cat({end, ended[s]}, 0) : end;
        now[s] = now[s].narrow(0, 0, wanted);
      }
      rows = wanted;
      now = step(inputs[at], now, w, options);
      outputs[at] = now[0];
    }
    TensorList results{cat(outputs, 0)};
    for (size_t s = 0; s < now.size(); ++s) results.push_back(ended[s].defined() ? cat({now[s], ended[s]}, 0) : now[s]);
    return results;
  };
}

// As run_recurrent(), of packed sequences, whose results are packed alike.
static std::pair<utils::rnn::PackedSequence, TensorList> run_packed(const std::string& name, RecurrentStep step,
                                                                    const RecurrentOptions& options,
                                                                    const std::vector<RecurrentWeights>& weights, bool training,
                                                                    const utils::rnn::PackedSequence& x, TensorList states) {
  const Tensor& data = x.data();
  check(data.dim() == 2 && data.size(1) == options.input_size(), "nn::{}: expected packed positions of {} features, got {}", name,
        options.input_size(), data.sizes());
  const auto batch_sizes = x.batch_sizes().to_vector<int64_t>();
  check(!batch_sizes.empty(), "nn::{}: the packed sequences have no positions", name);
  states = complete_states(name, options, weights, data, batch_sizes[0], states);
  if (x.sorted_indices().defined())
    for (auto& state : states) state = state.index_select(1, x.sorted_indices());
  TensorList results = run_layers(step, options, weights, training, data, states, packed_walk(batch_sizes));
  if (x.unsorted_indices().defined())
    for (size_t s = 1; s < results.size(); ++s) results[s] = results[s].index_select(1, x.unsorted_indices());
  return {utils::rnn::PackedSequence(results[0], x.batch_sizes(), x.sorted_indices(), x.unsorted_indices()),
          TensorList(results.begin() + 1, results.end())};
}

std::string RecurrentImpl::extra_repr() const {
  std::string text = format("{}, {}", options.input_size(), options.hidden_size());
  if (options.proj_size() != 0) text += format(", proj_size={}", options.proj_size());
  if (options.num_layers() != 1) text += format(", num_layers={}", options.num_layers());
  if (!options.bias()) text += ", bias=false";
  if (options.batch_first()) text += ", batch_first=true";
  if (options.dropout() != 0) text += format(", dropout={}", options.dropout());
  if (options.bidirectional()) text += ", bidirectional=true";
  return text;
}

RNNImpl::RNNImpl(const RNNOptions& options) : Cloneable(options, 1) {
  check(options.proj_size() == 0, "nn::RNN: proj_size is for an LSTM");
}
std::tuple<Tensor, Tensor> RNNImpl::forward(const TensorArg& x, const Tensor& h_0) {
  TensorList results = run_recurrent(name(), rnn_step, options, weights, is_training(), x, {h_0});
  return {results[0], results[1]};
}
std::tuple<utils::rnn::PackedSequence, Tensor> RNNImpl::forward_with_packed_input(const utils::rnn::PackedSequence& x,
                                                                                  const Tensor& h_0) {
  auto [results, states] = run_packed(name(), rnn_step, options, weights, is_training(), x, {h_0});
  return {results, states[0]};
}

LSTMImpl::LSTMImpl(const LSTMOptions& options) : Cloneable(options, 4) {}
std::tuple<Tensor, LSTMImpl::State> LSTMImpl::forward(const TensorArg& x, const State& state) {
  TensorList results =
      run_recurrent(name(), lstm_step, options, weights, is_training(), x, {std::get<0>(state), std::get<1>(state)});
  return {results[0], {results[1], results[2]}};
}
std::tuple<utils::rnn::PackedSequence, LSTMImpl::State> LSTMImpl::forward_with_packed_input(const utils::rnn::PackedSequence& x,
                                                                                           const State& state) {
  auto [results, states] =
      run_packed(name(), lstm_step, options, weights, is_training(), x, {std::get<0>(state), std::get<1>(state)});
  return {results, {states[0], states[1]}};
}

GRUImpl::GRUImpl(const GRUOptions& options) : Cloneable(options, 3) {
  check(options.proj_size() == 0, "nn::GRU: proj_size is for an LSTM");
}
std::tuple<Tensor, Tensor> GRUImpl::forward(const TensorArg& x, const Tensor& h_0) {
  TensorList results = run_recurrent(name(), gru_step, options, weights, is_training(), x, {h_0});
  return {results[0], results[1]};
}
std::tuple<utils::rnn::PackedSequence, Tensor> GRUImpl::forward_with_packed_input(const utils::rnn::PackedSequence& x,
                                                                                  const Tensor& h_0) {
  auto [results, states] = run_packed(name(), gru_step, options, weights, is_training(), x, {h_0});
  return {results, states[0]};
}

// --- cells

RecurrentCellImpl::RecurrentCellImpl(const RecurrentCellOptions& given, int64_t gates) : options(given), gates_(gates) { reset(); }

void RecurrentCellImpl::reset() {
  int64_t in = options.input_size(), hidden = options.hidden_size();
  check(in > 0 && hidden > 0, "nn: a recurrent cell of input_size {} and hidden_size {}", in, hidden);
  weights.ih = register_parameter("weight_ih", new_parameter({gates_ * hidden, in}));
  weights.hh = register_parameter("weight_hh", new_parameter({gates_ * hidden, hidden}));
  if (options.bias()) {
    weights.bias_ih = register_parameter("bias_ih", new_parameter({gates_ * hidden}));
    weights.bias_hh = register_parameter("bias_hh", new_parameter({gates_ * hidden}));
  }
  if (initialises_parameters()) reset_parameters();
}

void RecurrentCellImpl::reset_parameters() { fill_uniformly(*this, options.hidden_size()); }

Tensor RecurrentCellImpl::input_of(const TensorArg& x) const {
  check(x.dim() == 1 || x.dim() == 2, "nn::{}: expected [n, {}] or [{}], got {}", name(), options.input_size(),
        options.input_size(), x.sizes());
  return linear(x, weights.ih, weights.bias_ih);
}

Tensor RecurrentCellImpl::or_zeros(const Tensor& state, const Tensor& input) const {
  if (state.defined()) return state;
  Shape sizes = input.sizes();
  sizes[sizes.size() - 1] = options.hidden_size();
  return zeros(sizes, input.options());
}

std::string RecurrentCellImpl::extra_repr() const {
  return format("{}, {}{}", options.input_size(), options.hidden_size(), options.bias() ? "" : ", bias=false");
}

Tensor RNNCellImpl::forward(const TensorArg& x, const Tensor& h) {
  UserPosition here(x.where());
  Tensor input = input_of(x);
  return plain_step(input, or_zeros(h, input), weights, is_relu(name(), options.nonlinearity()));
}

LSTMCellImpl::State LSTMCellImpl::forward(const TensorArg& x, const State& state) {
  UserPosition here(x.where());
  Tensor input = input_of(x);
  const RecurrentOptions sizes(options.input_size(), options.hidden_size());
  TensorList after =
      lstm_step(input, {or_zeros(std::get<0>(state), input), or_zeros(std::get<1>(state), input)}, weights, sizes);
  return {after[0], after[1]};
}

Tensor GRUCellImpl::forward(const TensorArg& x, const Tensor& h) {
  UserPosition here(x.where());
  Tensor input = input_of(x);
  return gru_step(input, {or_zeros(h, input)}, weights,
                  RecurrentOptions(options.input_size(), options.hidden_size()))[0];
}

}  // namespace sinter::nn
