#include "sinter/codegen/hip/prelude.h"

#include <charconv>

#include "sinter/base/error.h"
#include "sinter/codegen/gpu/emit.h"
#include "sinter_embedded.h"

namespace sinter::codegen {

Target hip_target(std::string_view architecture) {
  // "gfx" and the generation; the last two characters are a version and a step.
  int generation = 0;
  const bool named = architecture.starts_with("gfx") && architecture.size() > 5;
  if (named) std::from_chars(architecture.data() + 3, architecture.data() + architecture.size() - 2, generation);
  check(generation > 0, "'{}' is no architecture of an AMD GPU, such as gfx90a", architecture);
  return gpu_target(generation < 10 ? 64 : 32);
}

std::string hip_prelude(const Target& target) { return gpu_prelude(target, embedded::hip_dialect); }

}  // namespace sinter::codegen
