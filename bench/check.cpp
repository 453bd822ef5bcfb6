// What {"check", N} costs: a GPT-2 with random weights, a call that is not checked beside one that is.
// Usage: check [MODEL] [--tokens N]     MODEL: a name of `sinter bench --config`, gpt2-small by default
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "bench/support/timing.h"
#include "sinter/sinter.h"

using namespace sinter;

int main(int argc, char** argv) {
  std::string name = "gpt2-small";
  int64_t tokens = 64;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--tokens" && i + 1 < argc)
      tokens = std::atoll(argv[++i]);
    else
      name = argv[i];
  }
  NoGradGuard no_grad;
  manual_seed(1);
  auto model = std::dynamic_pointer_cast<models::CausalLM>(models::from_config(name));
  check(model != nullptr, "check: {} is no language model", name);
  Tensor ids = randint(100, {1, tokens});
  auto forward = [model](const Tensor& x) { return model->forward(x); };
  auto plain = compile(forward), checked = compile(forward, {.options = {{"check", int64_t(1)}, {"throw", true}}});
  plain(ids);
  double first = bench::timed([&] { checked(ids); });  // also compiles the eager ops that stand in for the referee
  double usual = 1e30, each = 1e30;
  for (int round = 0; round < 5; ++round) {
    for (int call = 0; call < 5; ++call) usual = std::min(usual, bench::timed([&] { plain(ids); }));
    each = std::min(each, bench::timed([&] { checked(ids); }));
  }
  std::printf("%s, %lld tokens: a call %.1f ms, the first checked call %.2f s, later ones %.2f s (%.0f times)\n", name.c_str(),
              (long long)tokens, usual * 1e3, first, each, each / usual);
  std::printf("on average: N = 1 %.1f ms, N = 100 %.1f ms (%.1f times)\n", each * 1e3, (99 * usual + each) * 10,
              (99 * usual + each) / 100 / usual);
}
