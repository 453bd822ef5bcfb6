#pragma once
// Datasets: things with a size and an example for each index. One of your own says how many examples it has and makes
// one, from any thread, and a loader (data_loader.h) does the rest:
//
//   struct Squares : data::Dataset<Squares> {
//     int64_t size() const { return 1000; }
//     data::Example<> get(int64_t i) const { return {tensor({double(i)}), tensor({double(i * i)})}; }
//   };
//   auto flipped = images.map(data::transforms::RandomHorizontalFlip()).map(data::transforms::ToFloat());
//
// A dataset may also have `draw(i, random)`, the example with something random about it, and `collate(examples)`, which
// makes a batch of a vector of examples; where it has none, examples of tensors are stacked and others stay a vector.
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/error.h"
#include "sinter/data/example.h"
#include "sinter/data/random.h"
#include "sinter/data/transform_classes.h"
#include "sinter/tensor/tensor.h"

namespace sinter SINTER_API {
namespace data {

template <class D, class F>
class MapDataset;
template <class D, class F>
class CollateDataset;

namespace detail {

// Datasets as LibTorch has them (datasets::Dataset) may not know their size, and `get` need not be const.
template <class D>
int64_t size_of(const D& dataset) {
  if constexpr (requires { dataset.size().has_value(); }) {
    check(dataset.size().has_value(), "data: the dataset does not tell its size");
    return int64_t(*dataset.size());
  } else {
    return dataset.size();
  }
}
template <class D>
auto example_of(const D& dataset, int64_t index) {
  if constexpr (requires { dataset.get(index); })
    return dataset.get(index);
  else
    return const_cast<D&>(dataset).get(size_t(index));
}

// The example, with what is random about it drawn where the dataset has such.
template <class D>
auto draw(const D& dataset, int64_t index, Random& random) {
  if constexpr (requires { dataset.draw(index, random); })
    return dataset.draw(index, random);
  else
    return example_of(dataset, index);
}

template <class F, class E>
concept OfExample = std::invocable<const F&, E> || std::invocable<const F&, E, Random&>;
// A function of what goes into the model alone.
template <class F, class E>
concept OfData = requires(E e) {
  e.data;
}
&&OfExample<F, decltype(E::data)>;
template <class F, class E>
concept OfBatch = !OfExample<F, E> && std::invocable<const F&, std::vector<E>>;

template <class F, class T>
auto apply(const F& f, T value, Random& random) {
  if constexpr (std::invocable<const F&, T, Random&>)
    return f(std::move(value), random);
  else
    return f(std::move(value));
}

template <class F, class E>
auto transform(const F& f, E example, Random& random) {
  if constexpr (OfExample<F, E>) {
    return apply(f, std::move(example), random);
  } else {
    auto data = apply(f, std::move(example.data), random);
    return Example<decltype(data), decltype(example.target)>{std::move(data), std::move(example.target)};
  }
}

template <class D>
auto collate(const D& dataset, std::vector<typename D::ExampleType> examples) {
  using E = typename D::ExampleType;
  if constexpr (requires { dataset.collate(std::move(examples)); })
    return dataset.collate(std::move(examples));
  else if constexpr (std::is_same_v<E, Tensor> || std::is_same_v<E, Example<>>)
    return Stack<E>()(examples);
  else
    return examples;
}

template <class D, class F>
auto map(D dataset, F f) {
  using E = typename D::ExampleType;
  static_assert(OfExample<F, E> || OfBatch<F, E> || OfData<F, E>,
                "map() takes a function of an example, of its data, or of a vector of examples; of the former two, if "
                "they like, with a Random& behind it");
  if constexpr (OfBatch<F, E>)
    return CollateDataset<D, F>(std::move(dataset), std::move(f));
  else
    return MapDataset<D, F>(std::move(dataset), std::move(f));
}

}  // namespace detail

template <class Self, class SingleExample = Example<>>
class Dataset {
 public:
  using ExampleType = SingleExample;

  // A dataset of f(example), or with f(example.data) as data; f may take a Random& behind it. Where f takes a vector of
  // examples it makes the batches, as Stack does, and comes last.
  template <class F>
  auto map(F f) const& {
    return detail::map(static_cast<const Self&>(*this), detail::called(std::move(f), static_cast<F*>(nullptr)));
  }
  template <class F>
  auto map(F f) && {
    return detail::map(static_cast<Self&&>(*this), detail::called(std::move(f), static_cast<F*>(nullptr)));
  }
};

namespace detail {

template <class D, class F>
using Mapped =
    decltype(transform(std::declval<const F&>(), std::declval<typename D::ExampleType>(), std::declval<Random&>()));

}  // namespace detail

// See Dataset::map. Outside of a loader, `get` draws as epoch 0 with the seed 0 does.
template <class D, class F>
class MapDataset : public Dataset<MapDataset<D, F>, detail::Mapped<D, F>> {
 public:
  using ExampleType = detail::Mapped<D, F>;
  MapDataset(D dataset, F f) : dataset_(std::move(dataset)), f_(std::move(f)) {}

