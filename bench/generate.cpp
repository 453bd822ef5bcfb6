// Text from a causal model of known sizes with random weights, for bench/peers/llama.py.
// Usage: generate CONFIG DTYPE PROMPT NEW answers a driver: a line `MODE SECONDS` on standard input makes NEW tokens
// after PROMPT ones, for at least so long, and tells the median seconds to the first token and of a step.
#include <cstdio>
#include <map>

#include "bench/support/llama_steps.h"
#include "bench/support/report.h"
#include "bench/support/serve.h"
#include "bench/support/timing.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

class Generating {
 public:
  Generating(std::shared_ptr<models::CausalLM> model, const std::string& mode, int64_t prompt, int64_t count)
      : generator_(std::move(model), {.mode = mode == "eager" ? Mode::kDefault : parse_mode(mode),
                                      .eager = mode == "eager",
                                      .cache_length = prompt + count,
                                      .buckets = {prompt}}),
        count_(count) {
    ids_ = random_ids(prompt, generator_.model()->config().vocab_size);
    run(2);
    first_s_ = generator_.times().prefill_s + generator_.times().steps_s.at(0);
    run(2);
  }

  Json round(double least) {
    std::vector<double> prefills, steps;
    for (double end = seconds() + least; prefills.empty() || seconds() < end;) {
      run(count_);
      auto& times = generator_.times();
      prefills.push_back(times.prefill_s);
      steps.insert(steps.end(), times.steps_s.begin(), times.steps_s.end());
    }
    return {{"prefill_s", summarize(std::move(prefills)).median},
            {"decode_s", summarize(std::move(steps)).median},
            {"first_s", first_s_}};
  }

 private:
  void run(int64_t count) { generator_.generate(ids_, {.max_new_tokens = count}); }

  TextGenerator generator_;
  int64_t count_;
  std::vector<int64_t> ids_;
  double first_s_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::fprintf(stderr, "usage: generate CONFIG DTYPE PROMPT NEW\n");
    return 2;
  }
  const int64_t prompt = std::stoll(argv[3]), count = std::stoll(argv[4]);
  check(prompt >= 1 && count >= 2, "generate: a prompt of {} tokens and {} new ones; there must be 1 and 2 at least",
        prompt, count);
  auto dtype = parse_dtype(argv[2]);
  check(dtype.has_value(), "generate: no element type '{}'", argv[2]);
  auto model = models::causal_lm(models::from_config(argv[1], {.dtype = *dtype}));
  std::map<std::string, Generating> known;
  return serve([&](const std::string& mode, double least) {
    return known.try_emplace(mode, model, mode, prompt, count).first->second.round(least);
  });
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
