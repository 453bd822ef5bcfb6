// On the CPU; on a GPU it is checked with the gradients of convolutions.
#include "tests/engine/training_block.h"

namespace sinter {
namespace {

TEST(TrainingBlock, CompiledIsAsEager) {
  for (bool half : {false, true}) testing::check_training_block(cpu(), Mode::kDefault, half);
}

}  // namespace
}  // namespace sinter
