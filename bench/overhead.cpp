// What a call of a compiled function costs beyond its kernels, once captured: ten ops on ten tensors of eight elements.
// The same work eagerly, and each stage of a compiled call alone, take turns in the same rounds.
// Usage: overhead [--json] [--quick]
#include <array>
#include <cstdio>
#include <cstring>

#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/capture/call.h"
#include "sinter/capture/compile.h"
#include "sinter/capture/entry.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

using T = Tensor;

// Nine products and sums and a tanh, each on an argument of its own.
Tensor chain(const T& a, const T& b, const T& c, const T& d, const T& e, const T& f, const T& g, const T& h, const T& i,
             const T& j) {
  return tanh((((((((a + b) * c + d) * e + f) * g) + h) * i) - j));
}

// Keeps the compiler from leaving out what made this object.
void keep(const auto& object) { asm volatile("" : : "r"(&object) : "memory"); }

using Arguments = std::array<Tensor, 10>;
constexpr int64_t kElements = 8;

auto apply_to(auto&& function, const Arguments& x) {
  return function(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9]);
}

// The ops of `chain` alone: each kernel found and launched on memory that is there.
class Kernels {
 public:
  explicit Kernels(const Arguments& x) {
    const char* names[] = {"add", "mul", "add", "mul", "add", "mul", "add", "mul", "sub"};
    Tensor last = x[0];
    for (size_t i = 0; i < 9; ++i) {
      Tensor out = empty({kElements});
      steps_.push_back({find_op(names[i]), {last, x[i + 1]}, out});
      last = out;
    }
    steps_.push_back({find_op("tanh"), {last}, empty({kElements})});
  }
  const Tensor& operator()() const {
    for (auto& step : steps_) eager::run_pointwise(*step.op, step.operands, step.attrs, &step.out);
    return steps_.back().out;
  }

 private:
  struct Step {
    const Op* op;
    std::vector<TensorArg> operands;
    Tensor out;
    Attrs attrs = {};
  };
  std::vector<Step> steps_;
};

// The stages that every call of a compiled function goes through, on the program that it has captured.
class Stages {
 public:
  explicit Stages(capture::Function& function) : entry_(function.entries().at(0)) {}

  using Invocation = capture::InvocationOf<decltype(&chain), T, T, T, T, T, T, T, T, T, T>;
  static Invocation flatten(const Arguments& x) {
    static auto pointer = &chain;
    return apply_to([](auto&... argument) { return Invocation(pointer, argument...); }, x);
  }
  void guard(const Invocation& invocation) const {
    capture::Signature signature;
    capture::sign(invocation, signature);
    SmallVector<int64_t, 8> sizes;
    check(entry_->guards.match(signature, invocation, sizes), "overhead: the guards do not fit");
  }
  Tensor segment(const Invocation& invocation) const {
    capture::CallState call(invocation);
    capture::run(*entry_->root, call);
    return call.cells.back();
  }
  const std::shared_ptr<Executable>& executable() const { return entry_->root->run; }

 private:
  std::shared_ptr<capture::CacheEntry> entry_;
};

bool differ(const Tensor& a, const Tensor& b) { return amax(abs(a - b)).item<double>() > 1e-6; }

void run(bool json, bool quick) {
  double start = seconds();
  manual_seed(1);
  NoGradGuard no_grad;
  Arguments x;
  for (auto& argument : x) argument = randn({kElements});
  auto compiled = compile(&chain);
  Tensor expected = apply_to(chain, x);
  check(!differ(apply_to(compiled, x), expected), "overhead: the compiled function gives something else");

  Kernels kernels(x);
  Stages stages(compiled.function());
  auto invocation = Stages::flatten(x);
  std::vector<TensorArg> inputs(x.begin(), x.end());
  std::vector<Tensor> outputs(1);
  auto executable = stages.executable();
  executable->run(inputs, {}, outputs);
  check(!differ(outputs[0], expected), "overhead: the executable takes its operands in another order");
  check(!differ(kernels(), expected), "overhead: the kernels compute something else");

  struct Row {
    const char* name;
    Work work;
  };
  const Row rows[] = {
      {"eager call", repeat([&] { apply_to(chain, x); })},
      {"compiled call", repeat([&] { apply_to(compiled, x); })},
      {"  flatten the arguments", repeat([&] { keep(Stages::flatten(x)); })},
      {"  sign and match guards", repeat([&] { stages.guard(invocation); })},
      {"  run the segment", repeat([&] { stages.segment(invocation); })},
      {"    its executable", repeat([&] { executable->run(inputs, {}, outputs); })},
      {"      its kernels", repeat([&] { kernels(); })},
  };
  std::vector<Work> works;
  for (auto& row : rows) works.push_back(row.work);
  auto t = alternate(works, {.count = quick ? 11 : 41, .seconds = quick ? 0.003 : 0.01});

  Report report(json);
  report.fact("threads", num_threads());
  report.fact("target", runtime::host_target().name);
  report.section("overhead", "A call of ten ops on ten tensors of eight elements, captured before",
                 {{"what", "what"},
                  {"best_ns", "best ns"},
                  {"median_ns", "median ns"},
                  {"best_of_eager", "of eager, best", 0, true},
                  {"median_of_eager", "median", 0, true}});
  for (size_t i = 0; i < t.size(); ++i)
    report.row({{"what", rows[i].name},
                {"best_ns", t[i].best * 1e9},
                {"median_ns", t[i].median * 1e9},
                {"best_of_eager", t[i].best / t[0].best},
                {"median_of_eager", t[i].median / t[0].median},
                {"deviation", t[i].deviation}});
  auto beyond = [&](size_t what, const char* name) {
    report.row({{"what", name},
                {"best_ns", (t[1].best - t[what].best) * 1e9},
                {"median_ns", (t[1].median - t[what].median) * 1e9},
                {"best_of_eager", (t[1].best - t[what].best) / t[0].best},
                {"median_of_eager", (t[1].median - t[what].median) / t[0].median}});
  };
  beyond(5, "compiled call beyond its executable");
  beyond(6, "compiled call beyond its kernels");
  report.note("Kernels: looked up and launched one by one, as the executable does it. Aims: a call beyond its kernels");
  report.note("< 3 us; the guards of ten tensors, signature included, < 1 us.");
  report.finish(seconds() - start);
}

}  // namespace

int main(int argc, char** argv) try {
  bool json = false, quick = false;
  for (int i = 1; i < argc; ++i) {
    json = json || std::strcmp(argv[i], "--json") == 0;
    quick = quick || std::strcmp(argv[i], "--quick") == 0;
    check(!std::strcmp(argv[i], "--json") || !std::strcmp(argv[i], "--quick"),
          "overhead: '{}' is unknown; [--json] [--quick]", argv[i]);
  }
  run(json, quick);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
