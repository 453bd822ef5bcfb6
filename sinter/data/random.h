#pragma once
// What is random about one example: a crop, a flip. The draws are a function of (seed, epoch, index), so that they are
// the same whichever thread makes the example, and others in the next epoch.
#include <cstdint>

#include "sinter/base/api.h"

namespace sinter SINTER_API {
namespace data {

class Random {
 public:
  Random(uint64_t seed, int64_t epoch, int64_t index);

  uint64_t bits();
  // In [0, 1).
  double uniform();
  // One of 0 … n - 1, each as likely.
  int64_t below(int64_t n);

 private:
  int64_t key_, index_, draws_ = 0;
};

}  // namespace data
}  // namespace SINTER_API
