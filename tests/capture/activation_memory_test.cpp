// What compiled training keeps for gradients: the minimum cut in a whole step, budgets, checkpoint(), and gradients themselves.
#include <gtest/gtest.h>

#include "sinter/base/error.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/sinter.h"
#include "tests/support/error_of.h"

namespace sinter {
namespace {

// A decoder of a few blocks, as anybody would write it.
struct GptOptions {
  int64_t layers = 3, width = 64, heads = 4, vocabulary = 101;
  double dropout = 0;
  bool checkpointed = false;
};

struct BlockImpl : nn::Module {
  BlockImpl(const GptOptions& o) : options(o) {
    norm_1 = register_module("norm_1", nn::LayerNorm(nn::LayerNormOptions(o.width)));
    norm_2 = register_module("norm_2", nn::LayerNorm(nn::LayerNormOptions(o.width)));
    qkv = register_module("qkv", nn::Linear(o.width, 3 * o.width));
    out = register_module("out", nn::Linear(o.width, o.width));
    up = register_module("up", nn::Linear(o.width, 4 * o.width));
    down = register_module("down", nn::Linear(4 * o.width, o.width));
  }
  Tensor forward(const Tensor& x) {
    auto heads = [&](const Tensor& t) { return t.reshape({t.size(0), t.size(1), options.heads, -1}).transpose(1, 2); };
    TensorList parts = chunk(qkv(norm_1(x)), 3, -1);
    Tensor a = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), {}, 0.0, true);
    Tensor h = x + dropout(out(a.transpose(1, 2).reshape(x.sizes())), options.dropout, options.dropout > 0);
    return h + dropout(down(gelu(up(norm_2(h)))), options.dropout, options.dropout > 0);
  }
  GptOptions options;
  nn::LayerNorm norm_1{nullptr}, norm_2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
SINTER_MODULE(Block);

struct GptImpl : nn::Module {
  explicit GptImpl(const GptOptions& o) : options(o) {
    embedding = register_module("embedding", nn::Embedding(o.vocabulary, o.width));
    for (int64_t i = 0; i < o.layers; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block(o)));
    head = register_module("head", nn::Linear(o.width, o.vocabulary));
  }
  Tensor loss(const Tensor& ids, const Tensor& targets) {
    Tensor x = embedding(ids);
    for (auto& block : blocks) {
      auto run = [&block](const Tensor& x) { return block->forward(x); };
      x = options.checkpointed ? checkpoint(run, x) : run(x);
    }
    return cross_entropy(head(x).reshape({-1, options.vocabulary}), targets.reshape({-1}));
  }
  GptOptions options;
  nn::Embedding embedding{nullptr};
  std::vector<Block> blocks;
  nn::Linear head{nullptr};
};
SINTER_MODULE(Gpt);

enum class How { kEager, kLoss, kWhole };

struct Outcome {
  TensorList parameters, grads;
  double loss = 0;
  int64_t peak = 0;             // beyond the weights
  int64_t arena = 0, kept = 0;  // of a whole step: as predicted
};

// Two steps of training.
Outcome train(How how, const GptOptions& o, double share = 1, int64_t tokens = 32) {
  manual_seed(11);
  Gpt model(o);
  model->train();
  optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-3));
  Tensor ids = randint(o.vocabulary, {2, tokens}), targets = randint(o.vocabulary, {2, tokens});
  CompileOptions options{.dynamic = Dynamic::kFalse};
  options.options["activation_memory"] = share;
  std::function<Tensor(const Tensor&, const Tensor&)> loss = [&](const Tensor& x, const Tensor& y) { return model->loss(x, y); };
  auto compiled_loss = compile(loss, options);
  std::function<Tensor(const Tensor&, const Tensor&)> step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor l = how == How::kLoss ? compiled_loss(x, y) : loss(x, y);
    l.backward();
    optimizer.step();
    return l.detach();
  };
  auto compiled_step = compile(step, options);
  Outcome out;
  const int64_t before = cpu_memory_stats().allocated;
  for (int i = 0; i < 3; ++i) {
    reset_cpu_memory_peak();
    Tensor l = how == How::kWhole ? compiled_step(ids, targets) : step(ids, targets);
    out.loss = l.item<double>();
    out.peak = cpu_memory_stats().peak - before;
  }
  for (auto& parameter : model->parameters()) {
    out.parameters.push_back(parameter.detach());
    out.grads.push_back(parameter.grad());
  }
  if (how == How::kWhole) {
    auto explained = capture::explain(compiled_step.function());
    out.arena = explained.programs[0].reports[0]->arena_bytes;
    for (auto& point : explained.programs[0].activations[0])
      if (point.share == share) out.kept = point.bytes;
  }
  return out;
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.loss, b.loss);
  for (size_t i = 0; i < a.grads.size(); ++i) {
    EXPECT_TRUE(equal(a.grads[i], b.grads[i])) << "gradient " << i;
    EXPECT_TRUE(equal(a.parameters[i], b.parameters[i])) << "parameter " << i;
  }
}

