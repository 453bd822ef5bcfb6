#include <cstdio>
#include <fstream>

#include "tests/idioms/idioms.h"
#ifndef IDIOMS_OF_LIBTORCH
#include "sinter/data.h"
#endif

namespace {

struct Squares : torch::data::datasets::Dataset<Squares> {
  explicit Squares(int64_t size) : size_(size) {}
  torch::data::Example<> get(size_t index) override {
    return {torch::full({2}, static_cast<double>(index)), torch::tensor(static_cast<int64_t>(index * index))};
  }
  torch::optional<size_t> size() const override { return size_; }
  int64_t size_;
};

struct DataIdioms : Idioms {};

TEST_F(DataIdioms, Loaders) {
  IDIOM_DO({
    auto dataset = Squares(5).map(torch::data::transforms::Stack<>());
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(dataset), /*batch_size=*/2);
    std::vector<torch::Tensor> seen;
    for (auto& batch : *loader) {
      seen.push_back(batch.data);
      seen.push_back(batch.target);
    }
    return seen;
  });
  IDIOM_DO({
    auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
        Squares(6).map(torch::data::transforms::Stack<>()),
        torch::data::DataLoaderOptions().batch_size(4).workers(1).drop_last(false));
    torch::Tensor sum = torch::zeros({2});
    for (torch::data::Example<>& batch : *loader) sum += batch.data.sum(0);
    return sum;
  });
  IDIOM_DO({
    auto dataset = Squares(4).map(torch::data::transforms::Stack<>());
    auto loader = torch::data::make_data_loader(std::move(dataset), torch::data::DataLoaderOptions(4));
    int64_t sum = 0;
    for (const auto& batch : *loader) sum += batch.target.sum().item<int64_t>();
    return sum;
  });
  IDIOM_DO({
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        Squares(3).map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions().batch_size(2).enforce_ordering(true));
    auto iterator = loader->begin();
    ++iterator;
    return iterator->target;
  });
  IDIOM_HOLDS(Squares(7).size().value() == 7);
  IDIOM_DO({
    torch::data::Example<> example{x, y};
    return example.data + example.target;
  });
  IDIOM_DO({
    auto dataset = Squares(5);
    return dataset.get(3).target;
  });
}

TEST_F(DataIdioms, Digits) {
  // Two pictures of 28 by 28 in the format of MNIST.
  const std::string root = ::testing::TempDir();
  auto write = [&](const std::string& name, std::vector<unsigned char> bytes, size_t elements) {
    for (size_t i = 0; i < elements; ++i) bytes.push_back(static_cast<unsigned char>(i % 251));
    std::ofstream(root + "/" + name, std::ios::binary).write(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()));
  };
#ifdef IDIOMS_OF_LIBTORCH
  const size_t count = 10000;  // which it insists on
#else
  const size_t count = 20;
#endif
  auto low = static_cast<unsigned char>(count % 256), high = static_cast<unsigned char>(count / 256);
  write("t10k-images-idx3-ubyte", {0, 0, 8, 3, 0, 0, high, low, 0, 0, 0, 28, 0, 0, 0, 28}, count * 28 * 28);
  write("t10k-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, high, low}, count);
  IDIOM_DO({
    torch::data::datasets::MNIST dataset(root, torch::data::datasets::MNIST::Mode::kTest);
    return std::make_tuple(dataset.get(7).data.sum(), dataset.get(7).target, dataset.images()[3].sizes().vec());
  });
  IDIOM_DO({
    auto dataset = torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTest)
                       .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                       .map(torch::data::transforms::Stack<>());
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(dataset), 16);
    for (auto& batch : *loader) return std::make_tuple(batch.data.mean({1, 2, 3}), batch.target);
    return std::make_tuple(x, y);
  });
  std::remove((root + "/t10k-images-idx3-ubyte").c_str());
  std::remove((root + "/t10k-labels-idx1-ubyte").c_str());
}

}  // namespace
