// A program as LibTorch's users write it: not a word of it is Sinter's. It compiles with LibTorch, too.
#include <torch/torch.h>

#include <iostream>

struct NetImpl : torch::nn::Module {
  NetImpl() : fc1(4, 32), fc2(register_module("fc2", torch::nn::Linear(32, 1))) { register_module("fc1", fc1); }
  torch::Tensor forward(torch::Tensor x) { return fc2->forward(torch::tanh(fc1->forward(x))); }
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(Net);

int main() {
  torch::manual_seed(0);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  Net net;
  net->to(device);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));
  torch::Tensor x = torch::randn({256, 4}, device), y = torch::sin(x.sum(1, /*keepdim=*/true)), loss;
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    loss = torch::mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
  }
  torch::serialize::OutputArchive archive;
  net->save(archive);
  archive.save_to("net.pt");
  TORCH_CHECK(loss.item<float>() < 0.5, "the loss is still ", loss.item<float>());
  std::cout << "loss " << loss.item<float>() << ", " << net << "\n";
}
