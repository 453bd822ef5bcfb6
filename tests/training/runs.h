#pragma once
// Two hundred training steps whose losses PyTorch has recorded (tools/record_training_runs.py, where each model has its
// counterpart of the same name).
#include <gtest/gtest.h>

#include "sinter/sinter.h"

namespace sinter::training_runs {

enum class Precision : uint8_t { kF32, kAutocast };
enum class How : uint8_t { kEager, kCompiled };  // compiled: the whole step

const std::vector<std::string>& names();

// Trains, and expects the recorded losses: in f32 within 1e-4 of PyTorch's, relatively; with autocast within
// `autocast_factor` times the largest distance between PyTorch's own two runs, eager and compiled, of those that were
// recorded on a CPU.
void expect_recorded_losses(const std::string& name, Precision precision, How how, Device device,
                            double autocast_factor);

}  // namespace sinter::training_runs
