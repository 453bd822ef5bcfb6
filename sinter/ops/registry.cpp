#include "sinter/ops/registry.h"

#include <unordered_map>
#include <vector>

#include "sinter/base/error.h"
#include "sinter/graph/graph.h"
#include "sinter/ops/custom.h"

namespace sinter {

namespace {

std::vector<const Op*> join_families() {
  std::vector<const Op*> all = {&kInputOp, &kScalarOp};
  for (OpFamily family :
       {unary_ops(), activation_ops(), binary_ops(), compare_ops(), reduce_ops(), creation_ops(), random_ops(),
        view_ops(), layout_ops(), indexing_ops(), sort_ops(), contract_ops(), pool_ops(), attention_ops(),
        norm_ops(), row_norm_ops(), control_ops(), device_ops(), fused_ops()})
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
  return it == by_name.end() ? find_registered_op(name) : it->second;
}

std::string_view unavailable_reason(std::string_view name) {
  struct Missing {
    std::string_view name, reason;
  };
  static constexpr Missing kMissing[] = {
      {"_cdist_forward", "write it as norm(a.unsqueeze(-2) - b.unsqueeze(-3))"},
      {"_pdist_forward", "write it as norm(a.unsqueeze(-2) - a.unsqueeze(-3)) and take the upper triangle"},
      {"_embedding_bag", "use embedding() and sum or mean over each bag"},
      {"grid_sampler_2d", "sampling at arbitrary positions is not provided yet"},
      {"col2im", "use conv_transpose2d with a one-hot weight"},
      {"resize_", "a tensor's storage does not grow; make a new one with empty()"},
  };
  for (auto& missing : kMissing)
    if (missing.name == name) return missing.reason;
  return {};
}

}  // namespace sinter
