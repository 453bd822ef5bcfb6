// Trains a small network to tell two spirals apart; fails unless 97 % of held-out points come out right.
#include <sinter/sinter.h>

#include <iostream>
#include <numbers>

using namespace sinter;

struct NetImpl : nn::Module {
  nn::Linear in{nullptr}, hidden{nullptr}, out{nullptr};

  explicit NetImpl(int64_t width) {
    in = register_module("in", nn::Linear(2, width));
    hidden = register_module("hidden", nn::Linear(width, width));
    out = register_module("out", nn::Linear(width, 2));
  }
  Tensor forward(const Tensor& x) { return out(relu(hidden(relu(in(x))))); }
};
SINTER_MODULE(Net);

// n points on two interleaved spirals, and which spiral each is on.
std::pair<Tensor, Tensor> spirals(int64_t n) {
  Tensor label = arange(n) % 2;
  Tensor radius = rand({n}) * 0.9 + 0.1;
  Tensor angle = radius * (3 * std::numbers::pi) + label.to(kFloat32) * std::numbers::pi + randn({n}) * 0.08;
  return {stack({radius * cos(angle), radius * sin(angle)}, 1), label};
}

int main() {
  manual_seed(1);
  auto [points, labels] = spirals(1024);
  auto [test_points, test_labels] = spirals(512);

  Net net(64);
  std::cout << net << "\n";
  const int kEpochs = 60, kBatch = 128;
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-2));
  optim::CosineAnnealingLR schedule(optimizer, kEpochs, 1e-4);

  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    Tensor order = randperm(points.size(0));
    Tensor loss;
    for (Tensor batch : order.split(kBatch)) {
      optimizer.zero_grad();
      loss = cross_entropy(net(points.index({batch})), labels.index({batch}));
      loss.backward();
      nn::utils::clip_grad_norm_(net->parameters(), 1.0);
      optimizer.step();
    }
    schedule.step();
    if (epoch % 10 == 9) std::cout << "epoch " << epoch + 1 << "  loss " << loss.item<double>() << "\n";
  }

  NoGradGuard no_grad;
  net->eval();
  Tensor guesses = net(test_points).argmax(1);
  double accuracy = (guesses == test_labels).to(kFloat32).mean().item<double>();
  std::cout << "accuracy on held-out points: " << accuracy << "\n";
  return accuracy >= 0.97 ? 0 : 1;
}
