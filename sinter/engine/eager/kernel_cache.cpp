#include "sinter/engine/eager/kernel_cache.h"

#include "sinter/base/error.h"

namespace sinter::eager {

std::vector<ParamSource> param_sources(const Kernel& kernel) {
  std::vector<ParamSource> sources;
  for (auto& p : kernel.parameters) {
    SINTER_INTERNAL_ASSERT(p.axis >= 0, "kernel {} has an unknown parameter {}", kernel.name, p.name);
    sources.push_back({int8_t(p.operand), int8_t(p.axis)});
  }
  return sources;
}

const CachedKernel* KernelCache::find_shared(const Op& op, uint64_t key, uint64_t hash,
                                             const std::function<CachedKernel()>& make) {
  static std::mutex mutex;
  static auto& table = *new std::unordered_multimap<uint64_t, std::unique_ptr<CachedKernel>>;
  auto look_up = [&]() -> const CachedKernel* {
    auto [begin, end] = table.equal_range(hash);
    for (auto it = begin; it != end; ++it)
      if (it->second->op == &op && it->second->key == key) return it->second.get();
    return nullptr;
  };
  {
    std::lock_guard lock(mutex);
    if (auto* found = look_up()) return found;
  }
  // Compiled outside the lock; a second thread may compile the same text, which the toolchain joins.
  auto entry = std::make_unique<CachedKernel>(make());
  entry->op = &op;
  entry->key = key;
  std::lock_guard lock(mutex);
  if (auto* found = look_up()) return found;
  return table.emplace(hash, std::move(entry))->second.get();
}

}  // namespace sinter::eager
