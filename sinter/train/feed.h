#pragma once
// Batches to train on, without end, and those that are held back.
#include <memory>
#include <string>

#include "sinter/base/function_ref.h"
#include "sinter/data/example.h"
#include "sinter/io/safetensors.h"
#include "sinter/models/models.h"
#include "sinter/train/options.h"

namespace sinter {
class Tokenizer;
}

namespace sinter::train {

class Feed {
 public:
  virtual ~Feed() = default;
  // The next batch, on the device. What it is depends on the data, the seed and the position alone.
  virtual data::Example<> next() = 0;
  // Where it stands, and to go on from there.
  virtual NamedTensors state_dict() const = 0;
  virtual void load_state_dict(const NamedTensors& state) = 0;
  // Each batch of what is held back, in order; the last may be smaller.
  virtual void each_held_out(FunctionRef<void(const data::Example<>& batch)> see) = 0;

  bool holds_out = false;    // whether there is anything held back
  std::string unit;          // what is counted: "tokens", "images"
  int64_t units = 0;         // in a batch
  uint64_t fingerprint = 0;  // of the data
  std::string summary;       // for people
};

// A text: windows of it that begin anywhere to train on, one after the other of the last part to look at.
std::unique_ptr<Feed> text_feed(const TrainOptions& options, const models::ModelConfig& model,
                                const Tokenizer& tokenizer);

// Pictures in folders, one for each class: in random pieces and mirrored to train on, from the middle to look at.
// What is held back is a random part. Mean and deviation are those of preprocessor_config.json, where `files` has
// one.
std::unique_ptr<Feed> image_feed(const TrainOptions& options, const models::ModelConfig& model,
                                 const CheckpointFiles& files);

}  // namespace sinter::train
