#pragma once
// What a run starts from: a model, from a checkpoint or with random weights, perhaps with an adapter, and the small
// files that go with it.
#include <memory>
#include <string>

#include "sinter/io/config.h"
#include "sinter/models/lora.h"
#include "sinter/models/models.h"
#include "sinter/train/options.h"

namespace sinter::train {

struct Start {
  std::shared_ptr<models::Model> model;   // f32, on the device
  std::unique_ptr<models::Lora> adapter;  // what is trained; null: the model
  CheckpointFiles files{""};              // the tokenizer among them, where there is one
  DType saved = kFloat32;                 // of weights in checkpoints

  // What is trained, wanting gradients.
  NamedTensors trained() const { return adapter ? adapter->parameters() : model->named_parameters(); }
};

// `checkpoint`, where given, is a folder of this run to load from. With an adapter the model is still the one that
// the options name.
Start make_start(const TrainOptions& options, const std::string& checkpoint = "");

}  // namespace sinter::train
