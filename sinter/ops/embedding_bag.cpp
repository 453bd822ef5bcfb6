#include <limits>

#include "sinter/ops/checked.h"
#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

namespace {

// Bags of equal size: rows are [bags, size, width], what is kept of them [bags, size, 1] or undefined.
Tensor combine_rows(const Tensor& rows, const Tensor& kept, EmbeddingBagMode mode) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  if (mode == EmbeddingBagMode::kMax) {
    if (!kept.defined()) return std::get<0>(max(rows, 1));
    return where(any(kept, {1}), std::get<0>(max(where(kept, rows, kLowest), 1)), 0);
  }
  Tensor sum = (kept.defined() ? where(kept, rows, 0) : rows).sum({1});
  if (mode == EmbeddingBagMode::kSum) return sum;
  return kept.defined() ? sum / clamp_min(kept.to(rows.dtype()).sum({1}), 1) : sum / rows.size(1);
}

// Bags one after another: rows are [all, width], `bag` tells to which of `count` each belongs.
Tensor combine_by_bag(const Tensor& rows, const Tensor& kept, const Tensor& bag, const Dim& count,
                      EmbeddingBagMode mode) {
  Shape size{count, rows.size(1)};
  Tensor ones_of = kept.defined() ? kept.to(rows.dtype()) : ones({rows.size(0), 1}, rows.options());
  Tensor number = index_add(zeros({count, 1}, rows.options()), 0, bag, ones_of);
  if (mode == EmbeddingBagMode::kMax) {
    constexpr double kLowest = -std::numeric_limits<double>::infinity();
    Tensor values = kept.defined() ? where(kept, rows, kLowest) : rows;
    Tensor largest =
        scatter_reduce(full(size, kLowest, rows.options()), 0, bag.unsqueeze(1).expand(rows.sizes()), values, "amax");
    return where(number > 0, largest, 0);
  }
  Tensor sum = index_add(zeros(size, rows.options()), 0, bag, kept.defined() ? where(kept, rows, 0) : rows);
  return mode == EmbeddingBagMode::kSum ? sum : sum / clamp_min(number, 1);
}

}  // namespace

Tensor embedding_bag(const TensorArg& weight_arg, const TensorArg& indices_arg, const Tensor& offsets_in,
                     EmbeddingBagMode mode, const Tensor& per_sample_weights, bool include_last_offset,
                     std::optional<int64_t> padding_idx) {
  constexpr auto op = "embedding_bag";
  UserPosition here(weight_arg.where());
  const Tensor &weight = tensor_operand(op, weight_arg), &indices = tensor_operand(op, indices_arg);
  check(weight.dim() == 2, "{}: the table must be a matrix, not of shape {}", op, weight.sizes());
  check(indices.dim() == 1 || indices.dim() == 2, "{}: expected indices of 1 or 2 dimensions, got {}", op,
        indices.sizes());
  check(offsets_in.defined() == (indices.dim() == 1),
        "{}: indices [bags, size] take no offsets, 1-d ones need them; got indices {}", op, indices.sizes());
  if (per_sample_weights.defined()) {
    check(mode == EmbeddingBagMode::kSum, "{}: per_sample_weights are for sums", op);
    check(per_sample_weights.dim() == indices.dim(), "{}: per_sample_weights {} must have the shape of the indices {}",
          op, per_sample_weights.sizes(), indices.sizes());
  }
  int64_t padding = padding_idx.value_or(-1);
  if (padding_idx && padding < 0) padding += weight.size(0).to_int();
  Tensor rows = widened(embedding(weight, indices, padding)), kept;
  if (padding_idx) kept = (indices != padding).unsqueeze(-1);
  if (per_sample_weights.defined()) rows = rows * per_sample_weights.unsqueeze(-1);
  if (indices.dim() == 2) return narrowed(combine_rows(rows, kept, mode), weight.dtype());

  Tensor offsets = offsets_in.to(kInt64);
  check(offsets.dim() == 1, "{}: the offsets must be a vector, got {}", op, offsets.sizes());
  if (include_last_offset) {
    check(offsets.size(0) >= 1, "{}: include_last_offset needs at least one offset", op);
    offsets = offsets.narrow(0, 0, offsets.size(0) - 1);
  }
  if (offsets.size(0) >= 1) offsets = checked(offsets, offsets.select(0, 0) == 0, Fault::kEmbeddingBag);
  Tensor at = arange_of_size(indices.size(0), offsets.options());
  Tensor bag = searchsorted(offsets, at, false, true) - 1;
  return narrowed(combine_by_bag(rows, kept, bag, offsets.size(0), mode), weight.dtype());
}

}  // namespace sinter
