#pragma once
// How a packaged model is compiled: the same when it is exported and when it is loaded, so that its programs are found.
#include <functional>
#include <memory>
#include <vector>

#include "sinter/generate/text_generator.h"
#include "sinter/models/models.h"

namespace sinter {

// The compiled forward pass. Sizes are symbolic from the start: one program for all but sizes of one.
std::function<NamedTensors(const NamedTensors&)> compile_forward(const std::shared_ptr<models::Model>& model, Mode mode,
                                                                 const OptionMap& options);

// Inputs of a forward pass for warming up: for an encoder of these lengths, 16 to 512 and what the model takes where none is
// given; none for a model that generates text. A batch of two stands for all larger ones.
std::vector<NamedTensors> example_inputs(const models::Model& model, std::vector<int64_t> batches,
                                         std::vector<int64_t> lengths, Device device);

}  // namespace sinter
