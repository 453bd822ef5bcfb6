#pragma once
// Sequences of different lengths for recurrent layers: padded to one length, or packed, which computes nothing for what is padding.
#include <optional>
#include <tuple>

#include "sinter/base/api.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace nn::utils::rnn {

// Sequences in descending order of length, position by position: of each position only the sequences that reach it. Made by
// pack_padded_sequence() and pack_sequence().
class PackedSequence {
 public:
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {});
  // [all positions, …].
  const Tensor& data() const { return data_; }
  // How many sequences reach each position: i64, on the CPU.
  const Tensor& batch_sizes() const { return batch_sizes_; }
  // Which sequence lies where, and where each sequence lies; undefined where they came in order.
  const Tensor& sorted_indices() const { return sorted_indices_; }
  const Tensor& unsorted_indices() const { return unsorted_indices_; }
  PackedSequence to(const TensorOptions& options) const;
  PackedSequence cuda() const { return to(kCUDA); }
  PackedSequence cpu() const { return to(kCPU); }

 private:
  Tensor data_, batch_sizes_, sorted_indices_, unsorted_indices_;
};

// Of x [l, n, …], or [n, l, …] when batch_first, the first lengths[i] positions of sequence i. Lengths are read on the host; they
// must not ascend if enforce_sorted.
PackedSequence pack_padded_sequence(const Tensor& x, const Tensor& lengths, bool batch_first = false, bool enforce_sorted = true);
// The sequences padded to total_length (that of the longest by default), and their lengths.
std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false, double padding_value = 0,
                                               std::optional<int64_t> total_length = {});
// Sequences [l, …] of different l as one tensor [longest, n, …], or [n, longest, …]; padding goes to the "right" or the "left" end.
Tensor pad_sequence(const TensorList& sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");
PackedSequence pack_sequence(const TensorList& sequences, bool enforce_sorted = true);

}  // namespace nn::utils::rnn
using nn::utils::rnn::pad_sequence;

}  // namespace SINTER_API
