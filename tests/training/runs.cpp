#include "tests/training/runs.h"

#include "sinter/capture/entry.h"
#include "sinter/nn/recurrent.h"

namespace sinter::training_runs {

namespace {

constexpr int kSteps = 200;

// Lehmer's generator.
class Numbers {
 public:
  explicit Numbers(int64_t seed) : state_(seed) {}
  int64_t next() { return state_ = state_ * 48271 % 2147483647; }
  int64_t below(int64_t end) { return next() % end; }
  // From -1 to 1.
  std::vector<double> uniform(int64_t count) {
    std::vector<double> out;
    while (int64_t(out.size()) < count) out.push_back(double(next()) / (1 << 30) - 1);
    return out;
  }

 private:
  int64_t state_;
};

// --- models

struct Net : nn::Module {
  virtual Tensor forward(const Tensor& x) = 0;
};

struct Mlp : Net {
  nn::Linear first = register_module("first", nn::Linear(16, 64)),
             second = register_module("second", nn::Linear(64, 64)), last = register_module("last", nn::Linear(64, 8));
  Tensor forward(const Tensor& x) override { return last(gelu(second(relu(first(x))))); }
};

struct Cnn : Net {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)));
  nn::BatchNorm2d norm1 = register_module("norm1", nn::BatchNorm2d(8));
  nn::Conv2d conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(8, 16, 3).stride(2).padding(1).bias(false)));
  nn::BatchNorm2d norm2 = register_module("norm2", nn::BatchNorm2d(16));
  nn::Linear head = register_module("head", nn::Linear(16, 8));
  Tensor forward(const Tensor& x) override {
    Tensor h = relu(norm2(conv2(max_pool2d(relu(norm1(conv1(x))), 2))));
    return head(adaptive_avg_pool2d(h, 1).flatten(1));
  }
};

struct BlockImpl : nn::Module {
  nn::LayerNorm norm1 = register_module("norm1", nn::LayerNorm(32));
  nn::Linear qkv = register_module("qkv", nn::Linear(32, 96)), out = register_module("out", nn::Linear(32, 32));
  nn::LayerNorm norm2 = register_module("norm2", nn::LayerNorm(32));
  nn::Linear up = register_module("up", nn::Linear(32, 64)), down = register_module("down", nn::Linear(64, 32));
  Tensor forward(const Tensor& x) {
    Dim n = x.size(0), length = x.size(1);
    TensorList parts = qkv(norm1(x)).view({n, length, 3, 4, 8}).permute({2, 0, 3, 1, 4}).unbind(0);
    Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    Tensor h = x + out(y.transpose(1, 2).reshape({n, length, 32}));
    return h + down(gelu(up(norm2(h)), "tanh"));
  }
};
SINTER_MODULE(Block);

struct Gpt : Net {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(32, 32)),
                positions = register_module("positions", nn::Embedding(16, 32));
  Block block1 = register_module("block1", Block()), block2 = register_module("block2", Block());
  nn::LayerNorm norm = register_module("norm", nn::LayerNorm(32));
  nn::Linear head = register_module("head", nn::Linear(nn::LinearOptions(32, 32).bias(false)));
  Tensor forward(const Tensor& x) override {
    Tensor h = tokens(x) + positions(arange(16, TensorOptions(kInt64).device(x.device())));
    return head(norm(block2(block1(h)))).flatten(0, 1);
  }
};

struct Vit : Net {
  Tensor token = register_parameter("token", zeros({1, 1, 32})),
         positions = register_parameter("positions", zeros({1, 5, 32}));
  nn::Conv2d patches = register_module("patches", nn::Conv2d(nn::Conv2dOptions(3, 32, 4).stride(4)));
  nn::TransformerEncoderLayer layer1 = register_module("layer1", layer()), layer2 = register_module("layer2", layer());
  nn::Linear head = register_module("head", nn::Linear(32, 8));
  static nn::TransformerEncoderLayer layer() {
    return nn::TransformerEncoderLayer(nn::TransformerEncoderLayerOptions(32, 4)
                                           .dim_feedforward(64)
                                           .dropout(0)
                                           .activation("gelu")
                                           .batch_first(true)
                                           .norm_first(true));
  }
  Tensor forward(const Tensor& x) override {
    Tensor h = patches(x).flatten(2).transpose(1, 2);
    h = cat({token.expand({h.size(0), -1, -1}), h}, 1) + positions;
    return head(layer2(layer1(h)).select(1, 0));
  }
};

struct Lstm : Net {
  nn::Embedding tokens = register_module("tokens", nn::Embedding(32, 16));
  nn::LSTM lstm = register_module("lstm", nn::LSTM(nn::LSTMOptions(16, 32).batch_first(true)));
  nn::Linear head = register_module("head", nn::Linear(32, 32));
  Tensor forward(const Tensor& x) override { return head(std::get<0>(lstm(tokens(x)))).flatten(0, 1); }
};

