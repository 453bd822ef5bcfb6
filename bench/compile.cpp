// Where the time of a first call goes: capture, passes, schedule, emit, toolchain; with an empty kernel cache (cold) and
// with a full one (warm). Each measurement is a process of its own, so that nothing is left in memory.
// Usage: compile [--json] [--repeat N] [PROGRAM…]; compile --list
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/engine/report.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

// --- the programs

// A pre-norm transformer block.
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
    Tensor parts = qkv(norm1(x)).view({batch, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    Tensor seen = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    Tensor y = x + out(seen.transpose(1, 2).reshape({batch, tokens, width}));
    return y + feed_forward(norm2(y));
  }
};
SINTER_MODULE(Block);

// Two convolutions and what is between, added to the input.
struct ResidualImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};

  explicit ResidualImpl(int64_t channels) {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(channels, channels, 3).padding(1).bias(false)));
    norm1 = register_module("norm1", nn::BatchNorm2d(channels));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(channels, channels, 3).padding(1).bias(false)));
    norm2 = register_module("norm2", nn::BatchNorm2d(channels));
    eval();
  }
  Tensor forward(const Tensor& x) { return relu(x + norm2(conv2(relu(norm1(conv1(x)))))); }
};
SINTER_MODULE(Residual);

Tensor run_blocks(const std::vector<Block>& blocks, Tensor x) {
  for (auto block : blocks) x = block(x);
  return x;
}

struct Sample {
  std::function<Tensor(const Tensor&)> function;
  Tensor input;
};

Sample mlp() {
  nn::Sequential net(nn::Linear(256, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
  return {[net](const Tensor& x) { return net(x); }, randn({32, 256})};
}

Sample stack(int layers) {
  std::vector<Block> blocks;
  for (int i = 0; i < layers; ++i) blocks.push_back(Block(128, 4));
  return {[blocks](const Tensor& x) { return run_blocks(blocks, x); }, randn({1, 32, 128})};
}

Sample residual() {
  Residual block(16);
  return {[block](const Tensor& x) { return block(x); }, randn({1, 16, 28, 28})};
}

struct Program {
  const char* name;
  Sample (*make)();
};
constexpr Program kPrograms[] = {
    {"mlp", mlp},
    {"transformer_block", [] { return stack(1); }},
    {"gpt_12_layers", [] { return stack(12); }},
    {"resnet_block", residual},
};

// --- one measurement, in a process of its own

int measure(const std::string& name) {
  for (auto& program : kPrograms) {
    if (name != program.name) continue;
    manual_seed(1);
    NoGradGuard no_grad;
    Sample sample = program.make();
    auto fast = compile(sample.function, {.name = name});
    auto before = compiler::compile_times();
    auto toolchain = runtime::toolchain_stats();
    double start = seconds();
    fast(sample.input);
    double first = seconds() - start;
    auto taken = compiler::compile_times() - before;
    auto after = runtime::toolchain_stats();
    int64_t steps = 0;
    for (auto& each : capture::explain(fast.function()).programs)
      for (auto& report : each.reports) steps += report ? int64_t(report->kernels.size()) : 0;
    std::printf("%s\n", Json{{"first_ms", first * 1e3},
                             {"capture_ms", taken.capture * 1e3},
                             {"passes_ms", taken.passes * 1e3},
                             {"schedule_ms", taken.schedule * 1e3},
                             {"emit_ms", taken.emit * 1e3},
                             {"toolchain_ms", taken.toolchain * 1e3},
                             {"launches", steps},
                             {"emitted", taken.kernels},
                             {"compiled", after.compiles - toolchain.compiles},
                             {"from_disk", after.disk_hits - toolchain.disk_hits}}
                            .dump()
                            .c_str());
    return 0;
  }
  throw Error(format("compile: no program is called '{}'; --list names them", name));
}

Json measure_apart(const std::string& name, const std::string& cache) {
  std::string command = format("SINTER_CACHE_DIR='{}' '{}' --one {}", cache,
                               std::filesystem::read_symlink("/proc/self/exe").string(), name);
  FILE* pipe = popen(command.c_str(), "r");
  check(pipe, "compile: no process could be started");
  std::string text;
  std::array<char, 4096> part;
  while (size_t n = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), n);
  check(pclose(pipe) == 0, "compile: the measurement of {} failed", name);
  return Json::parse(text);
}

void run(bool json, int repeat, const std::vector<std::string>& names) {
  double start = seconds();
  Report report(json);
  report.fact("threads", num_threads());
  report.fact("target", runtime::host_target().name);
  report.section("compile", "A first call by stages: ms on all threads together; the best of the rounds",
                 {{"program", "program"},
                  {"cache", "cache"},
                  {"first_ms", "first call, ms", 1},
                  {"capture_ms", "capture", 1},
                  {"passes_ms", "passes", 1},
                  {"schedule_ms", "schedule", 1},
                  {"emit_ms", "emit", 1},
                  {"toolchain_ms", "toolchain", 1},
                  {"launches", "launches"},
                  {"emitted", "kernels emitted"},
                  {"compiled", "compiled"},
                  {"from_disk", "from disk"}});
  for (auto& name : names) {
    Json best[2];
    for (int i = 0; i < repeat; ++i) {
      std::string cache = (std::filesystem::temp_directory_path() / "sinter-bench-XXXXXX").string();
      check(mkdtemp(cache.data()), "compile: no temporary directory");
      for (Json* kept : {&best[0], &best[1]}) {
        Json row = measure_apart(name, cache);
        if (kept->is_null() || row["first_ms"] < (*kept)["first_ms"]) *kept = row;
      }
      std::filesystem::remove_all(cache);
    }
    for (int warm : {0, 1}) {
      best[warm]["program"] = name;
      best[warm]["cache"] = warm ? "warm" : "cold";
      report.row(best[warm]);
    }
  }
  report.note("launches: what the plan runs; kernels emitted: texts generated for it; compiled: those that were new.");
  report.finish(seconds() - start);
}

}  // namespace

int main(int argc, char** argv) try {
  bool json = false;
  int repeat = 3;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--one" && i + 1 < argc) return measure(argv[i + 1]);
    if (text == "--list") {
      for (auto& program : kPrograms) std::puts(program.name);
      return 0;
    }
    if (text == "--json")
      json = true;
    else if (text == "--repeat" && i + 1 < argc)
      repeat = std::max(1, std::atoi(argv[++i]));
    else
      names.push_back(text);
  }
  if (names.empty())
    for (auto& program : kPrograms) names.push_back(program.name);
  run(json, repeat, names);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
