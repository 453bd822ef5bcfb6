#pragma once
// Recurrent layers: RNN, LSTM and GRU over whole sequences, and the cells that take one step. Not part of sinter/sinter.h.
//
// A layer multiplies the whole sequence by its input weights at once; the steps that wait for each other are a loop of the
// host. So eagerly a step is about ten ops. A compiled function holds every step: kernels are compiled once and shared by
// all of them, but capturing takes longer with the length (docs/guide.md has numbers), and another length is another
// program. Pad sequences to a few lengths, or compile a function of one cell.
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/nn/module.h"
#include "sinter/nn/utils/rnn.h"

namespace sinter SINTER_API {
namespace nn {

struct RecurrentOptions {
  RecurrentOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  SINTER_OPTION(int64_t, input_size);
  SINTER_OPTION(int64_t, hidden_size);
  SINTER_OPTION(int64_t, num_layers) = 1;
  SINTER_OPTION(bool, bias) = true;
  SINTER_OPTION(bool, batch_first) = false;
  SINTER_OPTION(double, dropout) = 0;  // between layers, while training
  SINTER_OPTION(bool, bidirectional) = false;
  SINTER_OPTION(int64_t, proj_size) = 0;              // of an LSTM: its results are projected to this size
  SINTER_OPTION(std::string, nonlinearity) = "tanh";  // of an RNN; or "relu"
};
using RNNOptions = RecurrentOptions;
using LSTMOptions = RecurrentOptions;
using GRUOptions = RecurrentOptions;

// What one direction of one layer, or a cell, multiplies by. Those it does not have are undefined.
struct RecurrentWeights {
  Tensor ih, hh, bias_ih, bias_hh, hr;
};

// The layers. x is [l, n, input_size], or [n, l, input_size] when batch_first; n may be left out. States are
// [num_layers * directions, n, hidden_size], a forward direction before its reverse, and zeros where undefined. Results are
// the last layer's at every position, both directions side by side, and the states after the last one. Parameters have
// PyTorch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0; weight_ih_l0_reverse and so on.
// forward_with_packed_input() takes sequences of different lengths; states come and go in the order of the sequences before packing.
struct RecurrentImpl : CloneableBase {
  RecurrentOptions options;
  std::vector<RecurrentWeights> weights;  // by layer, then direction

  void reset() override;
  void reset_parameters();
  std::string extra_repr() const override;

 protected:
  RecurrentImpl(const RecurrentOptions& options, int64_t gates);

 private:
  int64_t gates_;
};

// h = tanh(W x + b + U h + c).
struct RNNImpl : Cloneable<RNNImpl, RecurrentImpl> {
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& options);
  std::tuple<Tensor, Tensor> forward(const TensorArg& x, const Tensor& h_0 = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(const utils::rnn::PackedSequence& x,
                                                                           const Tensor& h_0 = {});
};
SINTER_MODULE(RNN);

// Gates in the order input, forget, cell, output. Its state is h, and c of hidden_size.
struct LSTMImpl : Cloneable<LSTMImpl, RecurrentImpl> {
  using State = std::tuple<Tensor, Tensor>;
  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options);
  std::tuple<Tensor, State> forward(const TensorArg& x, const State& state = {});
  std::tuple<utils::rnn::PackedSequence, State> forward_with_packed_input(const utils::rnn::PackedSequence& x,
                                                                          const State& state = {});
};
SINTER_MODULE(LSTM);

// Gates in the order reset, update, new.
struct GRUImpl : Cloneable<GRUImpl, RecurrentImpl> {
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& options);
  std::tuple<Tensor, Tensor> forward(const TensorArg& x, const Tensor& h_0 = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(const utils::rnn::PackedSequence& x,
                                                                           const Tensor& h_0 = {});
};
SINTER_MODULE(GRU);

struct RecurrentCellOptions {
  RecurrentCellOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  SINTER_OPTION(int64_t, input_size);
  SINTER_OPTION(int64_t, hidden_size);
  SINTER_OPTION(bool, bias) = true;
  SINTER_OPTION(std::string, nonlinearity) = "tanh";  // of an RNNCell; or "relu"
};
using RNNCellOptions = RecurrentCellOptions;
using LSTMCellOptions = RecurrentCellOptions;
using GRUCellOptions = RecurrentCellOptions;

// The cells: one step of one layer. x is [n, input_size] and a state [n, hidden_size], zeros where undefined; n may be left
// out. Parameters: weight_ih, weight_hh, bias_ih, bias_hh.
struct RecurrentCellImpl : CloneableBase {
  RecurrentCellOptions options;
  RecurrentWeights weights;

  void reset() override;
  void reset_parameters();
  std::string extra_repr() const override;

 protected:
  RecurrentCellImpl(const RecurrentCellOptions& options, int64_t gates);
  // x times the input's weights, which finds what does not fit.
  Tensor input_of(const TensorArg& x) const;
  Tensor or_zeros(const Tensor& state, const Tensor& input) const;

 private:
  int64_t gates_;
};

struct RNNCellImpl : Cloneable<RNNCellImpl, RecurrentCellImpl> {
  RNNCellImpl(int64_t input_size, int64_t hidden_size) : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options) : Cloneable(options, 1) {}
  Tensor forward(const TensorArg& x, const Tensor& h = {});
};
SINTER_MODULE(RNNCell);

struct LSTMCellImpl : Cloneable<LSTMCellImpl, RecurrentCellImpl> {
  using State = std::tuple<Tensor, Tensor>;
  LSTMCellImpl(int64_t input_size, int64_t hidden_size) : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options) : Cloneable(options, 4) {}
  State forward(const TensorArg& x, const State& state = {});
};
SINTER_MODULE(LSTMCell);

struct GRUCellImpl : Cloneable<GRUCellImpl, RecurrentCellImpl> {
  GRUCellImpl(int64_t input_size, int64_t hidden_size) : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options) : Cloneable(options, 3) {}
  Tensor forward(const TensorArg& x, const Tensor& h = {});
};
SINTER_MODULE(GRUCell);

}  // namespace nn
}  // namespace SINTER_API
