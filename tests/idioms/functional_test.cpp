#include "tests/idioms/idioms.h"

namespace {

struct FunctionalIdioms : Idioms {};

TEST_F(FunctionalIdioms, Activations) {
  IDIOM(F::relu(x));
  IDIOM(F::relu(x.clone(), F::ReLUFuncOptions().inplace(true)));
  IDIOM(F::relu6(x * 5));
  IDIOM(F::leaky_relu(x, F::LeakyReLUFuncOptions().negative_slope(0.42)));
  IDIOM(F::elu(x, F::ELUFuncOptions().alpha(0.42)));
  IDIOM(F::selu(x));
  IDIOM(F::celu(x, F::CELUFuncOptions().alpha(0.42)));
  IDIOM(F::gelu(x));
  IDIOM(F::gelu(x, F::GELUFuncOptions().approximate("tanh")));
  IDIOM(F::silu(x));
  IDIOM(F::mish(x));
  IDIOM(F::softplus(x, F::SoftplusFuncOptions().beta(0.5).threshold(3.0)));
  IDIOM(F::softsign(x));
  IDIOM(F::tanhshrink(x));
  IDIOM(F::hardtanh(x, F::HardtanhFuncOptions().min_val(-1.0).max_val(1.0)));
  IDIOM(F::hardshrink(x, F::HardshrinkFuncOptions().lambda(0.42)));
  IDIOM(F::softshrink(x, F::SoftshrinkFuncOptions(0.42)));
  IDIOM(F::threshold(x, F::ThresholdFuncOptions(0.5, 0.5)));
  IDIOM(F::logsigmoid(x));
  IDIOM(F::glu(x, F::GLUFuncOptions(1)));
  IDIOM(F::prelu(x, torch::full({4}, 0.25)));
  IDIOM(F::rrelu(x, F::RReLUFuncOptions().lower(0.1).upper(0.4)));
  IDIOM(F::softmax(x, 1));
  IDIOM(F::softmax(x, F::SoftmaxFuncOptions(0).dtype(torch::kFloat64)));
  IDIOM(F::log_softmax(x, 1));
  IDIOM(F::log_softmax(x, F::LogSoftmaxFuncOptions(1)));
  IDIOM(F::softmin(x, F::SoftminFuncOptions(1)));
  IDIOM_HOLDS(F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().hard(true).dim(1)).sum().item<float>() == 3);
  IDIOM_HOLDS(F::dropout(x, F::DropoutFuncOptions().p(0.5)).sizes() == x.sizes());
  IDIOM(F::dropout(x, F::DropoutFuncOptions().p(0.5).training(false)));
  IDIOM_HOLDS(F::dropout2d(img, F::Dropout2dFuncOptions().p(0.5).training(true)).dim() == 4);
  IDIOM(F::alpha_dropout(x, F::AlphaDropoutFuncOptions().p(0.5).training(false)));
}

