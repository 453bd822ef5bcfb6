// Trains a small CNN to read handwritten digits of 8 x 8 pixels, each step one compiled program with its optimiser; fails unless
// 97 % of held-out digits come out right. --smoke takes two epochs and asks for 80 %.
#include <sinter/data.h>
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

struct NetImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  nn::Linear out{nullptr};

  NetImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1).bias(false)));
    norm1 = register_module("norm1", nn::BatchNorm2d(32));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1).bias(false)));
    norm2 = register_module("norm2", nn::BatchNorm2d(64));
    out = register_module("out", nn::Linear(64 * 4 * 4, 10));
  }
  Tensor forward(const Tensor& x) {
    Tensor h = relu(norm2(conv2(relu(norm1(conv1(x))))));
    return out(max_pool2d(h, 2).flatten(1));
  }
};
SINTER_MODULE(Net);

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::string(argv[1]) == "--smoke";
  manual_seed(1);
  NamedTensors digits = data::load_npz("assets/digits/digits.npz");  // images, labels
  Tensor images = digits[0].second.to(kFloat32).unsqueeze(1) / 8 - 1, labels = digits[1].second.to(kInt64);
  Tensor order = randperm(images.size(0));  // the file goes writer by writer
  images = images.index({order}), labels = labels.index({order});
  const int64_t kTrain = 1500, kBatch = 100, epochs = smoke ? 2 : 12;

  Net net;
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(3e-3).weight_decay(0.05));
  optim::CosineAnnealingLR schedule(optimizer, epochs * (kTrain / kBatch));
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  });
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    Tensor loss;
    for (Tensor batch : randperm(kTrain).split(kBatch)) {
      loss = step(images.index({batch}), labels.index({batch}));
      schedule.step();
    }
    std::cout << "epoch " << epoch + 1 << "  loss " << loss.item<double>() << "\n";
  }

  NoGradGuard no_grad;
  net->eval();
  Tensor guesses = net(images.slice(0, kTrain)).argmax(1);
  double accuracy = (guesses == labels.slice(0, kTrain)).to(kFloat32).mean().item<double>();
  std::cout << "accuracy on " << guesses.size(0) << " held-out digits: " << accuracy << "\n";
  return accuracy >= (smoke ? 0.8 : 0.97) ? 0 : 1;
}
