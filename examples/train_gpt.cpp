// Trains a small GPT on the bytes of this project's own documentation, each step one compiled program with its optimiser, and
// lets it write on; fails unless the loss falls below 2.2 nats a byte. --smoke takes 40 steps and asks for 3.5.
#include <sinter/sinter.h>

#include <fstream>
#include <iostream>
#include <iterator>

using namespace sinter;

constexpr int64_t kWords = 256, kContext = 64, kWidth = 128, kHeads = 4, kLayers = 3, kBatch = 16;

struct BlockImpl : nn::Module {
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};

  BlockImpl() {
    norm1 = register_module("norm1", nn::LayerNorm(kWidth));
    qkv = register_module("qkv", nn::Linear(kWidth, 3 * kWidth));
    out = register_module("out", nn::Linear(kWidth, kWidth));
    norm2 = register_module("norm2", nn::LayerNorm(kWidth));
    up = register_module("up", nn::Linear(kWidth, 4 * kWidth));
    down = register_module("down", nn::Linear(4 * kWidth, kWidth));
  }
  Tensor forward(const Tensor& x) {
    const Dim batch = x.size(0), length = x.size(1);
    // [3, batch, heads, length, width of a head]
    Tensor parts = qkv(norm1(x)).view({batch, length, 3, kHeads, kWidth / kHeads}).permute({2, 0, 3, 1, 4});
    Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    Tensor h = x + out(y.transpose(1, 2).reshape({batch, length, kWidth}));
    return h + down(gelu(up(norm2(h))));
  }
};
SINTER_MODULE(Block);

struct GptImpl : nn::Module {
  nn::Embedding tokens{nullptr}, positions{nullptr};
  nn::ModuleListOf<Block> blocks;
  nn::LayerNorm norm{nullptr};
  nn::Linear head{nullptr};

  GptImpl() {
    tokens = register_module("tokens", nn::Embedding(kWords, kWidth));
    positions = register_module("positions", nn::Embedding(kContext, kWidth));
    register_module("blocks", blocks);
    for (int64_t i = 0; i < kLayers; ++i) blocks->push_back(Block());
    norm = register_module("norm", nn::LayerNorm(kWidth));
    head = register_module("head", nn::Linear(kWidth, kWords));
    NoGradGuard no_grad;
    for (auto& table : {tokens->weight, positions->weight}) nn::init::normal_(table, 0, 0.1);
  }
  Tensor forward(const Tensor& x) {
    Tensor h = tokens(x) + positions(arange(x.size(1)));
    for (auto& block : *blocks) h = block(h);
    return head(norm(h));
  }
};
SINTER_MODULE(Gpt);

std::vector<int64_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<int64_t> out;
  for (auto at = std::istreambuf_iterator<char>(file); at != std::istreambuf_iterator<char>(); ++at)
    out.push_back(static_cast<unsigned char>(*at));
  return out;
}

// Draws one byte after another; the program of a full context is used for all.
std::string write_on(const Gpt& gpt, std::string text, int64_t count) {
  NoGradGuard no_grad;
  auto scores = compile([gpt](const Tensor& context) { return softmax(gpt(context)[0] / 0.7, -1); });
  for (int64_t i = 0; i < count; ++i) {
    const size_t begin = text.size() > size_t(kContext) ? text.size() - size_t(kContext) : 0;
    std::vector<int64_t> context(text.begin() + int64_t(begin), text.end());
    const int64_t last = int64_t(context.size()) - 1;
    context.resize(size_t(kContext));
    for (auto& byte : context) byte &= 255;
    text += char(multinomial(scores(tensor(context).unsqueeze(0))[last], 1).item<int64_t>());
  }
  return text;
}

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::string(argv[1]) == "--smoke";
  const int steps = smoke ? 40 : 700;
  manual_seed(1);
  std::vector<int64_t> text;
  for (const char* path : {"docs/guide.md", "docs/architecture.md"})
    for (int64_t byte : bytes_of(path)) text.push_back(byte);
  Tensor corpus = tensor(text);
  std::cout << text.size() << " bytes to learn from\n";

  Gpt gpt;
  optim::AdamW optimizer(gpt->parameters(), optim::AdamWOptions(2e-3).weight_decay(0.1));
  optim::OneCycleLR schedule(optimizer, optim::OneCycleLROptions(2e-3, steps).pct_start(0.1));
  // A batch is drawn inside the program too: a row of places for each of kBatch beginnings.
  const int64_t last = corpus.size(0) - kContext - 1;
  auto step = compile([&] {
    Tensor places = randint(last, {kBatch, 1}) + arange(kContext + 1);
    Tensor batch = corpus.index({places});
    optimizer.zero_grad();
    Tensor loss = cross_entropy(gpt(batch.slice(1, 0, kContext)).flatten(0, 1), batch.slice(1, 1).flatten());
    loss.backward();
    nn::utils::clip_grad_norm_(gpt->parameters(), 1.0);
    optimizer.step();
    return loss.detach();
  });
  double mean = 0;  // of the last steps
  for (int i = 1; i <= steps; ++i) {
    const double loss = step().item<double>();
    mean = i == 1 ? loss : 0.9 * mean + 0.1 * loss;
    schedule.step();
    if (i % 100 == 0) std::cout << "step " << i << "  loss " << mean << "\n";
  }
  gpt->eval();
  std::cout << write_on(gpt, "A compiled function ", smoke ? 20 : 200) << "\n";
  return mean < (smoke ? 3.5 : 2.2) ? 0 : 1;
}
