// A diffusion transformer that draws handwritten digits of 8 x 8 pixels. It learns which way leads from noise to a digit
// (straight lines between both, so that a drawing takes few steps); each training step is one compiled program with its
// optimiser and its random numbers. Writes ten rows of the ten digits to digits.png, or the file that is named, and fails
// unless of 100 drawings 80 look most like a real digit of their kind. --smoke takes 40 steps and asks for a falling loss only.
#include <sinter/data.h>
#include <sinter/sinter.h>

#include <iostream>

using namespace sinter;

constexpr int64_t kWidth = 64, kHeads = 4, kLayers = 3, kPatches = 16, kPatch = 4, kBatch = 128;

// [n, 8, 8] as sixteen patches of 2 x 2, and back.
Tensor to_patches(const Tensor& x) { return x.reshape({-1, 4, 2, 4, 2}).permute({0, 1, 3, 2, 4}).reshape({-1, 16, 4}); }
Tensor to_images(const Tensor& x) { return x.reshape({-1, 4, 4, 2, 2}).permute({0, 1, 3, 2, 4}).reshape({-1, 8, 8}); }

// Attention and a network of its own for each patch; both are scaled and shifted by what is to be drawn and how far it is.
struct BlockImpl : nn::Module {
  nn::LayerNorm norm{nullptr};
  nn::Linear condition{nullptr}, qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};

  BlockImpl() {
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions(kWidth).elementwise_affine(false)));
    condition = register_module("condition", nn::Linear(kWidth, 6 * kWidth));
    qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    up = register_module("up", nn::Linear(kWidth, 4 * kWidth));
    down = register_module("down", nn::Linear(4 * kWidth, kWidth));
    // At first a block changes nothing.
    nn::init::zeros_(condition->weight);
    nn::init::zeros_(condition->bias);
  }
  Tensor attend(const Tensor& x) {
    Tensor parts = qkv(x).view({x.size(0), kPatches, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    return out(y.transpose(1, 2).reshape({x.size(0), kPatches, kWidth}));
  }
  Tensor forward(const Tensor& x, const Tensor& wanted) {
    TensorList c = condition(silu(wanted)).unsqueeze(1).chunk(6, -1);
    Tensor h = x + c[2] * attend(norm(x) * (1 + c[0]) + c[1]);
    return h + c[5] * down(gelu(up(norm(h) * (1 + c[3]) + c[4])));
  }
};
SINTER_MODULE(Block);

struct DrawerImpl : nn::Module {
  nn::Linear in{nullptr}, time1{nullptr}, time2{nullptr}, out{nullptr};
  nn::Embedding digits{nullptr}, places{nullptr};
  nn::ModuleListOf<Block> blocks;
  nn::LayerNorm norm{nullptr};

  DrawerImpl() {
    in = register_module("in", nn::Linear(kPatch, kWidth));
    places = register_module("places", nn::Embedding(kPatches, kWidth));
    digits = register_module("digits", nn::Embedding(10, kWidth));
    time1 = register_module("time1", nn::Linear(kWidth, kWidth));
    time2 = register_module("time2", nn::Linear(kWidth, kWidth));
    register_module("blocks", blocks);
    for (int64_t i = 0; i < kLayers; ++i) blocks->push_back(Block());
    norm = register_module("norm", nn::LayerNorm(kWidth));
    out = register_module("out", nn::Linear(kWidth, kPatch));
  }
  // The direction of a drawing x[n, 16, 4] of these digits [n] at the times [n], from 0 (noise) to 1.
  Tensor forward(const Tensor& x, const Tensor& time, const Tensor& digit) {
    Tensor waves = time.unsqueeze(1) * exp(arange(kWidth / 2) * (6.0 / (kWidth / 2)));
    Tensor wanted = time2(silu(time1(cat({sin(waves), cos(waves)}, 1)))) + digits(digit);
    Tensor h = in(x) + places(arange(kPatches));
    for (auto& block : *blocks) h = block(h, wanted);
    return out(norm(h));
  }
};
SINTER_MODULE(Drawer);

// Drawings of these digits: from noise, step by step.
Tensor draw(Drawer& drawer, const Tensor& digits, int64_t steps) {
  NoGradGuard no_grad;
  auto direction = compile([&](const Tensor& x, const Tensor& time) { return drawer(x, time, digits); });
  Tensor x = randn({digits.size(0), kPatches, kPatch});
  for (int64_t i = 0; i < steps; ++i)
    x = x + direction(x, full({digits.size(0)}, double(i) / double(steps))) / double(steps);
  return to_images(x);
}

// u8: a column for each of the ten digits, pixels four times as large, with a line between.
Tensor sheet(const Tensor& images) {
  Tensor pixels = ((images + 1) * 127.5).clamp(0, 255).to(kUInt8);
  Tensor large = pixels.unsqueeze(2).unsqueeze(4).expand({-1, 8, 4, 8, 4}).reshape({-1, 32, 32});
  Tensor framed = constant_pad_nd(large, {1, 1, 1, 1}, 64);
  return framed.reshape({-1, 10, 34, 34}).permute({0, 2, 1, 3}).reshape({-1, 340});
}

// The part of the drawings whose nearest real image shows the same digit.
double recognised(const Tensor& drawings, const Tensor& wanted, const Tensor& images, const Tensor& labels) {
  Tensor a = drawings.flatten(1), b = images.flatten(1);
  Tensor distance = b.square().sum({1}).unsqueeze(0) - 2 * matmul(a, b.t());
  Tensor nearest = labels.index({distance.argmin(1)});
  return (nearest == wanted).to(kFloat32).mean().item<double>();
}

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::string(argv[1]) == "--smoke";
  const std::string path = argc > 1 && !smoke ? argv[1] : "digits.png";
  const int steps = smoke ? 40 : 1000;
  manual_seed(1);
  NamedTensors file = data::load_npz("assets/digits/digits.npz");  // images, labels
  Tensor images = file[0].second.to(kFloat32) / 8 - 1, labels = file[1].second.to(kInt64);
  Tensor patches = to_patches(images);

  Drawer drawer;
  optim::AdamW optimizer(drawer->parameters(), optim::AdamWOptions(2e-3).weight_decay(0.01));
  optim::OneCycleLR schedule(optimizer, optim::OneCycleLROptions(2e-3, steps).pct_start(0.1));
  auto step = compile([&] {
    Tensor chosen = randint(images.size(0), {kBatch});
    Tensor digit = patches.index({chosen}), noise = randn({kBatch, kPatches, kPatch}), time = rand({kBatch});
    Tensor at = time.view({-1, 1, 1});
    optimizer.zero_grad();
    Tensor guess = drawer(at * digit + (1 - at) * noise, time, labels.index({chosen}));
    Tensor loss = mse_loss(guess, digit - noise);
    loss.backward();
    nn::utils::clip_grad_norm_(drawer->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  });
  double first = 0, mean = 0;
  for (int i = 1; i <= steps; ++i) {
    const double loss = step().item<double>();
    if (i == 1) first = mean = loss;
    mean = 0.95 * mean + 0.05 * loss;
    schedule.step();
    if (i % 250 == 0) std::cout << "step " << i << "  loss " << mean << "\n";
  }
  drawer->eval();
  Tensor digits = arange(100) % 10;
  Tensor drawings = draw(drawer, digits, smoke ? 4 : 40);
  if (smoke) return mean < 0.8 * first ? 0 : 1;
  data::write_png(path, sheet(drawings));
  const double part = recognised(drawings, digits, images, labels);
  std::cout << "drawings that look like their digit: " << part << ", in " << path << "\n";
  return part >= 0.8 ? 0 : 1;
}
