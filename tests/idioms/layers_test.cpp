#include "tests/idioms/idioms.h"

namespace {

using namespace torch::nn;

struct LayerIdioms : Idioms {};

TEST_F(LayerIdioms, Products) {
  IDIOM(filled(Linear(4, 3))(x));
  IDIOM(filled(torch::nn::Linear(torch::nn::LinearOptions(4, 3).bias(false)))->forward(x));
  IDIOM(filled(Bilinear(BilinearOptions(4, 4, 2)))(x, y));
  IDIOM(Identity()(x));
  IDIOM(Flatten()(img));
  IDIOM(Flatten(FlattenOptions().start_dim(2).end_dim(3))(img));
  IDIOM(Unflatten(UnflattenOptions(1, {2, 2}))(x));
  IDIOM(filled(Embedding(5, 3))(labels));
  IDIOM(filled(Embedding(EmbeddingOptions(5, 3).padding_idx(0)))->forward(labels));
  IDIOM(Embedding::from_pretrained(x)(rows));
  IDIOM(filled(EmbeddingBag(EmbeddingBagOptions(5, 3).mode(torch::kSum)))(k));
  IDIOM(filled(Linear(4, 3))->weight.sizes());
  IDIOM(Linear(4, 3)->options.in_features());
  IDIOM(CosineSimilarity(CosineSimilarityOptions().dim(1))(x, y));
  IDIOM(PairwiseDistance(PairwiseDistanceOptions().p(1))(x, y));
}

TEST_F(LayerIdioms, Convolutions) {
  IDIOM(filled(Conv1d(3, 4, 3))(seq));
  IDIOM(filled(Conv1d(Conv1dOptions(3, 4, 3).stride(2).padding(1)))(seq));
  IDIOM(filled(Conv2d(3, 4, 3))(img));
  IDIOM(filled(Conv2d(Conv2dOptions(3, 4, 3).stride(1).padding(1).bias(false)))(img));
  IDIOM(filled(Conv2d(Conv2dOptions(3, 6, {3, 2}).groups(3).dilation(1)))(img));
  IDIOM(filled(Conv2d(Conv2dOptions(3, 2, /*kernel_size=*/5).padding({2, 2})))(img));
  IDIOM(filled(Conv2d(Conv2dOptions(3, 2, 3).padding(torch::kSame)))(img));
  IDIOM(filled(Conv2d(Conv2dOptions(3, 2, 3).padding(1).padding_mode(torch::kReflect)))(img));
  IDIOM(filled(Conv3d(Conv3dOptions(2, 2, 2)))(vol));
  IDIOM(filled(ConvTranspose1d(ConvTranspose1dOptions(3, 2, 3).stride(2)))(seq));
  IDIOM(filled(ConvTranspose2d(ConvTranspose2dOptions(3, 2, 4).stride(2).padding(1).bias(false)))(img));
  IDIOM(filled(ConvTranspose2d(ConvTranspose2dOptions(3, 2, 3).stride(2).output_padding(1)))(img));
  IDIOM(Conv2d(3, 4, 3)->weight.sizes());
  IDIOM(Conv2d(Conv2dOptions(3, 4, {3, 5}))->options.out_channels());
}

TEST_F(LayerIdioms, Pools) {
  IDIOM(MaxPool1d(2)(seq));
  IDIOM(MaxPool2d(2)(img));
  IDIOM(MaxPool2d(MaxPool2dOptions(3).stride(2).padding(1))(img));
  IDIOM(MaxPool2d(MaxPool2dOptions({3, 2}).stride({2, 1}).ceil_mode(true))(img));
  IDIOM(MaxPool2d(2)->forward_with_indices(img));
  IDIOM(MaxPool3d(2)(vol.narrow(2, 0, 2)));
  IDIOM(AvgPool1d(AvgPool1dOptions(3).stride(1))(seq));
  IDIOM(AvgPool2d(2)(img));
  IDIOM(AvgPool2d(AvgPool2dOptions(3).stride(2).padding(1).count_include_pad(false))(img));
  IDIOM(AdaptiveAvgPool1d(2)(seq));
  IDIOM(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({1, 1}))(img));
  IDIOM(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({3, 2}))(img));
  IDIOM(AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions(2))(img));
  IDIOM(LPPool2d(LPPool2dOptions(2, 2))(img));
  IDIOM_DO({
    auto [pooled, indices] = MaxPool2d(MaxPool2dOptions(2).stride(2))->forward_with_indices(img);
    return MaxUnpool2d(MaxUnpool2dOptions(2).stride(2))->forward(pooled, indices);
  });
  IDIOM(Upsample(UpsampleOptions().scale_factor(std::vector<double>({2, 2})).mode(torch::kNearest))(img));
  IDIOM(Upsample(UpsampleOptions().size(std::vector<int64_t>({4, 4})).mode(torch::kBilinear).align_corners(false))(img));
  IDIOM(Upsample(UpsampleOptions().scale_factor(std::vector<double>({2})).mode(torch::kLinear).align_corners(true))(seq));
  IDIOM(PixelShuffle(PixelShuffleOptions(1))(img));
  IDIOM(PixelUnshuffle(PixelUnshuffleOptions(2))(img.narrow(2, 0, 4)));
  IDIOM(ZeroPad2d(ZeroPad2dOptions({1, 1, 2, 0}))(img));
  IDIOM(ConstantPad1d(ConstantPad1dOptions(1, 3.5))(seq));
  IDIOM(ReflectionPad2d(ReflectionPad2dOptions(1))(img));
  IDIOM(ReflectionPad1d(2)(seq));
  IDIOM(ReplicationPad2d(ReplicationPad2dOptions({1, 0, 0, 1}))(img));
  IDIOM(Unfold(UnfoldOptions(2).stride(1))(img));
  IDIOM(Fold(FoldOptions({4, 5}, {2, 2}))(formula({1, 8, 12}, 3)));
}

