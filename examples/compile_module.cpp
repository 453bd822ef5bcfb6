// Modules: compiled whole, or one layer of a model in place. Both train as before.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

namespace {

double difference(const Tensor& a, const Tensor& b) { return (a - b).abs().amax().item<double>(); }

}  // namespace

int main() {
  manual_seed(0);
  nn::Sequential net(nn::Linear(8, 64), nn::Tanh(), nn::Linear(64, 1));
  Tensor x = randn({128, 8}), target = sin(x.sum(1, true));
  Tensor eager = net(x);

  // Whole. Parameters are read where they are, so training changes what the next call gives. backward() runs a compiled
  // program too.
  auto fast = compile(net);
  bool same = difference(fast(x), eager) < 1e-5;
  optim::AdamW adam(net->parameters(), 1e-2);
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    adam.zero_grad();
    Tensor loss = mse_loss(fast(x), target);
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  std::cout << "loss " << first << " -> " << last << "\n";

  // A part: from now on this layer is compiled wherever the model calls it; the rest runs as it is.
  nn::Linear part(8, 8);
  nn::Sequential model(part, nn::ReLU());
  Tensor before = model(x);
  part->compile();
  same = same && difference(model(x), before) < 1e-5;
  std::cout << "compiled and eager agree: " << (same ? "yes" : "no") << "\n";
  return same && last < 0.5 * first ? 0 : 1;
}
