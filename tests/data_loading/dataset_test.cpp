#include "sinter/data/dataset.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/data/data_loader.h"
#include "sinter/data/sampler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "tests/support/error_of.h"

namespace sinter::data {
namespace {

TensorDataset rows() { return TensorDataset(arange(12).view({6, 2}), arange(6)); }

TEST(Dataset, RowsOfTensorsShareTheirMemory) {
  Tensor x = arange(24).view({4, 6}), y = arange(4);
  TensorDataset dataset(x.slice(1, 0, 6, 2), y);
  EXPECT_EQ(dataset.size(), 4);
  Example<> example = dataset.get(2);
  EXPECT_EQ(example.data.to_vector<int64_t>(), (std::vector<int64_t>{12, 14, 16}));
  EXPECT_EQ(example.target.item<int64_t>(), 2);
  EXPECT_TRUE(example.data.is_alias_of(x));
  EXPECT_NE(message_of([&] { dataset.get(4); }).find("no example 4 in 4"), std::string::npos);
  EXPECT_NE(message_of([&] { dataset.get(-1); }).find("no example -1"), std::string::npos);
  EXPECT_NE(message_of([&] { TensorDataset(x, arange(5)); }).find("4 rows of data"), std::string::npos);
  EXPECT_FALSE(TensorDataset(x).get(0).target.defined());
}

TEST(Dataset, MapsExamplesDataAndBatches) {
  auto of_data = rows().map([](const Tensor& x) { return x + 100; });
  EXPECT_EQ(of_data.get(1).data.to_vector<int64_t>(), (std::vector<int64_t>{102, 103}));
  EXPECT_EQ(of_data.get(1).target.item<int64_t>(), 1);
  auto of_example = rows().map([](Example<> e) { return std::pair(e.target.item<int64_t>(), std::string("x")); });
  EXPECT_EQ(of_example.get(3), std::pair(int64_t(3), std::string("x")));
  static_assert(std::is_same_v<decltype(of_example)::ExampleType, std::pair<int64_t, std::string>>);
  // Without a way to stack them, examples stay a vector.
  auto loader = make_data_loader(of_example, DataLoaderOptions(4));
  std::vector<size_t> sizes;
  for (std::vector<std::pair<int64_t, std::string>>& batch : *loader) sizes.push_back(batch.size());
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 2}));
  auto of_batch = rows().map([](std::vector<Example<>> examples) { return int64_t(examples.size()); });
  auto counts = make_data_loader(of_batch, DataLoaderOptions(4));
  std::vector<int64_t> seen;
  for (int64_t& count : *counts) seen.push_back(count);
  EXPECT_EQ(seen, (std::vector<int64_t>{4, 2}));
  auto stacked = make_data_loader(rows().map(Stack<>()), DataLoaderOptions(3));
  for (Example<>& batch : *stacked) EXPECT_TRUE(batch.data.sizes().same_as({3, 2}));
}

TEST(Dataset, DrawsOfMapsDependOnSeedEpochAndIndexAlone) {
  auto noisy = rows()
                   .map([](const Tensor& x, Random& random) { return x * 1000 + random.below(1000); })
                   .map([](Example<> e, Random& random) {
                     return Example<>{e.data, tensor(random.uniform())};
                   });
  auto epoch = [&](auto& loader) {
    std::map<int64_t, std::pair<int64_t, double>> out;
    for (auto& batch : *loader)
      for (int64_t i = 0; i < int64_t(batch.data.size(0)); ++i) {
        const int64_t value = batch.data[i][0].template item<int64_t>();
        out[value / 2000] = {value % 1000, batch.target[i].template item<double>()};
      }
    return out;
  };
  auto plain = make_data_loader(noisy, DataLoaderOptions(2).seed(4));
  auto shuffled = make_data_loader(noisy, DataLoaderOptions(5).seed(4).shuffle(true).workers(3));
  auto first = epoch(plain), second = epoch(plain);
  EXPECT_EQ(first.size(), 6u);
  EXPECT_EQ(epoch(shuffled), first);
  EXPECT_EQ(epoch(shuffled), second);
  EXPECT_NE(first, second);
  std::set<int64_t> draws;
  for (auto& [index, drawn] : first) draws.insert(drawn.first);
  EXPECT_GT(draws.size(), 3u);
}