TEST_F(LayerIdioms, Norms) {
  IDIOM(filled(BatchNorm1d(4))(x));
  IDIOM(filled(BatchNorm2d(3))(img));
  IDIOM(filled(BatchNorm2d(BatchNorm2dOptions(3).eps(1e-3).momentum(0.3).affine(true).track_running_stats(true)))(img));
  IDIOM_DO({
    BatchNorm2d norm(3);
    norm(img);
    return std::make_tuple(norm->running_mean, norm->running_var);
  });
  IDIOM_DO({
    BatchNorm2d norm(3);
    norm->eval();
    return norm(img);
  });
  IDIOM(filled(LayerNorm(LayerNormOptions({4})))(x));
  IDIOM(LayerNorm(LayerNormOptions({3, 4}).elementwise_affine(false).eps(1e-3))(b));
  IDIOM(filled(GroupNorm(GroupNormOptions(1, 3)))(img));
  IDIOM(GroupNorm(3, 3)(img));
  IDIOM(InstanceNorm2d(3)(img));
  IDIOM(filled(InstanceNorm2d(InstanceNorm2dOptions(3).affine(true)))(img));
  IDIOM(InstanceNorm1d(InstanceNorm1dOptions(3).track_running_stats(false))(seq));
  IDIOM(LocalResponseNorm(LocalResponseNormOptions(2).alpha(0.1))(img));
}

TEST_F(LayerIdioms, Recurrent) {
  IDIOM(filled(RNN(3, 4))(b.transpose(1, 2)));
  IDIOM(std::get<0>(filled(RNN(RNNOptions(4, 3).num_layers(2).nonlinearity(torch::kReLU).batch_first(true)))(b)));
  IDIOM(std::get<0>(filled(LSTM(LSTMOptions(4, 3).num_layers(1).batch_first(true)))->forward(b)));
  IDIOM_DO({
    LSTM lstm = filled(LSTM(LSTMOptions(4, 3).bidirectional(true)));
    auto [output, state] = lstm(b);
    auto [h_n, c_n] = state;
    return std::make_tuple(output, h_n, c_n);
  });
  IDIOM_DO({
    LSTM lstm = filled(LSTM(4, 3));
    auto state = std::make_tuple(torch::zeros({1, 3, 3}), torch::ones({1, 3, 3}));
    return std::get<0>(lstm->forward(b, state));
  });
  IDIOM(filled(GRU(GRUOptions(4, 3).batch_first(true)))(b));
  IDIOM(std::get<1>(filled(GRU(4, 3))(b, torch::ones({1, 3, 3}))));
  IDIOM(filled(RNNCell(4, 3))(x));
  IDIOM(filled(LSTMCell(LSTMCellOptions(4, 3)))(x));
  IDIOM(filled(GRUCell(4, 3))(x, torch::zeros({3, 3})));
  IDIOM(LSTM(4, 3)->named_parameters().keys().size());
}

