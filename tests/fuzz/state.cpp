#include "tests/fuzz/state.h"

namespace sinter::fuzz {

namespace {

// One token stream is run and printed.
#define LAYER(sizes, below, ...) \
  LayerForm { #__VA_ARGS__, []() -> nn::AnyModule { return __VA_ARGS__; }, sizes, below }
#define SIZES(...) {__VA_ARGS__}
#define OPTIMIZER(type, ...)                                                      \
  OptimizerForm {                                                                 \
    #type, #__VA_ARGS__, [](const TensorList& p) -> std::shared_ptr<optim::Optimizer> { \
      return std::make_shared<type>(p, __VA_ARGS__);                              \
    }                                                                             \
  }
#define SCHEDULE(type, ...)                                                       \
  ScheduleForm {                                                                  \
    #type, #__VA_ARGS__, [](optim::Optimizer& o) -> std::shared_ptr<optim::LRScheduler> { \
      return std::make_shared<type>(o, __VA_ARGS__);                              \
    }                                                                             \
  }

}  // namespace

const std::vector<LayerForm>& layer_forms() {
  static const std::vector<LayerForm> all = {
      LAYER(SIZES(-1, 6), 0, nn::Linear(6, 4)),
      LAYER(SIZES(-1, 5), 0, nn::Linear(nn::LinearOptions(5, 3).bias(false))),
      LAYER(SIZES(2, -1, 6), 0, nn::Linear(6, 2)),
      LAYER(SIZES(-1, 6), 0, nn::LayerNorm(6)),
      LAYER(SIZES(-1, 3, 4), 0, nn::LayerNorm(nn::LayerNormOptions(Shape{3, 4}).elementwise_affine(false))),
      LAYER(SIZES(-1, 6), 0, nn::RMSNorm(6)),
      LAYER(SIZES(-1, 4), 0, nn::BatchNorm1d(4)),
      LAYER(SIZES(-1, 3, 5), 0, nn::BatchNorm1d(nn::BatchNorm1dOptions(3).momentum(std::nullopt))),
      LAYER(SIZES(2, 3, -1, 4), 0, nn::BatchNorm2d(nn::BatchNorm2dOptions(3).affine(false))),
      LAYER(SIZES(2, 4, -1), 0, nn::GroupNorm(2, 4)),
      LAYER(SIZES(2, 3, 5, 6), 0, nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1))),
      LAYER(SIZES(1, 2, 7, 5), 0, nn::Conv2d(nn::Conv2dOptions(2, 2, {2, 3}).stride(2).groups(2).bias(false))),
      LAYER(SIZES(-1, 2, 9), 0, nn::Conv1d(2, 3, 3)),
      LAYER(SIZES(1, 2, 4, 5), 0, nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 3, 2).stride(2))),
      LAYER(SIZES(2, 2, 6, 6), 0, nn::MaxPool2d(2)),
      LAYER(SIZES(2, 2, 6, 5), 0, nn::AdaptiveAvgPool2d(2)),
      LAYER(SIZES(-1), 5, nn::Embedding(5, 4)),
      LAYER(SIZES(2, -1), 7, nn::Embedding(nn::EmbeddingOptions(7, 3).padding_idx(1))),
      LAYER(SIZES(-1, 5), 0, nn::Dropout(0.4)),
      LAYER(SIZES(-1, 6), 0, nn::Sequential(nn::Linear(6, 5), nn::Tanh(), nn::Linear(5, 2))),
      LAYER(SIZES(-1, 4), 0, nn::Sequential(nn::Linear(4, 6), nn::BatchNorm1d(6), nn::ReLU(), nn::Dropout(0.3), nn::Linear(6, 3))),
      LAYER(SIZES(2, 2, 5, 5), 0, nn::Sequential(nn::Conv2d(2, 3, 2), nn::BatchNorm2d(3), nn::GELU(), nn::Flatten(), nn::Linear(48, 2))),
      LAYER(SIZES(-1), 5, nn::Sequential(nn::Embedding(5, 6), nn::LayerNorm(6), nn::SiLU())),
      LAYER(SIZES(3, 2, 4), 0, nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6))),
      LAYER(SIZES(2, -1, 4), 0, nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(5).dropout(0).batch_first(true).norm_first(true).activation("gelu"))),
  };
  return all;
}

