#pragma once
// A decoder as a user would write it, of the sizes of gpt-tiny, whose blocks may be checkpointed by hand.
#include "sinter/sinter.h"

namespace sinter::bench {

struct PlainBlockImpl : nn::Module {
  PlainBlockImpl(int64_t width, int64_t heads) : heads(heads) {
    norm_1 = register_module("norm_1", nn::LayerNorm(nn::LayerNormOptions(width)));
    norm_2 = register_module("norm_2", nn::LayerNorm(nn::LayerNormOptions(width)));
    qkv = register_module("qkv", nn::Linear(width, 3 * width));
    out = register_module("out", nn::Linear(width, width));
    up = register_module("up", nn::Linear(width, 4 * width));
    down = register_module("down", nn::Linear(4 * width, width));
  }
  Tensor forward(const Tensor& x) {
    TensorList parts = chunk(qkv(norm_1(x)), 3, -1);
    for (auto& part : parts) part = part.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
    Tensor seen = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true);
    Tensor h = x + out(seen.transpose(1, 2).reshape(x.sizes()));
    return h + down(gelu(up(norm_2(h)), "tanh"));
  }
  int64_t heads;
  nn::LayerNorm norm_1{nullptr}, norm_2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
SINTER_MODULE(PlainBlock);

struct PlainGptImpl : nn::Module {
  PlainGptImpl(int64_t layers, bool checkpointed) : checkpointed(checkpointed) {
    constexpr int64_t kWidth = 256, kVocabulary = 5000, kPositions = 1024;
    words = register_module("words", nn::Embedding(kVocabulary, kWidth));
    positions = register_module("positions", nn::Embedding(kPositions, kWidth));
    for (int64_t i = 0; i < layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), PlainBlock(kWidth, 4)));
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions(kWidth)));
  }
  Tensor forward(const Tensor& ids) {
    Tensor x = words(ids) + positions(arange(ids.size(1), TensorOptions(kInt64).device(ids.device())));
    for (auto& block : blocks) {
      auto run = [&block](const Tensor& x) { return block->forward(x); };
      x = checkpointed ? checkpoint(run, x) : run(x);
    }
    return linear(norm(x), words->weight);
  }
  bool checkpointed;
  nn::Embedding words{nullptr}, positions{nullptr};
  std::vector<PlainBlock> blocks;
  nn::LayerNorm norm{nullptr};
};
SINTER_MODULE(PlainGpt);

}  // namespace sinter::bench
