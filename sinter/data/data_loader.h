#pragma once
// Batches of a dataset, made ahead by threads:
//
//   auto loader = data::make_data_loader(dataset, data::DataLoaderOptions(32).workers(2).shuffle(true).device(kCUDA));
//   for (int64_t epoch = 0; epoch < 10; ++epoch)
//     for (auto& batch : *loader) step(batch.data, batch.target);
//
// Each loop over a loader is an epoch. Which batches it gives, in which order and with which random draws, depends on
// the dataset, the seed, the epoch and the batch size, and not on the number of workers. A loader is used by one thread
// at a time.
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/base/function_ref.h"
#include "sinter/data/dataset.h"
#include "sinter/data/sampler.h"
#include "sinter/io/safetensors.h"
#include "sinter/tensor/device.h"

namespace sinter SINTER_API {
namespace data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(int64_t batch_size) : batch_size_(batch_size) {}
  SINTER_OPTION(int64_t, batch_size) = 1;
  // Threads that make batches; 0: the one that asks for them.
  SINTER_OPTION(int64_t, workers) = 0;
  // Batches that may wait or be under way at once; 0: two for each worker.
  SINTER_OPTION(int64_t, prefetch) = 0;
  // Batches come in order, whatever is said here.
  SINTER_OPTION(bool, enforce_ordering) = true;
  // In an order that the seed and the epoch decide.
  SINTER_OPTION(bool, shuffle) = false;
  SINTER_OPTION(uint64_t, seed) = 0;
  // Leaves out the batch at the end of an epoch that is not full.
  SINTER_OPTION(bool, drop_last) = false;
  // Batches lie in page-locked memory, for a copy to a GPU; in plain memory where there is none.
  SINTER_OPTION(bool, pin_memory) = false;
  // Where batches arrive. A worker puts them into page-locked memory, the copy from there is queued when they are asked
  // for.
  SINTER_OPTION(Device, device);
};

namespace detail {

// One loop over what is left of an epoch; its threads end with it.
class BatchStream {
 public:
  virtual ~BatchStream() = default;
  // The next batch, null at the end. Rethrows what a worker has thrown.
  virtual std::shared_ptr<void> next() = 0;
};

// What a loader does whatever the types of its examples and batches.
class BatchLoader {
 public:
  struct Batches {
    // Makes one of these examples. Called from any thread.
    std::function<std::shared_ptr<void>(std::span<const int64_t> indices, uint64_t seed, int64_t epoch)> make;
    // Shows its tensors.
    std::function<void(void* batch, FunctionRef<void(Tensor&)> see)> visit;
  };

  BatchLoader(const DataLoaderOptions& options, std::shared_ptr<const Sampler> sampler, Batches batches);
  ~BatchLoader();
  std::shared_ptr<BatchStream> start();
  int64_t size() const;
  int64_t epoch() const;
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Rethrows the exception being handled with the index of the example in front.
[[noreturn]] void rethrow_for_example(int64_t index);

}  // namespace detail

template <class D>
class DataLoader {
 public:
  using Batch =
      decltype(detail::collate(std::declval<const D&>(), std::declval<std::vector<typename D::ExampleType>>()));

  DataLoader(D dataset, const DataLoaderOptions& options, std::shared_ptr<const Sampler> sampler)
      : loader_(options, std::move(sampler), batches_of(std::make_shared<const D>(std::move(dataset)))) {}

  // An input iterator; copies share the loop. When the last one is gone, so are the threads.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator() = default;
    explicit Iterator(std::shared_ptr<detail::BatchStream> stream) : stream_(std::move(stream)) { ++*this; }
    Batch& operator*() const { return *batch_; }
    Batch* operator->() const { return batch_.get(); }
    Iterator& operator++() {
      batch_.reset();
      batch_ = std::static_pointer_cast<Batch>(stream_->next());
      if (!batch_) stream_.reset();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const { return batch_ == other.batch_; }

   private:
    std::shared_ptr<detail::BatchStream> stream_;
    std::shared_ptr<Batch> batch_;
  };

  // The next epoch; after load_state_dict what is left of the one it tells of. Ends a loop that is still under way.
  Iterator begin() { return Iterator(loader_.start()); }
  Iterator end() { return {}; }

  // Batches in an epoch.
  int64_t size() const { return loader_.size(); }
  // The epoch under way, or the next one when a loop has come to its end.
  int64_t epoch() const { return loader_.epoch(); }
  // Epoch, seed, and how many examples of the epoch the batches given so far have taken: enough for another loader over
  // the same examples to go on with the very next batch.
  NamedTensors state_dict() const { return loader_.state_dict(); }
  void load_state_dict(const NamedTensors& state) { loader_.load_state_dict(state); }

 private:
  static detail::BatchLoader::Batches batches_of(std::shared_ptr<const D> dataset) {
    auto make = [dataset](std::span<const int64_t> indices, uint64_t seed, int64_t epoch) -> std::shared_ptr<void> {
      std::vector<typename D::ExampleType> examples;
      examples.reserve(indices.size());
      for (int64_t index : indices) {
        try {
          Random random(seed, epoch, index);
          examples.push_back(detail::draw(*dataset, index, random));
        } catch (...) {
          detail::rethrow_for_example(index);
        }
      }
      return std::make_shared<Batch>(detail::collate(*dataset, std::move(examples)));
    };
    auto visit = [](void* batch, FunctionRef<void(Tensor&)> see) { for_each_tensor(*static_cast<Batch*>(batch), see); };
    return {make, visit};
  }

  detail::BatchLoader loader_;
};

template <class D>
std::unique_ptr<DataLoader<D>> make_data_loader(D dataset, const DataLoaderOptions& options = {}) {
  const int64_t size = detail::size_of(dataset);
  std::shared_ptr<const Sampler> sampler;
  if (options.shuffle())
    sampler = std::make_shared<RandomSampler>(size);
  else
    sampler = std::make_shared<SequentialSampler>(size);
  return std::make_unique<DataLoader<D>>(std::move(dataset), options, std::move(sampler));
}

// In the order of a sampler, which leaves `shuffle` without a meaning.
template <class D, std::derived_from<Sampler> S>
std::unique_ptr<DataLoader<D>> make_data_loader(D dataset, S sampler, const DataLoaderOptions& options = {}) {
  return std::make_unique<DataLoader<D>>(std::move(dataset), options, std::make_shared<S>(std::move(sampler)));
}

// The same by the sampler's type: make_data_loader<samplers::RandomSampler>(dataset, 64).
template <std::derived_from<Sampler> S, class D>
std::unique_ptr<DataLoader<D>> make_data_loader(D dataset, const DataLoaderOptions& options = {}) {
  const int64_t size = detail::size_of(dataset);
  return make_data_loader(std::move(dataset), S(size), options);
}

namespace samplers {
using data::DistributedSampler, data::RandomSampler, data::Sampler, data::SequentialSampler;
}  // namespace samplers

}  // namespace data
}  // namespace SINTER_API