  // As the dataset tells it, which may be an optional number.
  auto size() const { return dataset_.size(); }
  ExampleType get(int64_t index) const {
    Random random(0, 0, index);
    return draw(index, random);
  }
  ExampleType draw(int64_t index, Random& random) const {
    return detail::transform(f_, detail::draw(dataset_, index, random), random);
  }
  auto collate(std::vector<ExampleType> examples) const
      requires(std::is_same_v<ExampleType, typename D::ExampleType>&& requires(const D& d) { d.collate(examples); }) {
    return dataset_.collate(std::move(examples));
  }

 private:
  D dataset_;
  F f_;
};

template <class D, class F>
class CollateDataset {
 public:
  using ExampleType = typename D::ExampleType;
  CollateDataset(D dataset, F f) : dataset_(std::move(dataset)), f_(std::move(f)) {}

  // As the dataset tells it, which may be an optional number.
  auto size() const { return dataset_.size(); }
  ExampleType get(int64_t index) const { return detail::example_of(dataset_, index); }
  ExampleType draw(int64_t index, Random& random) const { return detail::draw(dataset_, index, random); }
  auto collate(std::vector<ExampleType> examples) const { return f_(std::move(examples)); }
  auto get_batch(const ArrayRef<size_t>& indices) const {
    std::vector<ExampleType> examples;
    for (size_t index : indices) examples.push_back(get(int64_t(index)));
    return collate(std::move(examples));
  }

 private:
  D dataset_;
  F f_;
};

// Rows of tensors: example i is (x[i], y[i]), or (x[i], undefined) without y. The rows share the tensors' memory.
class TensorDataset : public Dataset<TensorDataset> {
 public:
  explicit TensorDataset(Tensor x, Tensor y = {});
  int64_t size() const { return size_; }
  Example<> get(int64_t index) const;

 private:
  Tensor x_, y_;
  int64_t size_;
};

// The examples of another dataset with these indices, in this order.
template <class D>
class Subset : public Dataset<Subset<D>, typename D::ExampleType> {
 public:
  using ExampleType = typename D::ExampleType;
  Subset(std::shared_ptr<const D> dataset, std::vector<int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {
    for (int64_t index : indices_)
      check(index >= 0 && index < detail::size_of(*dataset_), "Subset: no example {} in a dataset of {}", index,
            detail::size_of(*dataset_));
  }
  Subset(D dataset, std::vector<int64_t> indices)
      : Subset(std::make_shared<const D>(std::move(dataset)), std::move(indices)) {}

  int64_t size() const { return int64_t(indices_.size()); }
  const std::vector<int64_t>& indices() const { return indices_; }
  ExampleType get(int64_t index) const { return detail::example_of(*dataset_, at(index)); }
  ExampleType draw(int64_t index, Random& random) const { return detail::draw(*dataset_, at(index), random); }
  auto collate(std::vector<ExampleType> examples) const requires requires(const D& d) { d.collate(examples); }
  { return dataset_->collate(std::move(examples)); }

 private:
  int64_t at(int64_t index) const {
    check(index >= 0 && index < size(), "Subset: no example {} in {}", index, size());
    return indices_[size_t(index)];
  }

  std::shared_ptr<const D> dataset_;
  std::vector<int64_t> indices_;
};

namespace detail {

// The indices of each part; an Error unless the lengths add up to the size.
std::vector<std::vector<int64_t>> random_parts(int64_t size, const std::vector<int64_t>& lengths, uint64_t seed);

}  // namespace detail

// Cuts a dataset into parts of these lengths, whose examples are chosen by the seed and stand in random order.
template <class D>
std::vector<Subset<D>> random_split(D dataset, const std::vector<int64_t>& lengths, uint64_t seed = 0) {
  auto shared = std::make_shared<const D>(std::move(dataset));
  std::vector<Subset<D>> parts;
  for (auto& indices : detail::random_parts(detail::size_of(*shared), lengths, seed))
    parts.emplace_back(shared, std::move(indices));
  return parts;
}

// --- as LibTorch's programs write them

namespace datasets {

// A dataset whose functions override those of this class. `get` is called from the loader's threads.
template <class Self, class SingleExample = Example<>>
class Dataset : public data::Dataset<Self, SingleExample> {
 public:
  virtual ~Dataset() = default;
  virtual SingleExample get(size_t index) = 0;
  virtual std::optional<size_t> size() const = 0;
  virtual std::vector<SingleExample> get_batch(const ArrayRef<size_t>& indices) {
    std::vector<SingleExample> batch;
    for (size_t index : indices) batch.push_back(get(index));
    return batch;
  }
};
using data::TensorDataset;

// The handwritten digits of MNIST, or what comes in the same format, in the folder `root`: train-images-idx3-ubyte and its like,
// unpacked. Data are [1, 28, 28] from 0 to 1, targets i64.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;
  bool is_train() const { return mode_ == Mode::kTrain; }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  Mode mode_;
  Tensor images_, targets_;
};

}  // namespace datasets

}  // namespace data
}  // namespace SINTER_API