TEST(Dataset, StackNamesWhatDiffers) {
  Stack<> stack;
  Tensor y = tensor(int64_t(0));
  EXPECT_NE(message_of([&] {
              stack({{ones({2, 3}), y}, {ones({3, 3}), y}});
            }).find("f32[3, 3] on cpu in example 1"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              stack({{ones({2}), y}, {ones({2}), {}}});
            }).find("the targets of example 1"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              stack({{ones({2}), {}}, {ones({2}), y}});
            }).find("the targets of example 0"),
            std::string::npos);
  EXPECT_NE(message_of([&] { stack({{ones({2}), y}, {zeros({2}, kInt64), y}}); }).find("i64[2]"), std::string::npos);
  Example<> batch = stack({{ones({2, 1}).expand({2, 3}), y}, {zeros({2, 3}), y}});
  EXPECT_TRUE(batch.data.sizes().same_as({2, 2, 3}));
  EXPECT_EQ(batch.data.sum().item<float>(), 6);
}

TEST(Dataset, SplitsAtRandom) {
  auto parts = random_split(rows(), {4, 2}, 7);
  ASSERT_EQ(parts.size(), 2u);
  std::set<int64_t> all;
  for (auto& part : parts)
    for (int64_t i = 0; i < part.size(); ++i) all.insert(part.get(i).target.item<int64_t>());
  EXPECT_EQ(all.size(), 6u);
  EXPECT_EQ(random_split(rows(), {4, 2}, 7)[0].indices(), parts[0].indices());
  EXPECT_NE(random_split(rows(), {6}, 8)[0].indices(), random_split(rows(), {6}, 7)[0].indices());
  EXPECT_NE(message_of([] { random_split(rows(), {4, 1}); }).find("add up to 5, there are 6"), std::string::npos);
  EXPECT_NE(message_of([] { random_split(rows(), {4, 3}); }).find("do not add up"), std::string::npos);
  EXPECT_NE(message_of([] { Subset(rows(), {0, 6}); }).find("no example 6 in a dataset of 6"), std::string::npos);
  Subset two(rows(), {5, 0});
  EXPECT_EQ(two.get(0).target.item<int64_t>(), 5);
  EXPECT_NE(message_of([&] { two.get(2); }).find("no example 2 in 2"), std::string::npos);
}

// A dataset that pads its own batches.
struct Ragged : Dataset<Ragged, std::vector<int64_t>> {
  int64_t size() const { return 5; }
  std::vector<int64_t> get(int64_t i) const { return std::vector<int64_t>(size_t(i), i); }
  Tensor collate(const std::vector<std::vector<int64_t>>& examples) const {
    size_t longest = 0;
    for (auto& e : examples) longest = std::max(longest, e.size());
    Tensor out = zeros({int64_t(examples.size()), int64_t(longest)}, kInt64);
    for (size_t i = 0; i < examples.size(); ++i)
      for (size_t j = 0; j < examples[i].size(); ++j) out.data_ptr<int64_t>()[i * longest + j] = examples[i][j];
    return out;
  }
};

TEST(Dataset, OneOfYourOwnMayMakeItsBatches) {
  auto reversed = [](std::vector<int64_t> e) {
    e.push_back(9);
    return e;
  };
  auto loader = make_data_loader(Subset(Ragged().map(reversed), {0, 2}), DataLoaderOptions(2).workers(1));
  for (Tensor& batch : *loader) EXPECT_EQ(batch.to_vector<int64_t>(), (std::vector<int64_t>{9, 0, 0, 2, 2, 9}));
}

