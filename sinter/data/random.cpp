#include "sinter/data/random.h"

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/ops/philox.h"

namespace sinter::data {

Random::Random(uint64_t seed, int64_t epoch, int64_t index)
    : key_(int64_t(hash_mix(seed, uint64_t(epoch)))), index_(index) {}

uint64_t Random::bits() { return uint64_t(rand_bits64(index_, key_, draws_++)); }

double Random::uniform() { return rand_uniform53(index_, key_, draws_++); }

int64_t Random::below(int64_t n) {
  check(n > 0, "Random::below: {} is not a positive number", n);
  return int64_t((unsigned __int128)(bits()) * uint64_t(n) >> 64);
}

}  // namespace sinter::data
