#pragma once
// Where blocks of known lifetimes lie in one stretch of memory.
#include <cstdint>
#include <span>

namespace sinter {

inline constexpr int64_t kBlockAlignment = 64;

struct Block {
  int64_t bytes = 0;
  int first = 0, last = 0;  // steps during which it is in use, both included
  int64_t offset = 0;       // the result: a multiple of kBlockAlignment
};

// Gives each block its offset, so that blocks in use at the same step are apart. Returns the bytes that all need.
int64_t pack(std::span<Block* const> blocks);

// The most bytes that blocks in use at one step have together, each rounded up to the alignment: a bound for `pack`.
int64_t largest_live(std::span<const Block* const> blocks);

}  // namespace sinter
