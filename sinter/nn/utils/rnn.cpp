#include "sinter/nn/utils/rnn.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::nn::utils::rnn {

PackedSequence::PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices, Tensor unsorted_indices)
    : data_(std::move(data)), batch_sizes_(std::move(batch_sizes)), sorted_indices_(std::move(sorted_indices)),
      unsorted_indices_(std::move(unsorted_indices)) {
  check(batch_sizes_.dim() == 1 && batch_sizes_.device().is_cpu() && batch_sizes_.dtype() == kInt64,
        "PackedSequence: batch_sizes are a vector of i64 on the CPU, as pack_padded_sequence() makes it, and not {} of {} on {}",
        batch_sizes_.sizes(), batch_sizes_.dtype(), batch_sizes_.device());
  if (sorted_indices_.defined() && !unsorted_indices_.defined()) unsorted_indices_ = argsort(sorted_indices_);
}

PackedSequence PackedSequence::to(const TensorOptions& options) const {
  auto moved = [&](const Tensor& indices) {
    return indices.defined() && options.has_device() ? indices.to(options.device()) : indices;
  };
  return PackedSequence(data_.to(options), batch_sizes_, moved(sorted_indices_), moved(unsorted_indices_));
}

PackedSequence pack_padded_sequence(const Tensor& given, const Tensor& given_lengths, bool batch_first, bool enforce_sorted) {
  Tensor x = given, lengths = given_lengths.to(kInt64), order;
  check(x.dim() >= 2 && lengths.dim() == 1 && lengths.size(0) == x.size(batch_first ? 0 : 1),
        "pack_padded_sequence: lengths {} for sequences {}{}", lengths.sizes(), x.sizes(), batch_first ? ", batch first" : "");
  if (!enforce_sorted) {
    std::tie(lengths, order) = sort(lengths, -1, /*descending=*/true);
    order = order.to(x.device());
    x = x.index_select(batch_first ? 0 : 1, order);
  }
  if (batch_first) x = x.transpose(0, 1);
  const auto length = lengths.to(kCPU).to_vector<int64_t>();
  check(!length.empty() && std::is_sorted(length.rbegin(), length.rend()),
        "pack_padded_sequence: lengths must not ascend; with enforce_sorted = false they may");
  check(length.back() > 0 && length.front() <= int64_t(x.size(0)), "pack_padded_sequence: lengths from {} to {} of sequences of {}",
        length.back(), length.front(), x.size(0));

  const int64_t sequences = int64_t(length.size());
  std::vector<int64_t> rows, batch_sizes;
  for (int64_t position = 0; position < length.front(); ++position) {
    int64_t reach = 0;
    for (; reach < sequences && length[size_t(reach)] > position; ++reach) rows.push_back(position * sequences + reach);
    batch_sizes.push_back(reach);
  }
  Tensor data = flatten(x, 0, 1).index_select(0, tensor(rows).to(x.device()));
  return PackedSequence(data, tensor(batch_sizes), order);
}

std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first, double padding_value,
                                               std::optional<int64_t> total_length) {
  const auto reach = sequence.batch_sizes().to_vector<int64_t>();
  check(!reach.empty(), "pad_packed_sequence: the sequences have no positions");
  const int64_t longest = int64_t(reach.size()), sequences = reach[0], length = total_length.value_or(longest);
  check(length >= longest, "pad_packed_sequence: total_length {} is below the length {} of the longest sequence", length, longest);

  // A row of padding behind the data, which all that no sequence reaches is read from.
  const Tensor& data = sequence.data();
  const int64_t padding_row = int64_t(data.size(0));
  Shape one = data.sizes();
  one[0] = 1;
  std::vector<int64_t> rows, lengths(size_t(sequences), 0);
  int64_t next = 0;
  for (int64_t position = 0; position < length; ++position)
    for (int64_t i = 0; i < sequences; ++i) {
      const bool reached = position < longest && i < reach[size_t(position)];
      rows.push_back(reached ? next++ : padding_row);
      lengths[size_t(i)] += reached;
    }
  Tensor all = cat({data, full(one, padding_value, data.options())}, 0);
  Tensor padded = all.index_select(0, tensor(rows).to(data.device())).unflatten(0, {length, sequences});
  Tensor of_lengths = tensor(lengths);
  if (sequence.unsorted_indices().defined()) {
    padded = padded.index_select(1, sequence.unsorted_indices());
    of_lengths = of_lengths.index_select(0, sequence.unsorted_indices().to(kCPU));
  }
  return {batch_first ? padded.transpose(0, 1) : padded, of_lengths};
}

Tensor pad_sequence(const TensorList& sequences, bool batch_first, double padding_value, std::string_view padding_side) {
  check(!sequences.empty(), "pad_sequence: there are no sequences");
  check(padding_side == "right" || padding_side == "left", "pad_sequence: padding_side '{}' is neither 'right' nor 'left'",
        padding_side);
  Dim longest = 0;
  for (auto& x : sequences) longest = max(longest, x.size(0));
  TensorList padded;
  for (auto& x : sequences) {
    Shape missing = x.sizes();
    missing[0] = longest - x.size(0);
    Tensor padding = full(missing, padding_value, x.options());
    padded.push_back(padding_side == "right" ? cat({x, padding}, 0) : cat({padding, x}, 0));
  }
  return stack(padded, batch_first ? 0 : 1);
}

PackedSequence pack_sequence(const TensorList& sequences, bool enforce_sorted) {
  std::vector<int64_t> lengths;
  for (auto& x : sequences) lengths.push_back(int64_t(x.size(0)));
  return pack_padded_sequence(pad_sequence(sequences), tensor(lengths), /*batch_first=*/false, enforce_sorted);
}

}  // namespace sinter::nn::utils::rnn