void expect_close(const Outcome& a, const Outcome& b) {
  EXPECT_NEAR(a.loss, b.loss, 1e-4);
  for (size_t i = 0; i < a.grads.size(); ++i) EXPECT_TRUE(allclose(a.grads[i], b.grads[i], 1e-3, 1e-5)) << "gradient " << i;
}

TEST(ActivationMemory, BudgetsChangeNoBit) {
  for (How how : {How::kLoss, How::kWhole}) {
    Outcome whole = train(how, {});
    expect_close(whole, train(How::kEager, {}));
    for (double share : {0.75, 0.5, 0.25, 0.0}) {
      SCOPED_TRACE(share);
      expect_same(whole, train(how, {}, share));
    }
  }
}

TEST(ActivationMemory, LessIsKeptAndThePeakFalls) {
  GptOptions o{.layers = 6};
  Outcome most = train(How::kWhole, o, 1, 256);
  Outcome half = train(How::kWhole, o, 0.5, 256);
  Outcome quarter = train(How::kWhole, o, 0.25, 256);
  EXPECT_LE(double(half.kept), 0.5 * double(most.kept));
  EXPECT_LE(double(quarter.kept), 0.25 * double(most.kept));
  EXPECT_LT(double(half.peak), 0.75 * double(most.peak));
  EXPECT_LT(quarter.peak, half.peak);
  EXPECT_LT(half.arena, most.arena);
}

TEST(ActivationMemory, OfALossTheSameHolds) {
  GptOptions o{.layers = 6};
  Outcome most = train(How::kLoss, o, 1, 256), half = train(How::kLoss, o, 0.5, 256);
  EXPECT_LT(double(half.peak), 0.8 * double(most.peak));
}

TEST(ActivationMemory, CheckpointedBlocksAreComputedAgainInCompiledPrograms) {
  GptOptions plain{.layers = 6}, checkpointed{.layers = 6, .checkpointed = true};
  for (How how : {How::kEager, How::kLoss, How::kWhole}) {
    Outcome all = train(how, plain, 1, 256), less = train(how, checkpointed, 1, 256);
    expect_same(all, less);
    // Apart, forward and backward have an arena each.
    EXPECT_LT(double(less.peak), (how == How::kLoss ? 0.9 : 0.7) * double(all.peak)) << int(how);
  }
}

TEST(ActivationMemory, DrawsAreTheSameWhenTheyRunAgain) {
  GptOptions o{.dropout = 0.2}, checkpointed{.dropout = 0.2, .checkpointed = true};
  for (How how : {How::kLoss, How::kWhole}) {
    Outcome all = train(how, o);
    expect_close(all, train(How::kEager, o));
    expect_same(all, train(how, o, 0.0));
    expect_same(all, train(how, checkpointed));
  }
}

