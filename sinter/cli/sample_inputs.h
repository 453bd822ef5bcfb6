#pragma once
// Something to run a model on when only its shapes matter.
#include "sinter/cli/model_options.h"

namespace sinter::cli {

// Token ids or pixels, all zero or drawn, as the model's `run` takes them.
NamedTensors sample_inputs(const models::Model& model, const std::string& folder, int64_t batch, int64_t tokens, bool drawn);

}  // namespace sinter::cli