const std::vector<OptimizerForm>& optimizer_forms() {
  static const std::vector<OptimizerForm> all = {
      OPTIMIZER(optim::SGD, optim::SGDOptions(0.1)),
      OPTIMIZER(optim::SGD, optim::SGDOptions(0.05).momentum(0.9)),
      OPTIMIZER(optim::SGD, optim::SGDOptions(0.05).momentum(0.8).nesterov(true).weight_decay(0.01)),
      OPTIMIZER(optim::SGD, optim::SGDOptions(0.02).momentum(0.5).dampening(0.3).maximize(true)),
      OPTIMIZER(optim::Adam, optim::AdamOptions(0.01)),
      OPTIMIZER(optim::Adam, optim::AdamOptions(0.02).amsgrad(true).weight_decay(0.05).betas({0.8, 0.95})),
      OPTIMIZER(optim::AdamW, optim::AdamWOptions(0.01)),
      OPTIMIZER(optim::AdamW, optim::AdamWOptions(0.02).maximize(true).eps(1e-4)),
      // None whose steps jump with the sign of a gradient, as Lion's do.
      OPTIMIZER(optim::NAdam, optim::NAdamOptions(0.01).eps(1e-4)),
      OPTIMIZER(optim::RAdam, optim::RAdamOptions(0.01).betas({0.8, 0.9}).eps(1e-4).weight_decay(0.1)),
      OPTIMIZER(optim::RMSprop, optim::RMSpropOptions(0.01).eps(1e-3).momentum(0.5)),
      OPTIMIZER(optim::RMSprop, optim::RMSpropOptions(0.01).eps(1e-2).centered(true).weight_decay(0.05)),
      OPTIMIZER(optim::Adagrad, optim::AdagradOptions(0.02).lr_decay(0.1).initial_accumulator_value(0.1)),
      OPTIMIZER(optim::Adadelta, optim::AdadeltaOptions(0.5).eps(1e-3)),
      OPTIMIZER(optim::Adafactor, optim::AdafactorOptions(0.02).eps({1e-3, 1e-3}).weight_decay(0.1)),
  };
  return all;
}

const std::vector<ScheduleForm>& schedule_forms() {
  static const std::vector<ScheduleForm> all = {
      SCHEDULE(optim::StepLR, 2, 0.5),
      SCHEDULE(optim::CosineAnnealingLR, 4),
      SCHEDULE(optim::MultiStepLR, std::vector<int64_t>{1, 3}, 0.5),
      SCHEDULE(optim::LinearLR, 0.25, 1.0, 3),
      SCHEDULE(optim::ExponentialLR, 0.9),
      SCHEDULE(optim::CosineAnnealingWarmRestarts, 2, 2),
      SCHEDULE(optim::OneCycleLR, optim::OneCycleLROptions(0.05, 100).cycle_momentum(false)),
      SCHEDULE(optim::LambdaLR, [](int64_t epoch) { return 1.0 / double(1 + epoch); }),
  };
  return all;
}

void State::train(bool on) const {
  for (auto& layer : layers) layer.ptr()->train(on);
}

TensorList State::buffers() const {
  TensorList all;
  for (auto& layer : layers)
    for (auto& buffer : layer.ptr()->buffers()) all.push_back(buffer);
  return all;
}

Tensor disturbed(const Tensor& t, double disturbance) {
  Tensor wave = sin(7.3 * arange(t.numel(), kFloat32) + 1.0).view(t.sizes());
  return t * (1 + disturbance * (0.4 * wave + 0.6 * sign(wave)));
}

State make_state(const StateSpec& spec, double disturbance) {
  State state;
  manual_seed(kStateSeed);
  for (int layer : spec.layers) {
    state.layers.push_back(layer_forms()[size_t(layer)].make());
    for (auto& parameter : state.layers.back().ptr()->parameters()) state.parameters.push_back(parameter);
  }
  if (disturbance != 0) {
    NoGradGuard none;
    for (auto& parameter : state.parameters) parameter.copy_(disturbed(parameter, disturbance));
  }
  if (state.layers.empty()) state.layers.push_back(nn::Identity());
  state.optimizer = optimizer_forms()[size_t(std::max(spec.optimizer, 0))].make(state.parameters);
  state.schedule = schedule_forms()[size_t(std::max(spec.schedule, 0))].make(*state.optimizer);
  return state;
}

}  // namespace sinter::fuzz
