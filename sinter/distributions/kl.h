#pragma once
// How much one distribution differs from another.
#include "sinter/distributions/continuous.h"
#include "sinter/distributions/discrete.h"
#include "sinter/distributions/gamma_family.h"
#include "sinter/distributions/multivariate_normal.h"
#include "sinter/distributions/transformed.h"

namespace sinter SINTER_API {
namespace distributions {

// The mean under p of log p - log q. An Error for pairs without a formula, which are those that PyTorch has none for.
Tensor kl_divergence(const Distribution& p, const Distribution& q);

}  // namespace distributions
}  // namespace SINTER_API
