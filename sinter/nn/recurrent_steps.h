#pragma once
// What recurrent layers compute, with weights at hand: the layers of nn/recurrent.h have their own.
#include <string>
#include <vector>

#include "sinter/nn/recurrent.h"

namespace sinter::nn {

// The states after a step; `input` is already multiplied by the input's weights.
using RecurrentStep = TensorList (*)(const Tensor& input, const TensorList& states, const RecurrentWeights& weights,
                                     const RecurrentOptions& options);
TensorList rnn_step(const Tensor& input, const TensorList& states, const RecurrentWeights& weights,
                    const RecurrentOptions& options);
TensorList lstm_step(const Tensor& input, const TensorList& states, const RecurrentWeights& weights,
                     const RecurrentOptions& options);
TensorList gru_step(const Tensor& input, const TensorList& states, const RecurrentWeights& weights,
                    const RecurrentOptions& options);

// The results, and behind them the states. Weights are by layer, then direction; `name` is the layer's, for errors.
TensorList run_recurrent(const std::string& name, RecurrentStep step, const RecurrentOptions& options,
                         const std::vector<RecurrentWeights>& weights, bool training, const TensorArg& x,
                         TensorList states);

}  // namespace sinter::nn
