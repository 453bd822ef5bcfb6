#include "sinter/data/data_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "tests/support/error_of.h"

namespace sinter::data {
namespace {

// Example i is (i, a number drawn for it), after a pause that differs from one to the next.
struct Numbers : Dataset<Numbers> {
  int64_t count;
  explicit Numbers(int64_t count) : count(count) {}
  int64_t size() const { return count; }
  Example<> get(int64_t i) const { return {tensor(i), tensor(int64_t(0))}; }
  Example<> draw(int64_t i, Random& random) const {
    std::this_thread::sleep_for(std::chrono::microseconds(i * 7919 % 300));
    return {tensor(i), tensor(random.below(1'000'000))};
  }
};

using Batches = std::vector<std::vector<int64_t>>;

// What a loop gives, data and targets of a batch behind each other.
template <class Loader>
Batches epoch_of(Loader& loader) {
  Batches out;
  for (auto& batch : *loader) {
    out.push_back(batch.data.template to_vector<int64_t>());
    auto targets = batch.target.template to_vector<int64_t>();
    out.back().insert(out.back().end(), targets.begin(), targets.end());
  }
  return out;
}

Batches first_epochs(const DataLoaderOptions& options, int epochs = 3) {
  auto loader = make_data_loader(Numbers(101), options);
  Batches out;
  for (int i = 0; i < epochs; ++i)
    for (auto& batch : epoch_of(loader)) out.push_back(batch);
  return out;
}

TEST(DataLoader, GivesAllExamplesInOrder) {
  auto loader = make_data_loader(Numbers(10), DataLoaderOptions(4));
  EXPECT_EQ(loader->size(), 3);
  std::vector<std::vector<int64_t>> seen;
  for (auto& batch : *loader) seen.push_back(batch.data.to_vector<int64_t>());
  EXPECT_EQ(seen, (std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  auto full = make_data_loader(Numbers(10), DataLoaderOptions(4).drop_last(true).workers(2));
  EXPECT_EQ(full->size(), 2);
  EXPECT_EQ(epoch_of(full).size(), 2u);
}

TEST(DataLoader, NumberOfWorkersDoesNotMatter) {
  for (bool shuffle : {false, true}) {
    auto options = DataLoaderOptions(8).shuffle(shuffle).seed(3);
    const Batches expected = first_epochs(options);
    EXPECT_EQ(expected.size(), 39u);
    EXPECT_EQ(first_epochs(DataLoaderOptions(options).workers(1)), expected);
    EXPECT_EQ(first_epochs(DataLoaderOptions(options).workers(4)), expected);
    EXPECT_EQ(first_epochs(DataLoaderOptions(options).workers(4).prefetch(1)), expected);
    EXPECT_EQ(first_epochs(DataLoaderOptions(options).workers(3).prefetch(50)), expected);
  }
}

TEST(DataLoader, ShufflesAnewInEachEpochAndTheSameForASeed) {
  auto options = DataLoaderOptions(101).shuffle(true).seed(1).workers(2);
  auto loader = make_data_loader(Numbers(101), options);
  const Batches first = epoch_of(loader), second = epoch_of(loader);
  EXPECT_NE(first, second);
  EXPECT_EQ(loader->epoch(), 2);
  auto again = make_data_loader(Numbers(101), options);
  EXPECT_EQ(epoch_of(again), first);
  EXPECT_EQ(epoch_of(again), second);
  auto other = make_data_loader(Numbers(101), DataLoaderOptions(options).seed(2));
  EXPECT_NE(epoch_of(other), first);
  std::set<int64_t> all(first[0].begin(), first[0].begin() + 101);
  EXPECT_EQ(all.size(), 101u);
  EXPECT_EQ(*all.rbegin(), 100);
}

TEST(DataLoader, GoesOnWhereItWas) {
  for (int64_t workers : {0, 3})
    for (size_t given : {0, 1, 5, 12, 13}) {
      auto options = DataLoaderOptions(8).shuffle(true).seed(9).workers(workers);
      auto loader = make_data_loader(Numbers(101), options);
      const Batches first = epoch_of(loader), second = epoch_of(loader), third = epoch_of(loader);

      auto stopped = make_data_loader(Numbers(101), options);
      epoch_of(stopped);
      NamedTensors state = stopped->state_dict();
      size_t count = 0;
      if (given > 0)
        for ([[maybe_unused]] auto& batch : *stopped) {
          state = stopped->state_dict();
          if (++count == given) break;
        }
      auto resumed = make_data_loader(Numbers(101), DataLoaderOptions(options).seed(0));  // the state has the seed
      resumed->load_state_dict(state);
      EXPECT_EQ(resumed->epoch(), 1);
      EXPECT_EQ(epoch_of(resumed), Batches(second.begin() + std::ptrdiff_t(given), second.end())) << given;
      EXPECT_EQ(epoch_of(resumed), third) << given;
    }
}

TEST(DataLoader, StoppingEarlyBeginsTheNextEpoch) {
  auto options = DataLoaderOptions(8).shuffle(true).workers(2);
  auto loader = make_data_loader(Numbers(101), options), whole = make_data_loader(Numbers(101), options);
  for ([[maybe_unused]] auto& batch : *loader) break;
  epoch_of(whole);
  EXPECT_EQ(epoch_of(loader), epoch_of(whole));
}

TEST(DataLoader, AStateThatDoesNotFitIsRefused) {
  auto loader = make_data_loader(Numbers(10), DataLoaderOptions(4)),
       longer = make_data_loader(Numbers(11), DataLoaderOptions(4));
  EXPECT_NE(message_of([&] { longer->load_state_dict(loader->state_dict()); }).find("10 examples, this one has 11"),
            std::string::npos);
  EXPECT_NE(message_of([&] { loader->load_state_dict({}); }).find("the state has no 'size'"), std::string::npos);
  NamedTensors state = loader->state_dict();
  for (auto& [name, value] : state)
    if (name == "position") value = tensor(int64_t(11));
  EXPECT_NE(message_of([&] { loader->load_state_dict(state); }).find("position 11 of 10"), std::string::npos);
}

struct Failing : Numbers {
  using Numbers::Numbers;
  Example<> draw(int64_t i, Random& random) const {
    check(i != 37, "the file is gone");
    if (i == 61) throw std::out_of_range("beyond");
    if (i == 73) throw 5;
    return Numbers::draw(i, random);
  }
};

TEST(DataLoader, ErrorsOfWorkersArriveWithTheIndex) {
  for (int64_t workers : {0, 1, 4}) {
    auto loader = make_data_loader(Failing(101), DataLoaderOptions(8).workers(workers));
    int batches = 0;
    EXPECT_EQ(message_of([&] {
                for ([[maybe_unused]] auto& batch : *loader) ++batches;
              }),
              "DataLoader: example 37: the file is gone");
    EXPECT_EQ(batches, 4);  // all before the one that failed
    // A loop may go on behind it.
    loader->load_state_dict(loader->state_dict());
    auto stream = make_data_loader(Failing(101), DataLoaderOptions(8).workers(workers));
    auto it = stream->begin();
    std::map<std::string, int> errors;
    for (int i = 1; i < 13; ++i) try {
        ++it;
      } catch (const Error& error) {
        ++errors[error.message()];
      }
    EXPECT_EQ(errors.size(), 3u);
    EXPECT_EQ(errors["DataLoader: example 61: beyond"], 1);
    EXPECT_EQ(it->data.to_vector<int64_t>(), (std::vector<int64_t>{96, 97, 98, 99, 100}));
  }
}

// Counts the examples that were made.
struct Counting : Dataset<Counting> {
  std::shared_ptr<std::atomic<int>> made = std::make_shared<std::atomic<int>>(0);
  int64_t size() const { return 1'000'000'000; }
  Example<> get(int64_t i) const {
    ++*made;
    return {tensor(i), {}};
  }
};

TEST(DataLoader, MakesNoMoreThanItMayPrefetch) {
  Counting dataset;
  auto loader = make_data_loader(dataset, DataLoaderOptions(1).workers(4).prefetch(6));
  {
    auto it = loader->begin();
    for (int i = 0; i < 200 && *dataset.made < 7; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(*dataset.made, 7);  // one was given
    ++it;
    ++it;
    for (int i = 0; i < 200 && *dataset.made < 9; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(*dataset.made, 9);
    EXPECT_FALSE(it->target.defined());
  }
  // The loop is over: its threads are joined and make nothing more.
  const int made = *dataset.made;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(*dataset.made, made);
  EXPECT_EQ(dataset.made.use_count(), 2);  // ours, the loader's
}

TEST(DataLoader, EndsLoopsThatAreLeftBehind) {
  Counting dataset;
  auto loader = make_data_loader(dataset, DataLoaderOptions(2).workers(2));
  auto first = loader->begin();
  auto second = loader->begin();
  EXPECT_NE(message_of([&] { ++first; }).find("has ended this one"), std::string::npos);
  ++second;
  loader.reset();
  const int made = *dataset.made;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(*dataset.made, made);
  EXPECT_EQ(second->data.to_vector<int64_t>(), (std::vector<int64_t>{2, 3}));
  EXPECT_NE(message_of([&] { ++second; }).find("has ended this one"), std::string::npos);
}

TEST(DataLoader, AnEmptyDatasetHasNoBatches) {
  for (int64_t workers : {0, 2}) {
    auto loader = make_data_loader(Numbers(0), DataLoaderOptions(4).shuffle(true).workers(workers));
    EXPECT_EQ(loader->size(), 0);
    EXPECT_TRUE(epoch_of(loader).empty());
    EXPECT_EQ(loader->epoch(), 1);
  }
}

TEST(DataLoader, OptionsAreChecked) {
  EXPECT_NE(message_of([] { make_data_loader(Numbers(1), DataLoaderOptions(0)); }).find("a batch size of 0"),
            std::string::npos);
  EXPECT_NE(message_of([] { make_data_loader(Numbers(1), DataLoaderOptions().workers(-1)); }).find("-1 workers"),
            std::string::npos);
  EXPECT_NE(message_of([] { make_data_loader(Numbers(1), DataLoaderOptions().prefetch(-1)); }).find("a prefetch of -1"),
            std::string::npos);
}

TEST(DataLoader, PinsWhereThereIsAGpuAndIsPlainElsewhere) {
  auto loader = make_data_loader(Numbers(10), DataLoaderOptions(5).pin_memory(true).workers(1));
  for (auto& batch : *loader) EXPECT_TRUE(batch.data.device().is_cpu());
}

TEST(DataLoader, TakesASampler) {
  auto all = std::make_shared<RandomSampler>(11);
  std::multiset<int64_t> seen;
  for (int64_t rank : {0, 1, 2}) {
    auto loader =
        make_data_loader(Numbers(11), DistributedSampler(all, 3, rank), DataLoaderOptions(4).seed(5).workers(1));
    for (auto& batch : *loader)
      for (int64_t i : batch.data.to_vector<int64_t>()) seen.insert(i);
  }
  EXPECT_EQ(seen.size(), 12u);  // one of them twice
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 11u);
}

}  // namespace
}  // namespace sinter::data