TEST_F(LayerIdioms, Attention) {
  IDIOM(std::get<0>(filled(MultiheadAttention(4, 2))(b, b, b)));
  IDIOM_DO({
    MultiheadAttention attention(MultiheadAttentionOptions(4, 2).dropout(0.0).bias(true));
    auto [out, weights] = filled(attention)->forward(b, b, b, /*key_padding_mask=*/{}, /*need_weights=*/true);
    return out + weights.sum();
  });
  IDIOM_DO({
    TransformerEncoderLayer layer(TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0));
    return filled(layer)(b);
  });
  IDIOM_DO({
    TransformerEncoderLayer layer(TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0).activation(torch::kGELU));
    TransformerEncoder encoder(TransformerEncoderOptions(layer, 2));
    return filled(encoder)->forward(b);
  });
  IDIOM_DO({
    TransformerDecoderLayer layer(TransformerDecoderLayerOptions(4, 2).dim_feedforward(8).dropout(0));
    return filled(layer)->forward(b, b);
  });
  IDIOM_DO({
    Transformer model(TransformerOptions(4, 2).num_encoder_layers(1).num_decoder_layers(1).dim_feedforward(8).dropout(0.0));
    return filled(model)->forward(b, b);
  });
  IDIOM(torch::nn::TransformerImpl::generate_square_subsequent_mask(3));
}

TEST_F(LayerIdioms, Beginnings) {
  IDIOM(torch::nn::init::constant_(torch::empty({2, 3}), 0.3));
  IDIOM(torch::nn::init::zeros_(torch::empty({2})));
  IDIOM(torch::nn::init::ones_(torch::empty({2})));
  IDIOM(torch::nn::init::eye_(torch::empty({3, 3})));
  IDIOM(torch::nn::init::dirac_(torch::empty({3, 3, 3})));
  IDIOM_HOLDS(torch::nn::init::uniform_(torch::empty({9}), 0, 1).ge(0).all().item<bool>());
  IDIOM_HOLDS(torch::nn::init::normal_(torch::empty({9}), 0.0, 0.02).abs().lt(1).all().item<bool>());
  IDIOM_HOLDS(torch::nn::init::xavier_uniform_(torch::empty({4, 4})).abs().lt(1).all().item<bool>());
  IDIOM_HOLDS(torch::nn::init::xavier_normal_(torch::empty({4, 4}), 0.1).isfinite().all().item<bool>());
  IDIOM_HOLDS(torch::nn::init::kaiming_uniform_(torch::empty({4, 4}), std::sqrt(5)).abs().le(1).all().item<bool>());
  IDIOM_HOLDS(torch::nn::init::kaiming_normal_(torch::empty({4, 4}), 0, torch::kFanOut, torch::kReLU).dim() == 2);
  IDIOM_HOLDS(torch::nn::init::sparse_(torch::empty({10, 3}), 0.5).eq(0).sum(0).eq(5).all().item<bool>());
  IDIOM_DO({
    torch::Tensor q = torch::nn::init::orthogonal_(torch::empty({3, 3}));
    return torch::round(q.matmul(q.t()) * 100).abs();
  });
  IDIOM(torch::nn::init::calculate_gain(torch::kReLU));
  IDIOM(torch::nn::init::calculate_gain(torch::kLeakyReLU, 0.2));
  IDIOM(torch::nn::init::calculate_gain(torch::kConv2D));
  IDIOM(torch::nn::init::_calculate_fan_in_and_fan_out(torch::empty({4, 3, 2, 2})));
}

}  // namespace
