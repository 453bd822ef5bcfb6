#pragma once
// What bench/training trains: models with random weights, and a batch of random data.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sinter/nn/module.h"

namespace sinter::bench {

// Sizes of 0 are the model's own.
struct TrainingSizes {
  int64_t batch = 0, tokens = 0, image = 0, layers = 0;
};

struct TrainingModel {
  std::shared_ptr<nn::Module> module;
  std::function<Tensor(const Tensor& x)> logits;  // rows of classes
  Tensor x, y;                                    // a batch, and the class of each row
};

// A name of models/presets.cpp, one of the suite, or gpt-plain and gpt-checkpointed: the suite's GPT by hand, and with
// checkpoint() around each block. Its weights need gradients.
TrainingModel training_model(const std::string& name, const TrainingSizes& sizes, DType dtype, Device device);

// Models that a step of takes milliseconds on a CPU. Their counterparts are in bench/peers/torch_training_models.py.
std::vector<std::string> training_suite();

}  // namespace sinter::bench