TEST_F(FunctionalIdioms, Layers) {
  IDIOM(F::linear(x, m));
  IDIOM(F::linear(x, y, w));
  IDIOM(F::bilinear(x, y, formula({2, 4, 4}, 3)));
  IDIOM(F::embedding(labels, formula({5, 3}, 2)));
  IDIOM(F::embedding(labels, formula({5, 3}, 2), F::EmbeddingFuncOptions().padding_idx(0)));
  IDIOM(F::embedding_bag(k, formula({5, 3}, 2), F::EmbeddingBagFuncOptions().mode(torch::kSum)));
  IDIOM(F::one_hot(labels, 5));
  IDIOM(F::conv1d(seq, formula({2, 3, 3}, 1), F::Conv1dFuncOptions().stride(1)));
  IDIOM(F::conv2d(img, formula({4, 3, 3, 3}, 1)));
  IDIOM(F::conv2d(img, formula({4, 3, 3, 3}, 1), F::Conv2dFuncOptions().stride(1).padding(1).bias(v)));
  IDIOM(F::conv3d(vol, formula({2, 2, 2, 2, 2}, 1), F::Conv3dFuncOptions().stride(1)));
  IDIOM(F::conv_transpose2d(img, formula({3, 2, 3, 3}, 1), F::ConvTranspose2dFuncOptions().stride(2)));
  IDIOM(torch::conv2d(img, formula({4, 3, 3, 3}, 1)));
  IDIOM(torch::conv2d(img, formula({4, 3, 3, 3}, 1), v, /*stride=*/2, /*padding=*/1));
  IDIOM(torch::conv1d(seq, formula({2, 3, 3}, 1), {}, 2));
  IDIOM(torch::conv_transpose2d(img, formula({3, 2, 3, 3}, 1), {}, 2));
  IDIOM(F::max_pool1d(seq, F::MaxPool1dFuncOptions(2)));
  IDIOM(F::max_pool2d(img, F::MaxPool2dFuncOptions(3).stride(2)));
  IDIOM(F::max_pool2d_with_indices(img, F::MaxPool2dFuncOptions(2)));
  IDIOM(torch::max_pool2d(img, 2));
  IDIOM(torch::max_pool2d(img, {2, 2}, {1, 1}));
  IDIOM(torch::max_pool1d(seq, 2));
  IDIOM(torch::avg_pool2d(img, 2));
  IDIOM(torch::adaptive_avg_pool2d(img, {1, 1}));
  IDIOM(F::avg_pool2d(img, F::AvgPool2dFuncOptions(3).stride(2).padding(1)));
  IDIOM(F::adaptive_avg_pool2d(img, F::AdaptiveAvgPool2dFuncOptions({2, 2})));
  IDIOM(F::adaptive_max_pool1d(seq, F::AdaptiveMaxPool1dFuncOptions(2)));
  IDIOM(F::lp_pool2d(img, F::LPPool2dFuncOptions(2, {2, 2})));
  IDIOM(F::interpolate(img, F::InterpolateFuncOptions().size(std::vector<int64_t>({8, 8})).mode(torch::kBilinear).align_corners(true)));
  IDIOM(F::interpolate(img, F::InterpolateFuncOptions().scale_factor(std::vector<double>({2, 2})).mode(torch::kNearest)));
  IDIOM(F::interpolate(img, F::InterpolateFuncOptions().size(std::vector<int64_t>({3, 3})).mode(torch::kArea)));
  IDIOM(torch::upsample_nearest2d(img, {10, 12}));
  IDIOM(torch::upsample_bilinear2d(img, {10, 12}, false));
  IDIOM(F::pad(x, F::PadFuncOptions({1, 2})));
  IDIOM(F::pad(img, F::PadFuncOptions({1, 1, 1, 1}).mode(torch::kReflect)));
  IDIOM(F::pad(x, F::PadFuncOptions({1, 2}).mode(torch::kConstant).value(2.5)));
  IDIOM(F::pad(seq, F::PadFuncOptions({1, 1}).mode(torch::kCircular)));
  IDIOM(F::pixel_shuffle(formula({1, 4, 2, 2}, 1), F::PixelShuffleFuncOptions(2)));
  IDIOM(F::unfold(img, F::UnfoldFuncOptions({2, 2}).padding(1)));
  IDIOM(F::fold(formula({1, 8, 12}, 3), F::FoldFuncOptions({4, 5}, {2, 2})));
  IDIOM(F::affine_grid(formula({1, 2, 3}, 1), {1, 1, 3, 4}));
  IDIOM(F::grid_sample(img, F::affine_grid(formula({2, 2, 3}, 1) / 2, {2, 3, 3, 3}), F::GridSampleFuncOptions().mode(torch::kBilinear).padding_mode(torch::kZeros).align_corners(false)));
  IDIOM(F::layer_norm(x, F::LayerNormFuncOptions({4}).weight(v).eps(2e-5)));
  IDIOM(torch::layer_norm(x, {4}));
  IDIOM(F::batch_norm(x, torch::zeros({4}), torch::ones({4}), F::BatchNormFuncOptions().training(false).eps(1e-3)));
  IDIOM(torch::batch_norm(x, v, v, torch::zeros({4}), torch::ones({4}), /*training=*/false, 0.1, 1e-5, false));
  IDIOM(F::group_norm(img, F::GroupNormFuncOptions(3).eps(1e-3)));
  IDIOM(torch::group_norm(img, 1));
  IDIOM(F::instance_norm(img, F::InstanceNormFuncOptions().eps(1e-3)));
  IDIOM(F::local_response_norm(img, F::LocalResponseNormFuncOptions(2)));
  IDIOM(F::normalize(x));
  IDIOM(F::normalize(x, F::NormalizeFuncOptions().p(1).dim(-1)));
  IDIOM(F::cosine_similarity(x, y, F::CosineSimilarityFuncOptions().dim(1)));
  IDIOM(F::pairwise_distance(x, y, F::PairwiseDistanceFuncOptions().p(1)));
}

