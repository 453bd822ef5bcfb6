#include "sinter/ops/results.h"

namespace sinter {

TensorList fresh_results(TensorList results, std::span<const Tensor> operands) {
  auto shares = [](const Tensor& t, const Tensor& other) { return t.impl().buffer == other.impl().buffer; };
  for (size_t i = 0; i < results.size(); ++i) {
    bool shared = false;
    for (auto& operand : operands) shared |= shares(results[i], operand);
    for (size_t j = 0; j < i; ++j) shared |= shares(results[i], results[j]);
    if (shared) results[i] = results[i].clone();
  }
  return results;
}

}  // namespace sinter
