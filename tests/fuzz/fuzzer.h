#pragma once
// Finding programs that behave differently under compile().
#include <optional>

#include "tests/fuzz/program.h"

namespace sinter::fuzz {

struct Kind {
  bool gradients = false;
  bool training = false;  // with layers in every program, and mostly an optimiser
};

// A program that runs eagerly on the first round, the same for the same seed.
Program generate(uint32_t seed, const Kind& kind);

struct Failure {
  std::string what;     // "interpreter, round 2: result 0: shape [3] instead of [4]"
  std::string options;  // as C++ text
  std::vector<Round> rounds;
};

// Runs the program eagerly and compiled in several ways, on several rounds. Only the way and the first rounds that
// `only` names where it is given.
std::optional<Failure> check(const Program& program, const Failure* only = nullptr);

// A smaller program that fails as well.
Program shrink(Program program, Failure& failure);

// Generates and checks programs until the environment's limits (or these) are reached, or a few have failed; how many
// have. Each is printed as it is found. Each of the shards takes every kShards-th program. Half of the programs have
// gradients; SINTER_FUZZ_GRADIENTS=1 makes that all of them, with layers and optimisers.
struct Limits {
  int programs = 1000000;
  double seconds = 25;
};
inline constexpr int kShards = 2;
int fuzz(int shard, Limits limits);

}  // namespace sinter::fuzz
