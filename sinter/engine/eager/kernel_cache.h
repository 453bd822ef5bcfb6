#pragma once
// The inline cache of eager kernels: a small direct-mapped table per thread in front of one table for the process.
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "sinter/base/hash.h"
#include "sinter/engine/kernel.h"

namespace sinter::eager {

// Where the value of a kernel parameter comes from at each call: its Parameter without the name.
struct ParamSource {
  int8_t operand;  // -1: the size of an axis; else a stride of this operand
  int8_t axis;
};
std::vector<ParamSource> param_sources(const Kernel& kernel);

// Kernels of the same class on another device are others.
inline uint64_t on_device(uint64_t key, Device device, bool wide) {
  if (device.is_cpu()) return key;
  return hash_mix(key, uint64_t(device.type()) << 16 | uint64_t(device.index()) << 8 | uint64_t(wide));
}
// Whether positions in the tensor need more than 31 bits.
inline bool is_wide(const TensorImpl& t) {
  int64_t last = 0;
  for (size_t d = 0; d < t.sizes.size(); ++d) last += (t.sizes[d] - 1) * t.strides[d];
  return last >= INT32_MAX / 2;
}

struct CachedKernel {
  const Op* op = nullptr;
  uint64_t key = 0;
  DType result = kFloat32;
  std::shared_ptr<const Kernel> kernel;
  std::vector<ParamSource> sources;
};

class KernelCache {
 public:
  // The entry of (op, key), made by `make` when it does not exist yet. Entries live as long as the process.
  template <class Make>
  const CachedKernel& find(const Op& op, uint64_t key, Make&& make) {
    uint64_t hash = hash_mix(reinterpret_cast<uintptr_t>(&op), key);
    auto& slot = recent_[hash % recent_.size()];
    if (slot && slot->op == &op && slot->key == key) [[likely]]
      return *slot;
    return *(slot = find_shared(op, key, hash, make));
  }

 private:
  const CachedKernel* find_shared(const Op& op, uint64_t key, uint64_t hash, const std::function<CachedKernel()>& make);

  static inline thread_local std::array<const CachedKernel*, 512> recent_{};
};

inline KernelCache& kernel_cache() {
  static KernelCache cache;
  return cache;
}

}  // namespace sinter::eager
