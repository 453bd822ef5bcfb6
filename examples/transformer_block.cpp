// A transformer block written as in a paper, run eagerly, with a table of the ops that ran.
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

struct BlockImpl : nn::Module {
  int64_t heads;
  nn::RMSNorm attention_norm{nullptr}, mlp_norm{nullptr};
  nn::Linear qkv{nullptr}, proj{nullptr}, gate{nullptr}, up{nullptr}, down{nullptr};

  BlockImpl(int64_t width, int64_t heads) : heads(heads) {
    auto linear = [](int64_t in, int64_t out) { return nn::Linear(nn::LinearOptions(in, out).bias(false)); };
    attention_norm = register_module("attention_norm", nn::RMSNorm(width, 1e-6));
    qkv = register_module("qkv", linear(width, 3 * width));
    proj = register_module("proj", linear(width, width));
    mlp_norm = register_module("mlp_norm", nn::RMSNorm(width, 1e-6));
    gate = register_module("gate", linear(width, 4 * width));
    up = register_module("up", linear(width, 4 * width));
    down = register_module("down", linear(4 * width, width));
  }

  Tensor forward(const Tensor& x) {
    Tensor h = x + attention(attention_norm(x));
    Tensor m = mlp_norm(h);
    return h + down(silu(gate(m)) * up(m));
  }

  Tensor attention(const Tensor& x) {
    Dim batch = x.size(0), length = x.size(1), width = x.size(2);
    auto split_heads = [&](const Tensor& t) { return t.view({batch, length, heads, -1}).transpose(1, 2); };
    auto parts = qkv(x).chunk(3, -1);
    Tensor y = scaled_dot_product_attention(split_heads(parts[0]), split_heads(parts[1]), split_heads(parts[2]), {}, 0,
                                            /*is_causal=*/true);
    return proj(y.transpose(1, 2).reshape({batch, length, width}));
  }
};
SINTER_MODULE(Block);

int main() {
  manual_seed(0);
  Block block(128, 4);
  NoGradGuard no_grad;
  Tensor x = randn({2, 64, 128});
  Tensor y = block(x);  // the first run compiles its kernels

  Profile profile;
  y = block(x);
  std::cout << block << "\n\n" << profile.table() << "\n";

  // Causal: a change of the last position leaves the others as they are.
  Tensor changed = x.clone();
  changed.select(1, -1).add_(1);
  Tensor difference = (block(changed) - y).abs();
  double before = difference.slice(1, 0, -1).amax().item<double>(),
         last = difference.select(1, -1).amax().item<double>();
  std::cout << "a change of the last position changes it by " << last << ", those before by " << before << "\n";
  return before == 0 && last > 0 ? 0 : 1;
}
