#include "sinter/data/dataset.h"

#include "sinter/data/sampler.h"

namespace sinter::data {

namespace {

// A view, made without the op: examples are no part of any history.
Tensor row(const Tensor& t, int64_t index) {
  const TensorImpl& body = t.impl();
  return make_view(t, IntList(body.sizes.begin() + 1, body.sizes.end()),
                   IntList(body.strides.begin() + 1, body.strides.end()), body.offset + index * body.strides[0]);
}

}  // namespace

TensorDataset::TensorDataset(Tensor x, Tensor y) : x_(std::move(x)), y_(std::move(y)) {
  check(x_.defined() && !x_.is_traced() && x_.dim() > 0, "TensorDataset: examples are the rows of a tensor");
  size_ = x_.impl().sizes[0];
  if (!y_.defined()) return;
  check(!y_.is_traced() && y_.dim() > 0 && y_.impl().sizes[0] == size_,
        "TensorDataset: {} rows of data, and targets of the shape {}", size_, y_.sizes());
}

Example<> TensorDataset::get(int64_t index) const {
  check(index >= 0 && index < size_, "TensorDataset: no example {} in {}", index, size_);
  return {row(x_, index), y_.defined() ? row(y_, index) : Tensor()};
}

std::vector<std::vector<int64_t>> detail::random_parts(int64_t size, const std::vector<int64_t>& lengths,
                                                       uint64_t seed) {
  int64_t sum = 0;
  for (int64_t length : lengths) {
    check(length >= 0 && length <= size - sum, "random_split: the lengths do not add up to the {} examples", size);
    sum += length;
  }
  check(sum == size, "random_split: the lengths add up to {}, there are {} examples", sum, size);
  RandomSampler order(size);
  std::vector<std::vector<int64_t>> parts;
  int64_t position = 0;
  for (int64_t length : lengths) {
    auto& part = parts.emplace_back();
    for (int64_t i = 0; i < length; ++i) part.push_back(order.index(seed, 0, position++));
  }
  return parts;
}

}  // namespace sinter::data
