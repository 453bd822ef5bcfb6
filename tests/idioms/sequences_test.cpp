#include "tests/idioms/idioms.h"

// Sequences of different lengths.
namespace {

namespace rnn = torch::nn::utils::rnn;

struct SequenceIdioms : Idioms {
  std::vector<torch::Tensor> sequences = {formula({4, 3}, 31), formula({2, 3}, 32), formula({3, 3}, 33)};
  torch::Tensor padded = formula({4, 3, 3}, 34), lengths = torch::tensor({4, 2, 1});
};

TEST_F(SequenceIdioms, Padding) {
  IDIOM(rnn::pad_sequence(sequences));
  IDIOM(rnn::pad_sequence(sequences, /*batch_first=*/true, /*padding_value=*/-1));
  IDIOM(rnn::pad_sequence(sequences, true, 0.5, "left"));
  IDIOM(torch::pad_sequence(sequences, true));
}

TEST_F(SequenceIdioms, Packing) {
  IDIOM_DO({
    auto packed = rnn::pack_padded_sequence(padded, lengths);
    return std::make_tuple(packed.data(), packed.batch_sizes());
  });
  IDIOM_DO({
    auto packed = rnn::pack_padded_sequence(padded.transpose(0, 1), torch::tensor({1, 3, 2}), /*batch_first=*/true,
                                            /*enforce_sorted=*/false);
    return std::make_tuple(packed.data(), packed.batch_sizes(), packed.sorted_indices(), packed.unsorted_indices());
  });
  IDIOM_DO({
    auto packed = rnn::pack_sequence(sequences, /*enforce_sorted=*/false);
    return rnn::pad_packed_sequence(packed);
  });
  IDIOM_DO({
    auto packed = rnn::pack_padded_sequence(padded, lengths);
    return rnn::pad_packed_sequence(packed, /*batch_first=*/true, /*padding_value=*/-2.0, /*total_length=*/6);
  });
}

TEST_F(SequenceIdioms, Layers) {
  IDIOM_DO({
    torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4));
    filled(lstm);
    auto packed = rnn::pack_padded_sequence(padded, lengths);
    auto [result, state] = lstm->forward_with_packed_input(packed);
    auto [h, c] = state;
    auto [out, of_lengths] = rnn::pad_packed_sequence(result);
    return std::make_tuple(out, of_lengths, h, c);
  });
  IDIOM_DO({
    torch::nn::LSTM lstm(torch::nn::LSTMOptions(3, 4).num_layers(2).bidirectional(true).proj_size(2));
    filled(lstm);
    auto packed = rnn::pack_sequence(sequences, false);
    auto [result, state] =
        lstm->forward_with_packed_input(packed, std::make_tuple(formula({4, 3, 2}, 35), formula({4, 3, 4}, 36)));
    return std::make_tuple(result.data(), std::get<0>(state), std::get<1>(state));
  });
  IDIOM_DO({
    torch::nn::GRU gru(torch::nn::GRUOptions(3, 4).bidirectional(true));
    filled(gru);
    auto [result, h] = gru->forward_with_packed_input(rnn::pack_sequence(sequences, false), formula({2, 3, 4}, 37));
    return std::make_tuple(std::get<0>(rnn::pad_packed_sequence(result, true)), h);
  });
  IDIOM_DO({
    torch::nn::RNN layer(torch::nn::RNNOptions(3, 4).nonlinearity(torch::kReLU));
    filled(layer);
    torch::Tensor leaf = padded.clone().set_requires_grad(true);
    auto [result, h] = layer->forward_with_packed_input(rnn::pack_padded_sequence(leaf, lengths));
    (result.data().square().sum() + h.sum()).backward();
    return std::make_tuple(h.detach(), leaf.grad());
  });
}

}  // namespace