TEST_F(FunctionalIdioms, Losses) {
  IDIOM(F::mse_loss(x, y));
  IDIOM(F::mse_loss(x, y, F::MSELossFuncOptions().reduction(torch::kNone)));
  IDIOM(F::mse_loss(x, y, F::MSELossFuncOptions(torch::kSum)));
  IDIOM(torch::mse_loss(x, y));
  IDIOM(torch::mse_loss(x, y, torch::Reduction::Sum));
  IDIOM(torch::mse_loss(x, y, at::Reduction::None));
  IDIOM(torch::nn::MSELoss()(x, y));
  IDIOM(torch::nn::MSELoss(torch::nn::MSELossOptions().reduction(torch::kNone))(x, y));
  IDIOM(F::l1_loss(x, y, F::L1LossFuncOptions(torch::kMean)));
  IDIOM(torch::nn::L1Loss()(x, y));
  IDIOM(F::smooth_l1_loss(x, y));
  IDIOM(torch::nn::SmoothL1Loss(torch::nn::SmoothL1LossOptions().beta(0.5))(x, y));
  IDIOM(F::huber_loss(x, y, F::HuberLossFuncOptions().delta(0.5)));
  IDIOM(torch::nn::HuberLoss()(x, y));
  IDIOM(F::cross_entropy(x, labels));
  IDIOM(F::cross_entropy(x, labels, F::CrossEntropyFuncOptions().ignore_index(0).reduction(torch::kMean)));
  IDIOM(torch::nn::CrossEntropyLoss()(x, labels));
  IDIOM(torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().label_smoothing(0.1))(x, labels));
  IDIOM(torch::cross_entropy_loss(x, labels));
  IDIOM(F::nll_loss(torch::log_softmax(x, 1), labels));
  IDIOM(torch::nll_loss(x.log_softmax(1), labels));
  IDIOM(torch::nn::NLLLoss(torch::nn::NLLLossOptions().reduction(torch::kSum))(x, labels));
  IDIOM(F::binary_cross_entropy(u, mask.to(torch::kFloat)));
  IDIOM(torch::binary_cross_entropy(u, mask.to(torch::kFloat)));
  IDIOM(torch::nn::BCELoss()(u, mask.to(torch::kFloat)));
  IDIOM(F::binary_cross_entropy_with_logits(x, u, F::BinaryCrossEntropyWithLogitsFuncOptions().pos_weight(p)));
  IDIOM(torch::nn::BCEWithLogitsLoss()(x, u));
  IDIOM(torch::binary_cross_entropy_with_logits(x, u));
  IDIOM(F::kl_div(x.log_softmax(1), y.softmax(1), F::KLDivFuncOptions().reduction(torch::kBatchMean)));
  IDIOM(torch::nn::KLDivLoss(torch::nn::KLDivLossOptions().reduction(torch::kSum))(x.log_softmax(1), y.softmax(1)));
  IDIOM(F::hinge_embedding_loss(x, y.sign(), F::HingeEmbeddingLossFuncOptions().margin(2)));
  IDIOM(torch::nn::SoftMarginLoss()(x, y.sign()));
  IDIOM(F::margin_ranking_loss(v, v.flip({0}), v.sign(), F::MarginRankingLossFuncOptions().margin(0.5)));
  IDIOM(torch::nn::MarginRankingLoss(torch::nn::MarginRankingLossOptions().margin(0.5))(v, v.flip({0}), v.sign()));
  IDIOM(F::cosine_embedding_loss(x, y, w.sign()));
  IDIOM(F::triplet_margin_loss(x, y, p, F::TripletMarginLossFuncOptions().margin(1.0)));
  IDIOM(torch::nn::TripletMarginLoss(torch::nn::TripletMarginLossOptions().margin(3).p(2).eps(1e-06).swap(false))(x, y, p));
  IDIOM(F::multi_margin_loss(x, labels));
  IDIOM(F::multilabel_soft_margin_loss(x, mask.to(torch::kFloat)));
  IDIOM(torch::nn::MultiLabelSoftMarginLoss()(x, mask.to(torch::kFloat)));
  IDIOM(F::poisson_nll_loss(x, p, F::PoissonNLLLossFuncOptions().log_input(true)));
  IDIOM(torch::nn::PoissonNLLLoss()(x, p));
  IDIOM(F::ctc_loss(formula({5, 2, 4}, 1).log_softmax(2), torch::tensor({{1, 2}, {3, 1}}), torch::tensor({5, 5}), torch::tensor({2, 2})));
  IDIOM(torch::nn::CTCLoss(torch::nn::CTCLossOptions().blank(0).reduction(torch::kSum))(formula({5, 2, 4}, 1).log_softmax(2), torch::tensor({{1, 2}, {3, 1}}), torch::tensor({5, 5}), torch::tensor({2, 2})));
  IDIOM(torch::nn::CosineEmbeddingLoss()(x, y, w.sign()));
  IDIOM(torch::kl_div(x.log_softmax(1), y.softmax(1)));
  IDIOM(torch::l1_loss(x, y));
  IDIOM(torch::smooth_l1_loss(x, y));
  IDIOM_GRAD(F::cross_entropy(x, labels));
  IDIOM_GRAD(F::mse_loss(x, y));
  IDIOM_GRAD(torch::nn::BCEWithLogitsLoss()(x, u));
}

}  // namespace