// Matrices and what is larger are drawn; of vectors biases are zeros, and weights ones.
void fill(nn::Module& module) {
  NoGradGuard no_grad;
  Numbers numbers(1);
  for (auto& [name, p] : module.named_parameters()) {
    int64_t count = p.numel();
    if (p.dim() > 1)
      p.copy_(tensor(numbers.uniform(count)).view(p.sizes()) *
              std::sqrt(3 * double(int64_t(p.size(0))) / double(count)));
    else
      p.fill_(name.find("bias") != std::string::npos ? 0 : 1);
  }
}

// --- batches

struct Batch {
  Tensor x, y;
};

// Labels are the octants of the first three coordinates.
Batch points(Numbers& numbers) {
  auto x = numbers.uniform(32 * 16);
  std::vector<int64_t> y;
  for (size_t i = 0; i < x.size(); i += 16) y.push_back((x[i] > 0) + 2 * (x[i + 1] > 0) + 4 * (x[i + 2] > 0));
  return {tensor(x).view({32, 16}).to(kFloat32), tensor(y)};
}

// Noise with a bright square in one of four corners, for half of the labels in another colour.
Batch images(Numbers& numbers) {
  std::vector<int64_t> y;
  while (y.size() < 16) y.push_back(numbers.below(8));
  Tensor x = tensor(numbers.uniform(16 * 3 * 8 * 8)).view({16, 3, 8, 8});
  for (int64_t i = 0; i < 16; ++i) {
    int64_t label = y[size_t(i)], top = 4 * (label % 2), left = 4 * (label / 2 % 2);
    x.select(0, i).select(0, label / 4).slice(0, top, top + 4).slice(1, left, left + 4) += 1;
  }
  return {x.to(kFloat32), tensor(y)};
}

// Each token is mostly three times the one before, and one more.
Batch text(Numbers& numbers) {
  std::vector<int64_t> tokens;
  for (int row = 0; row < 8; ++row) {
    tokens.push_back(numbers.below(32));
    for (int i = 1; i < 17; ++i) tokens.push_back((3 * tokens.back() + 1 + (numbers.below(8) == 0)) % 32);
  }
  Tensor all = tensor(tokens).view({8, 17});
  return {all.slice(1, 0, 16).contiguous(), all.slice(1, 1, 17).flatten()};
}

struct Run {
  std::string name;
  std::function<std::shared_ptr<Net>()> make;
  std::function<Batch(Numbers&)> batch;
};

template <class M>
Run run_of(const char* name, Batch (*batch)(Numbers&)) {
  return {name, [] { return std::make_shared<M>(); }, batch};
}

const std::vector<Run>& runs() {
  static const std::vector<Run> all = {run_of<Mlp>("mlp", points), run_of<Cnn>("cnn", images), run_of<Gpt>("gpt", text),
                                       run_of<Vit>("vit", images), run_of<Lstm>("lstm", text)};
  return all;
}

std::vector<double> recorded(const std::string& name) {
  static const SafeTensorsFile file(SINTER_TEST_DATA "/recorded/training_runs.safetensors");
  return file.tensor(name).to_vector<double>();
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    double here = std::abs(a[i] - b[i]) / std::abs(b[i]);
    worst = here <= worst ? worst : here;  // not a number is the worst
  }
  return worst;
}

std::vector<double> train(const Run& run, Precision precision, How how, Device device) {
  auto model = run.make();
  fill(*model);
  model->to(device);
  TensorList parameters = model->parameters();
  optim::AdamW optimizer(parameters, optim::AdamWOptions(1e-3).weight_decay(0.1));
  std::function<Tensor(const Tensor&, const Tensor&)> step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss;
    {
      AutocastGuard autocast(device.type(), kBFloat16, precision == Precision::kAutocast);
      loss = cross_entropy(model->forward(x).to(kFloat32), y);
    }
    loss.backward();
    nn::utils::clip_grad_norm_(parameters, 1.0);
    optimizer.step();
    return loss.detach();
  };
  auto compiled = compile(step, {.fullgraph = true});
  Numbers numbers(2);
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    auto [x, y] = run.batch(numbers);
    x = x.to(device), y = y.to(device);
    losses.push_back((how == How::kCompiled ? compiled(x, y) : step(x, y)).item<double>());
  }
  // The first call finds no moments to begin with.
  EXPECT_LE(compiled.function().entries().size(), 2u);
  return losses;
}

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    for (auto& run : runs()) out.push_back(run.name);
    return out;
  }();
  return all;
}

void expect_recorded_losses(const std::string& name, Precision precision, How how, Device device,
                            double autocast_factor) {
  auto run = std::find_if(runs().begin(), runs().end(), [&](auto& r) { return r.name == name; });
  ASSERT_NE(run, runs().end());
  auto losses = train(*run, precision, how, device);
  bool autocast = precision == Precision::kAutocast;
  auto expected = recorded(name + (autocast ? "/autocast" : "/f32"));
  ASSERT_EQ(losses.size(), expected.size());
  double allowed = autocast ? autocast_factor * distance(recorded(name + "/autocast_compiled"), expected) : 1e-4;
  EXPECT_LT(distance(losses, expected), allowed) << "loss " << losses.front() << " to " << losses.back()
                                                 << ", recorded " << expected.front() << " to " << expected.back();
  ::testing::Test::RecordProperty("distance", format("{}", distance(losses, expected)));
}

}  // namespace sinter::training_runs
