#include "sinter/data/sampler.h"

#include <algorithm>
#include <bit>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"

namespace sinter::data {

namespace {

constexpr int kRounds = 6;
// Half the bits of the smallest network: below 2^8 places its permutations would be few.
constexpr int kLeastHalfBits = 4;

int64_t checked_size(int64_t size) {
  check(size >= 0, "Sampler: {} examples", size);
  return size;
}

void check_position(int64_t position, int64_t size) {
  check(position >= 0 && position < size, "Sampler: position {} of an epoch of {} examples", position, size);
}

}  // namespace

SequentialSampler::SequentialSampler(int64_t size) : size_(checked_size(size)) {}

int64_t SequentialSampler::index(uint64_t, int64_t, int64_t position) const {
  check_position(position, size_);
  return position;
}

RandomSampler::RandomSampler(int64_t size)
    : size_(checked_size(size)), half_bits_(std::max(kLeastHalfBits, (int(std::bit_width(uint64_t(size))) + 1) / 2)) {}

// A Feistel network permutes the numbers of twice half_bits_ bits; those that fall outside of the epoch are sent
// through it again until they fall inside, which permutes what is inside.
int64_t RandomSampler::index(uint64_t seed, int64_t epoch, int64_t position) const {
  check_position(position, size_);
  const uint64_t mask = (uint64_t(1) << half_bits_) - 1;
  uint64_t keys[kRounds];
  for (int round = 0; round < kRounds; ++round)
    keys[round] = hash_mix(hash_mix(seed, uint64_t(epoch)), uint64_t(round));
  uint64_t at = uint64_t(position);
  do {
    uint64_t left = at >> half_bits_, right = at & mask;
    for (uint64_t key : keys) {
      uint64_t mixed = left ^ (hash_mix(key, right) & mask);
      left = right;
      right = mixed;
    }
    at = left << half_bits_ | right;
  } while (at >= uint64_t(size_));
  return int64_t(at);
}

DistributedSampler::DistributedSampler(std::shared_ptr<const Sampler> all, int64_t num_replicas, int64_t rank,
                                       bool drop_last)
    : all_(std::move(all)), num_replicas_(num_replicas), rank_(rank) {
  check(num_replicas > 0 && rank >= 0 && rank < num_replicas, "DistributedSampler: rank {} of {}", rank, num_replicas);
  const int64_t whole = all_->size();
  size_ = whole / num_replicas + (!drop_last && whole % num_replicas != 0);
}

int64_t DistributedSampler::index(uint64_t seed, int64_t epoch, int64_t position) const {
  check_position(position, size_);
  return all_->index(seed, epoch, (position * num_replicas_ + rank_) % all_->size());
}

}  // namespace sinter::data
