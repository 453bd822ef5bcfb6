// Trains on batches that worker threads make, stops in the middle of an epoch and goes on from a file; fails unless the
// batches are those of a loader that was never stopped.
#include <sinter/data.h>
#include <sinter/sinter.h>

#include <filesystem>
#include <iostream>

using namespace sinter;

// Points in a square; the target says whether one is inside of a circle.
struct Circle : data::Dataset<Circle> {
  int64_t size() const { return 2000; }
  data::Example<> get(int64_t i) const {
    data::Random random(/*seed=*/1, /*epoch=*/0, i);
    const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1;
    return {tensor({x, y}), tensor(int64_t(x * x + y * y < 0.6))};
  }
};

int main() {
  manual_seed(1);
  auto noisy = Circle().map([](const Tensor& point, data::Random& random) { return point + 0.01 * random.uniform(); });
  auto options = data::DataLoaderOptions(64).workers(2).shuffle(true).seed(7);
  auto loader = data::make_data_loader(noisy, options), whole = data::make_data_loader(noisy, options);

  nn::Sequential net(nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 2));
  optim::AdamW adam(net->parameters(), 1e-2);
  auto step = compile([&](const data::Example<>& batch) { return cross_entropy(net(batch.data), batch.target); });
  double loss = 0;
  for (int epoch = 0; epoch < 8; ++epoch)
    for (auto& batch : *loader) {
      adam.zero_grad();
      Tensor value = step(batch);
      value.backward();
      adam.step();
      loss = value.item<double>();
    }
  std::cout << "loss " << loss << " after " << loader->epoch() << " epochs of " << loader->size() << " batches\n";

  // Ten batches of the ninth epoch, then a new loader that knows the state alone.
  const auto path = (std::filesystem::temp_directory_path() / "sinter_example_loader.safetensors").string();
  int given = 0;
  for ([[maybe_unused]] auto& batch : *loader)
    if (++given == 10) break;
  save_safetensors(path, loader->state_dict());
  auto resumed = data::make_data_loader(noisy, options);
  resumed->load_state_dict(load_safetensors(path));
  std::filesystem::remove(path);

  for (int epoch = 0; epoch < 8; ++epoch)
    for ([[maybe_unused]] auto& batch : *whole) continue;
  auto expected = whole->begin();
  for (int i = 0; i < 10; ++i) ++expected;
  bool same = true;
  for (auto& batch : *resumed) {
    same = same && batch.data.equal(expected->data) && batch.target.equal(expected->target);
    ++expected;
  }
  std::cout << (same ? "the same batches" : "other batches") << " after the stop\n";
  return same && expected == whole->end() && loss < 0.3 ? 0 : 1;
}