TEST(ActivationMemory, TheSharesAreExplained) {
  Gpt model(GptOptions{});
  Tensor ids = randint(101, {2, 32});
  auto loss = [&](const Tensor& x) { return model->loss(x, x); };
  auto step = [&](const Tensor& x) {
    Tensor l = loss(x);
    l.backward();
    return l.detach();
  };
  for (auto& explained : {compiler::explain(loss, ids), compiler::explain(step, ids)}) {
    auto& points = explained.programs[0].activations[0];
    ASSERT_EQ(points.size(), 5u);
    EXPECT_EQ(points[0].share, 1);
    EXPECT_GT(points[0].bytes, 0);
    EXPECT_EQ(points[0].seconds, 0);
    for (size_t i = 1; i < points.size(); ++i) {
      EXPECT_LE(points[i].bytes, points[i - 1].bytes);
      EXPECT_GE(points[i].seconds, points[i - 1].seconds);
    }
    EXPECT_LE(double(points[2].bytes), 0.5 * double(points[0].bytes));
    EXPECT_GT(points[2].seconds, 0);
    EXPECT_NE(explained.text().find("kept for gradients, by activation_memory: 1.00: "), std::string::npos);
    // And drawn: what half of it comes to is told by its point.
    std::string page = explained.html();
    EXPECT_NE(page.find("<svg class=\"curve\""), std::string::npos);
    EXPECT_NE(page.find(format("0.50: {} and {} more</title>", bytes_text(double(points[2].bytes)),
                               seconds_text(points[2].seconds))),
              std::string::npos);
  }
  auto without = compiler::explain([](const Tensor& x) { return exp(x); }, randn({3}));
  EXPECT_TRUE(without.programs[0].activations[0].empty());
  EXPECT_EQ(without.html().find("<svg class=\"curve\""), std::string::npos);
}

TEST(ActivationMemory, TheShareIsOne) {
  auto f = [](const Tensor& x) { return exp(x); };
  auto with = [&](auto share) {
    CompileOptions options;
    options.options["activation_memory"] = share;
    compile(f, options);
  };
  with(0.5);
  with(int64_t(1));
  EXPECT_NE(error_of([&] { with(1.5); }).find("takes a share from 0 to 1"), std::string::npos);
  EXPECT_NE(error_of([&] { with(std::string("half")); }).find("takes a share from 0 to 1"), std::string::npos);
}

TEST(ActivationMemory, ThePeakIsWhatThePlanSays) {
  for (double share : {1.0, 0.5}) {
    manual_seed(1);
    GptOptions o{.layers = 4};
    Gpt model(o);
    optim::AdamW optimizer(model->parameters(), optim::AdamWOptions(1e-3));
    Tensor ids = randint(o.vocabulary, {4, 128});
    auto plain = [&](const Tensor& x) {
      Tensor l = model->loss(x, x);
      l.backward();
      optimizer.step();
      optimizer.zero_grad();
      return l.detach();
    };
    plain(ids);  // makes what the optimiser remembers
    int64_t before = cpu_memory_stats().allocated;
    auto step = compile(plain, {.options = {{"activation_memory", share}}});
    step(ids);
    reset_cpu_memory_peak();
    step(ids);
    int64_t measured = cpu_memory_stats().peak - before;
    auto explained = capture::explain(step.function());
    ASSERT_EQ(explained.programs.size(), 1u);
    // The allocator counts its sizes, of which there are four between powers of two.
    int64_t predicted = explained.programs[0].reports[0]->peak_bytes();
    EXPECT_GE(double(measured), 0.99 * double(predicted)) << share;
    EXPECT_LE(double(measured), 1.25 * double(predicted)) << share;
  }
}

// What a step holds beside its parameters: gradients that are forgotten in the end need no memory of their own.
TEST(ActivationMemory, GradientsGoWhenTheOptimiserHasUsedThem) {
  const int64_t size = 512, layers = 8, bytes = size * size * 4;
  auto peak_of = [&](bool forgets) {
    manual_seed(1);
    std::vector<Tensor> weights;
    for (int64_t i = 0; i < layers; ++i) weights.push_back((randn({size, size}) * 0.05).requires_grad_());
    optim::SGD optimizer(weights, optim::SGDOptions(0.01));
    Tensor x = randn({4, size});
    auto step = compile([&](const Tensor& x) {
      if (!forgets) optimizer.zero_grad();
      Tensor h = x;
      for (auto& w : weights) h = tanh(mm(h, w));
      h.sum().backward();
      optimizer.step();
      if (forgets) optimizer.zero_grad();
    });
    int64_t peak = 0, before = cpu_memory_stats().allocated;
    for (int i = 0; i < 4; ++i) {
      reset_cpu_memory_peak();
      step(x);
      peak = cpu_memory_stats().peak - before;
    }
    return peak;
  };
  // All of them, once: those of the last step are gone when the new ones are made.
  EXPECT_LT(peak_of(false), (layers + 4) * bytes);
  EXPECT_LT(peak_of(true), 4 * bytes);
}

}  // namespace
}  // namespace sinter
