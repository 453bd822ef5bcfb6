// Functions that printed programs bring along: one token stream is run and printed. Indices are taken of values that are
// no whole numbers, which rounding could move to either side.
#include "sinter/graph/text_scan.h"
#include "sinter/ops/define.h"
#include "sinter/ops/sample.h"
#include "tests/fuzz/program.h"

#define SINTER_FUZZ_HELPERS(...) \
  __VA_ARGS__                    \
  std::string_view helper_text() { return #__VA_ARGS__; }

namespace sinter::fuzz {

SINTER_FUZZ_HELPERS(

TensorList op(const char* name, const std::vector<TensorArg>& operands, const char* attributes) {
  FieldTexts fields = parse_sample(std::string("|") + attributes).attributes;
  for (auto& field : fields)
    if (field.second == "?") field.second = quote(Tracer::current() ? Tracer::current()->fresh_size() : "u0");
  return call_op_many(*find_op(name), operands, find_op(name)->parse(fields), Where::current());
}

Tensor fit(const Tensor& t, const Shape& sizes) {
  bool same = t.dim() == sizes.rank();
  for (int64_t d = 0; same && d < t.dim(); ++d) same = t.size(d) == sizes[size_t(d)];
  if (same) return t;
  if (t.numel() == 0) return zeros(sizes, t.dtype());
  Dim count = sizes.numel();
  if (count == t.numel()) return t.reshape(sizes);
  return t.reshape({-1}).repeat({(count + t.numel() - 1) / t.numel()}).slice(0, 0, count).view(sizes);
}

Tensor into(const Tensor& t, double low, double high) { return sigmoid(t) * (high - low) + low; }

Tensor indices(const Tensor& t, const Dim& below) {
  Tensor whole = t.is_floating_point() ? (t * 0.77 + 0.31).to(kInt64) : t.to(kInt64);
  return whole.abs() % below;
}

Tensor places(const Tensor& t, const Dim& below) {
  return (arange(t.numel()).view(t.sizes()) * 5 + isfinite(t).to(kInt64)) % below;
}

Tensor weighted_sum(const TensorList& results) {
  Tensor loss;
  for (auto& result : results) {
    if (!result.defined() || !result.requires_grad()) continue;
    Tensor weights = cos(arange(result.numel(), kFloat32)).view(result.sizes());
    Tensor part = (result * weights).sum().to(kFloat32);
    loss = loss.defined() ? loss + part : part;
  }
  return loss;
}

)

}  // namespace sinter::fuzz
