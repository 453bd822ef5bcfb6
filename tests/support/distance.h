#pragma once
// How far a result is from what is wanted, relative to the latter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/tensor/tensor.h"

namespace sinter {

// The norm of what differs by that of what is wanted, in doubles; the test fails where sizes differ.
inline double distance(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  if (got.sizes() != want.sizes()) return std::numeric_limits<double>::infinity();
  Tensor a = got.to(cpu()).to(kFloat64), b = want.to(cpu()).to(kFloat64);
  auto norm = [](const Tensor& t) { return (t * t).sum().item<double>(); };
  return std::sqrt(norm(a - b) / std::max(norm(b), 1e-30));
}

}  // namespace sinter
