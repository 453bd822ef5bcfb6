#pragma once
// What the options of most optimisers must be.
#include "sinter/base/error.h"

namespace sinter::optim {

// An Error unless lr, weight_decay, eps and momentum are not negative and both betas are in [0, 1), of those there are.
template <class Options>
void check_common(const char* optimizer, const Options& o) {
  auto check_not_negative = [&](const char* name, double value) {
    check(value >= 0, "{}: {} {} must not be negative", optimizer, name, value);
  };
  check_not_negative("lr", o.lr());
  check_not_negative("weight_decay", o.weight_decay());
  if constexpr (requires { double(o.eps()); }) check_not_negative("eps", o.eps());
  if constexpr (requires { o.momentum(); }) check_not_negative("momentum", o.momentum());
  if constexpr (requires { o.betas(); }) {
    auto [beta1, beta2] = o.betas();
    check(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, "{}: betas {} and {} must be in [0, 1)", optimizer, beta1,
          beta2);
  }
}

}  // namespace sinter::optim
