#include "sinter/ops/registry.h"

#include <unordered_map>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/batched_op.h"
#include "sinter/ops/custom.h"

namespace sinter {

namespace {

std::vector<const Op*> join_families() {
  std::vector<const Op*> all = {&kInputOp, &kScalarOp};
  for (OpFamily family :
       {unary_ops(), activation_ops(), binary_ops(), compare_ops(), reduce_ops(), running_ops(), complex_ops(), creation_ops(), random_ops(),
        special_ops(), bessel_ops(), polynomial_ops(), variate_ops(), view_ops(), layout_ops(), indexing_ops(), sort_ops(), contract_ops(), pool_ops(), fold_ops(),
        attention_ops(), quantized_ops(), grouped_ops(),
        norm_ops(), row_norm_ops(), control_ops(), device_ops(), fused_ops(), factorization_ops(),
        linear_system_ops(), pseudo_inverse_ops(), fourier_ops()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace

std::span<const Op* const> all_ops() {
  static const auto all = join_families();
  return all;
}

const Op* find_op(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Op*> map;
    for (auto* op : all_ops())
      SINTER_INTERNAL_ASSERT(map.emplace(op->name, op).second, "two ops are called {}", op->name);
    return map;
  }();
  auto it = by_name.find(name);
  if (it != by_name.end()) return it->second;
  const Op* batched = find_batched_op(name);
  return batched ? batched : find_registered_op(name);
}

std::string_view unavailable_reason(std::string_view name) {
  struct Missing {
    std::string_view name, reason;
  };
  static constexpr Missing kMissing[] = {
      {"resize_", "a tensor's storage does not grow; make a new one with empty()"},
  };
  for (auto& missing : kMissing)
    if (missing.name == name) return missing.reason;
  return {};
}

}  // namespace sinter
