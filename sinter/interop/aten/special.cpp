// Special functions.
#include "sinter/interop/aten/table.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter::interop {

std::span<const Function> special_functions() {
  static const Function kList[] = {
      {"lgamma(Tensor self) -> Tensor", lgamma},
      {"digamma(Tensor self) -> Tensor", digamma},
      {"polygamma(int n, Tensor self) -> Tensor", [](Int n, In x) { return polygamma(n, x); }},
      {"mvlgamma(Tensor self, int p) -> Tensor", mvlgamma},
      {"igamma(Tensor self, Tensor other) -> Tensor", gammainc},
      {"igammac(Tensor self, Tensor other) -> Tensor", gammaincc},
      {"erfinv(Tensor self) -> Tensor", erfinv},
      {"special_gammaln(Tensor self) -> Tensor", lgamma},
      {"special_digamma(Tensor self) -> Tensor", digamma},
      {"special_psi(Tensor self) -> Tensor", digamma},
      {"special_polygamma(int n, Tensor self) -> Tensor", [](Int n, In x) { return polygamma(n, x); }},
      {"special_multigammaln(Tensor self, int p) -> Tensor", mvlgamma},
      {"special_gammainc(Tensor self, Tensor other) -> Tensor", gammainc},
      {"special_gammaincc(Tensor self, Tensor other) -> Tensor", gammaincc},
      {"special_erfinv(Tensor self) -> Tensor", erfinv},

      // --- draws from distributions of these
      {"poisson(Tensor self, Generator? generator=None) -> Tensor", [](In rate, Unset) { return poisson(rate); }},
      {"binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
       [](In count, In probability, Unset) { return binomial(count, probability); }},
      {"_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
       [](In alpha, Unset) { return _standard_gamma(alpha); }},
  };
  return kList;
}

}  // namespace sinter::interop
