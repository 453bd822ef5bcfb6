#include "sinter/engine/referee/compare.h"

#include <cmath>
#include <limits>

#include "sinter/base/format.h"
#include "sinter/graph/tolerance.h"

namespace sinter::referee {

namespace {

IntList index_of(int64_t at, const IntList& sizes) {
  IntList out(sizes.size(), 0);
  for (size_t d = sizes.size(); d-- > 0;) {
    out[d] = at % sizes[d];
    at /= sizes[d];
  }
  return out;
}

// How wrong an element is; 0: it is right.
double fault(DType dtype, double got, double want, double allowed) {
  if (std::isinf(allowed) || agrees(dtype, got, want, allowed)) return 0;
  double off = std::abs(got - want);
  return std::isnan(off) || allowed == 0 ? std::numeric_limits<double>::infinity() : off / allowed;
}

}  // namespace

std::string Mismatch::text() const {
  if (!form.empty()) return format("result {}: {}", result, form);
  std::string place = sizes.empty() ? "" : format("element {} ", index);
  std::string out = format("result {}, {}{}: {}is {} instead of {}", result, dtype, sizes, place, got, want);
  if (allowed > 0) out += format(" (allowed error {})", allowed);
  return elements > 1 ? out + format("; {} of {} elements are wrong", wrong, elements) : out;
}

std::optional<Mismatch> compare(int result, const Tensor& got, const Array& want, std::span<const double> allowed, bool number) {
  Mismatch out{.result = result, .dtype = got.dtype(), .sizes = got.impl().sizes, .index = {}, .form = {}};
  bool same_dtype = got.dtype() == want.dtype || (number && is_floating(got.dtype()) == want.floating());
  if (!same_dtype || got.impl().sizes != want.sizes) {
    out.form = format("{}{} instead of {}{}", got.dtype(), got.impl().sizes, want.dtype, want.sizes);
    return out;
  }
  Array values = to_array(got);
  double worst = 0;
  out.elements = want.numel();
  for (int64_t at = 0; at < want.numel(); ++at) {
    double slack = allowed.empty() ? 0 : allowed[size_t(at)];
    if (number && want.floating()) slack += allowed_error(got.dtype(), {}, want.f[size_t(at)]);
    bool same = !want.floating() && values.i[size_t(at)] == want.i[size_t(at)];
    double how = same ? 0 : fault(want.dtype, values.number(at), want.number(at), slack);
    if (how == 0 && !same && !want.floating() && slack == 0) how = 1;  // integers that doubles do not tell apart
    if (how == 0) continue;
    ++out.wrong;
    if (how <= worst) continue;
    worst = how;
    out.index = index_of(at, want.sizes);
    out.got = values.number(at);
    out.want = want.number(at);
    out.allowed = slack;
  }
  return out.wrong ? std::optional(out) : std::nullopt;
}

}  // namespace sinter::referee
