#pragma once
// In which order an epoch goes through the examples. A sampler is a function of seed, epoch and position and keeps
// nothing in between: any thread may ask it for any position, and an epoch goes on from its middle at no cost.
#include <cstdint>
#include <memory>

#include "sinter/base/api.h"

namespace sinter SINTER_API {
namespace data {

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Examples in an epoch.
  virtual int64_t size() const = 0;
  // The example at a position from 0 to size() - 1.
  virtual int64_t index(uint64_t seed, int64_t epoch, int64_t position) const = 0;
};

// 0, 1, 2, …
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(int64_t size);
  int64_t size() const override { return size_; }
  int64_t index(uint64_t seed, int64_t epoch, int64_t position) const override;

 private:
  int64_t size_;
};

// Every example once, in an order drawn anew for each epoch. It takes no memory: the order is computed, not stored.
class RandomSampler final : public Sampler {
 public:
  explicit RandomSampler(int64_t size);
  int64_t size() const override { return size_; }
  int64_t index(uint64_t seed, int64_t epoch, int64_t position) const override;

 private:
  int64_t size_;
  int half_bits_;
};

// The part of another sampler's epoch that one of several processes takes: every num_replicas-th position from `rank`
// on. Each process gets as many: the first positions come again at the end, or with drop_last the last ones are left
// out. All must have the same seed.
class DistributedSampler final : public Sampler {
 public:
  DistributedSampler(std::shared_ptr<const Sampler> all, int64_t num_replicas, int64_t rank, bool drop_last = false);
  int64_t size() const override { return size_; }
  int64_t index(uint64_t seed, int64_t epoch, int64_t position) const override;

 private:
  std::shared_ptr<const Sampler> all_;
  int64_t num_replicas_, rank_, size_;
};

}  // namespace data
}  // namespace SINTER_API
