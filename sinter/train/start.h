#pragma once
// What a run starts from: a model, from a checkpoint or with random weights, and the small files that go with it.
#include <memory>
#include <string>

#include "sinter/io/config.h"
#include "sinter/models/models.h"
#include "sinter/train/options.h"

namespace sinter::train {

struct Start {
  std::shared_ptr<models::Model> model;  // f32, on the device, its parameters wanting gradients
  CheckpointFiles files{""};             // the tokenizer among them, where there is one
  DType saved = kFloat32;                // of weights in checkpoints
};

// `checkpoint`, where given, is a folder to load the model from instead of what the options name.
Start make_start(const TrainOptions& options, const std::string& checkpoint = "");

}  // namespace sinter::train