TEST(Dataset, TensorsOfAnyBatchAreFound) {
  std::tuple<Tensor, std::vector<Example<>>, std::string, std::map<int, Tensor>> batch{
      ones({1}), {{ones({2}), {}}, {ones({3}), ones({4})}}, "text", {{1, ones({5})}}};
  int64_t sum = 0;
  for_each_tensor(batch, [&](Tensor& t) { sum += int64_t(t.numel()); });
  EXPECT_EQ(sum, 15);
}

TEST(Dataset, ABatchIsAnArgumentOfACompiledFunction) {
  auto f = compile([](const Example<>& batch) { return (batch.data * batch.target).sum(); });
  EXPECT_EQ(f(Example<>{full({3}, 2), full({3}, 5)}).item<float>(), 30);
}

TEST(Sampler, PermutesWhateverTheSize) {
  for (int64_t size : {1, 2, 3, 5, 17, 255, 256, 257, 1000, 4097}) {
    RandomSampler sampler(size);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < size; ++i) seen.insert(sampler.index(1, 2, i));
    EXPECT_EQ(int64_t(seen.size()), size);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), size - 1);
  }
  RandomSampler large(int64_t(1) << 40);
  EXPECT_LT(large.index(1, 1, 12345), int64_t(1) << 40);
  EXPECT_NE(message_of([&] { large.index(1, 1, int64_t(1) << 40); }).find("of an epoch of"), std::string::npos);
}

TEST(Sampler, EveryOrderIsAsLikely) {
  RandomSampler sampler(4);
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kEpochs = 24000;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 4; ++i) order.push_back(sampler.index(11, epoch, i));
    ++counts[order];
  }
  ASSERT_EQ(counts.size(), 24u);
  double chi = 0;
  for (auto& [order, count] : counts) chi += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_LT(chi, 60);  // 23 degrees of freedom: beyond once in 30,000
}

TEST(Sampler, NeighboursInALargeEpochAreFarApart) {
  constexpr int64_t kSize = 100'000;
  RandomSampler sampler(kSize);
  double distance = 0;
  int fixed = 0;
  for (int64_t i = 0; i + 1 < 10'000; ++i) {
    distance += double(std::abs(sampler.index(1, 0, i) - sampler.index(1, 0, i + 1)));
    fixed += sampler.index(1, 0, i) == i;
  }
  EXPECT_NEAR(distance / 9999 / kSize, 1.0 / 3, 0.02);
  EXPECT_LT(fixed, 5);
}

TEST(Sampler, ProcessesGetAsManyEach) {
  auto all = std::make_shared<SequentialSampler>(10);
  DistributedSampler padded(all, 4, 3), dropped(all, 4, 3, /*drop_last=*/true);
  EXPECT_EQ(padded.size(), 3);
  EXPECT_EQ(dropped.size(), 2);
  EXPECT_EQ(padded.index(0, 0, 1), 7);
  EXPECT_EQ(padded.index(0, 0, 2), 1);
  EXPECT_NE(message_of([&] { DistributedSampler(all, 4, 4); }).find("rank 4 of 4"), std::string::npos);
}

TEST(Random, DrawsAreSpreadEvenlyAndRepeat) {
  Random a(1, 2, 3), again(1, 2, 3), other(1, 2, 4), later(1, 3, 3);
  const uint64_t first = a.bits();
  EXPECT_EQ(again.bits(), first);
  EXPECT_NE(other.bits(), first);
  EXPECT_NE(later.bits(), first);
  EXPECT_NE(a.bits(), first);
  int counts[5] = {};
  double sum = 0;
  for (int i = 0; i < 50'000; ++i) {
    ++counts[a.below(5)];
    sum += a.uniform();
  }
  for (int count : counts) EXPECT_NEAR(count, 10'000, 400);
  EXPECT_NEAR(sum / 50'000, 0.5, 0.01);
  EXPECT_NE(message_of([&] { a.below(0); }).find("0 is not a positive number"), std::string::npos);
}

}  // namespace
}  // namespace sinter::data
