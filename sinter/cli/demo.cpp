// `sinter demo`: two small models, built and run as a user would.
#include <chrono>
#include <functional>
#include <iostream>

#include <nlohmann/json.hpp>

#include "sinter/autograd/autograd.h"
#include "sinter/base/progress.h"
#include "sinter/base/table.h"
#include "sinter/base/thread_pool.h"
#include "sinter/cli/commands.h"
#include "sinter/engine/profile.h"
#include "sinter/nn/activation.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/attention.h"
#include "sinter/ops/binary.h"
#include "sinter/ops/loss.h"
#include "sinter/ops/random.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter::cli {

namespace {

constexpr int64_t kBatch = 64, kFeatures = 256, kHidden = 1024, kClasses = 10;
constexpr int64_t kSequences = 4, kTokens = 128, kWidth = 256, kHeads = 8;

// A pre-norm transformer block: causal self-attention and a feed-forward net, each added to its input.
struct BlockImpl : nn::Module {
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr};
  nn::Sequential feed_forward{nullptr};
  int64_t heads;

  BlockImpl(int64_t width, int64_t heads) : heads(heads) {
    norm1 = register_module("norm1", nn::LayerNorm(width));
    qkv = register_module("qkv", nn::Linear(width, 3 * width));
    out = register_module("out", nn::Linear(width, width));
    norm2 = register_module("norm2", nn::LayerNorm(width));
    feed_forward = register_module(
        "feed_forward", nn::Sequential(nn::Linear(width, 4 * width), nn::GELU(), nn::Linear(4 * width, width)));
  }

  Tensor forward(const Tensor& x) {
    Dim batch = x.size(0), tokens = x.size(1), width = x.size(2);
    // [3, batch, heads, tokens, width / heads]
    Tensor parts = qkv(norm1(x)).view({batch, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    Tensor seen = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    Tensor y = x + out(seen.transpose(1, 2).reshape({batch, tokens, width}));
    return y + feed_forward(norm2(y));
  }
};
SINTER_MODULE(Block);

struct Run {
  std::string title;
  int64_t parameters;
  std::function<void()> step;
  double first_seconds = 0, later_seconds = 0;  // later: the mean
  std::map<std::string, OpProfile::Row, std::less<>> rows = {};
  std::string table = {};
};

double seconds_of(const std::function<void()>& f) {
  auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(Run& run, int repeat, Progress& progress) {
  run.first_seconds = seconds_of(run.step);
  progress.advance();
  OpProfile profile;
  for (int i = 0; i < repeat; ++i) {
    run.later_seconds += seconds_of(run.step) / repeat;
    progress.advance();
  }
  run.rows = profile.rows();
  run.table = profile.table();
}

int64_t count_parameters(const nn::Module& module) {
  int64_t count = 0;
  for (auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

std::vector<Run> build_runs() {
  manual_seed(1);
  nn::Sequential mlp(nn::Linear(kFeatures, kHidden), nn::ReLU(), nn::Linear(kHidden, kHidden), nn::ReLU(),
                     nn::Linear(kHidden, kClasses));
  Block block(kWidth, kHeads);
  Tensor images = randn({kBatch, kFeatures}), labels = randint(kClasses, {kBatch});
  Tensor tokens = randn({kSequences, kTokens, kWidth});
  auto forward = [](auto model, Tensor input) {
    return [model, input] {
      NoGradGuard no_grad;
      model(input);
    };
  };
  auto train = [mlp, images, labels] {
    mlp->zero_grad();
    cross_entropy(mlp(images), labels).backward();
  };
  return {{format("MLP {}-{}-{}-{}, forward of a batch of {}", kFeatures, kHidden, kHidden, kClasses, kBatch),
           count_parameters(*mlp), forward(mlp, images)},
          {"the same MLP, forward, cross entropy and backward", count_parameters(*mlp), train},
          {format("transformer block of width {} with {} heads, forward of {} sequences of {} tokens", kWidth, kHeads,
                  kSequences, kTokens),
           count_parameters(*block), forward(block, tokens)}};
}

void print_json(const std::vector<Run>& runs, const DemoOptions& options, const runtime::ToolchainStats& stats) {
  nlohmann::json models = nlohmann::json::array();
  for (auto& run : runs) {
    nlohmann::json ops = nlohmann::json::array();
    for (auto& [name, row] : run.rows)
      ops.push_back({{"op", name}, {"calls", row.calls}, {"seconds", row.seconds}, {"bytes", row.bytes}});
    models.push_back({{"model", run.title},
                      {"parameters", run.parameters},
                      {"first_seconds", run.first_seconds},
                      {"seconds_per_run", run.later_seconds},
                      {"runs", options.repeat},
                      {"ops", ops}});
  }
  nlohmann::json report = {{"models", models},
                           {"kernels", {{"compiled", stats.compiles}, {"from_disk", stats.disk_hits}}},
                           {"compile_seconds", stats.seconds},
                           {"threads", num_threads()},
                           {"target", runtime::host_target().name}};
  std::cout << report.dump(2) << "\n";
}

void print_tables(const std::vector<Run>& runs, const DemoOptions& options, const runtime::ToolchainStats& stats) {
  for (auto& run : runs)
    std::cout << run.title << "\n"
              << format("{} parameters; first run {} ms, then {} ms a run (mean of {}); the ops of these runs:\n",
                        run.parameters, fixed(run.first_seconds * 1e3, 1), fixed(run.later_seconds * 1e3, 3),
                        options.repeat)
              << run.table << "\n";
  std::cout << format("{} kernels compiled in {} s, {} loaded from the cache; {} threads; {}\n", stats.compiles,
                      fixed(stats.seconds, 2), stats.disk_hits, num_threads(), runtime::host_target().name);
}

}  // namespace

void run_demo(const DemoOptions& options) {
  if (options.threads) set_num_threads(options.threads);
  auto runs = build_runs();
  {
    Progress progress("demo", int64_t(runs.size()) * (options.repeat + 1), "runs");
    for (auto& run : runs) measure(run, options.repeat, progress);
  }
  auto stats = runtime::toolchain_stats();
  options.json ? print_json(runs, options, stats) : print_tables(runs, options, stats);
}

}  // namespace sinter::cli
