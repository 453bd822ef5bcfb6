#include "bench/support/llama_steps.h"

#include <numeric>
#include <random>

namespace sinter::bench {

std::vector<int64_t> random_ids(int64_t count, int64_t vocabulary) {
  std::mt19937_64 draw(2);
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(int64_t(draw() % uint64_t(vocabulary)));
  return ids;
}

LlamaSteps::LlamaSteps(const std::shared_ptr<models::CausalLM>& model, const std::string& mode, int64_t batch,
                       int64_t prompt, models::KvCache cache)
    : cache_(std::move(cache)) {
  auto step = [model](bool begins) {
    return [model, begins](const Tensor& ids, const Tensor& positions, const Tensor& wanted, models::KvCache cache) {
      cache.begins = begins;
      return model->forward(ids, positions, {}, &cache, wanted);
    };
  };
  prefill_ = step(true);
  decode_ = step(false);
  if (mode != "eager") {
    // A second process finds the programs without tracing, as those of a TextGenerator are found.
    auto options = [&](const std::string& name) {
      CompileOptions out{.mode = parse_mode(mode), .fullgraph = true, .dynamic = Dynamic::kFalse, .name = name};
      out.fingerprint = [model, name] { return model->fingerprint("LlamaSteps " + name); };
      return out;
    };
    prefill_ = compile(step(true), options("prefill"));
    decode_ = compile(step(false), options("decode"));
  }
  // From host memory, so that no kernel is needed before the first step.
  Device device = model->parameters().at(0).device();
  auto integers = [&](const std::vector<int64_t>& values, const Shape& shape) { return from_data(values, shape).to(device); };
  std::vector<int64_t> ids = random_ids(batch * prompt, model->config().vocab_size), places(size_t(prompt), 0);
  std::iota(places.begin(), places.end(), 0);
  std::vector<int64_t> rows(size_t(batch), prompt - 1), zeros(size_t(batch), 0);
  ids_ = integers(ids, {batch, prompt});
  one_ = integers(std::vector<int64_t>(ids.begin(), ids.begin() + batch), {batch, 1});
  positions_ = integers(places, {prompt});
  next_ = integers({prompt}, {1});
  last_ = integers(rows, {batch});
  first_ = integers(zeros, {batch});
}

}  // namespace sinter::bench
