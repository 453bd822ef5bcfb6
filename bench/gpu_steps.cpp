// Single passes on a GPU, timed by the device: a Llama's prefill and decode step over a static cache, an encoder's and an
// image classifier's forward pass. Random weights, bf16. For bench/gpu/run.py, which puts PyTorch beside it.
// Usage: gpu_steps CONFIG [--batch N] [--prompt N] [--cache N] [--modes eager,default,reduce-overhead] [--repeats N] [--profile]
// Prints the rows as `sinter bench --json` does; with --profile a table of kernels instead.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/engine/profile.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

struct Options {
  std::string config;
  int64_t batch = 1, prompt = 512, cache = 1024;
  std::vector<std::string> modes = {"eager", "default", "reduce-overhead"};
  int repeats = 200;
  bool profile = false;
};

Options parse(int argc, char** argv) {
  Options out;
  check(argc > 1, "usage: gpu_steps CONFIG [--batch N] [--prompt N] [--cache N] [--modes LIST] [--repeats N] [--profile]");
  out.config = argv[1];
  for (int i = 2; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--profile") {
      out.profile = true;
      continue;
    }
    check(i + 1 < argc, "{} needs a value", name);
    std::string value = argv[++i];
    if (name == "--batch") out.batch = std::stoll(value);
    else if (name == "--prompt") out.prompt = std::stoll(value);
    else if (name == "--cache") out.cache = std::stoll(value);
    else if (name == "--repeats") out.repeats = std::stoi(value);
    else if (name == "--modes") {
      out.modes.clear();
      std::istringstream list(value);
      for (std::string mode; std::getline(list, mode, ',');) out.modes.push_back(mode);
    } else {
      check(false, "gpu_steps knows no option {}", name);
    }
  }
  return out;
}

using Pass = std::function<Tensor()>;

// Milliseconds between two events around each pass; the host runs ahead where it can.
Json timed(const Pass& pass, int repeats) {
  for (int i = 0; i < 10; ++i) pass();
  runtime::cuda_synchronize(0);
  std::vector<std::unique_ptr<runtime::CudaEvent>> marks;
  for (int i = 0; i < 2 * repeats; ++i) marks.push_back(std::make_unique<runtime::CudaEvent>(0));
  auto stream = runtime::cuda_stream(0);
  for (int i = 0; i < repeats; ++i) {
    marks[size_t(2 * i)]->record(stream);
    pass();
    marks[size_t(2 * i + 1)]->record(stream);
  }
  runtime::cuda_synchronize(0);
  std::vector<double> ms;
  double sum = 0, squares = 0;
  for (int i = 0; i < repeats; ++i) {
    ms.push_back(marks[size_t(2 * i + 1)]->milliseconds_since(*marks[size_t(2 * i)]));
    sum += ms.back();
    squares += ms.back() * ms.back();
  }
  std::sort(ms.begin(), ms.end());
  auto at = [&](double part) { return ms[std::min(ms.size() - 1, size_t(part * double(ms.size())))]; };
  double mean = sum / double(repeats);
  return {{"mean", mean}, {"std", std::sqrt(std::max(0.0, squares / double(repeats) - mean * mean))},
          {"p50", at(0.5)}, {"p90", at(0.9)}, {"p99", at(0.99)}};
}

CompileOptions options_of(const std::string& mode, const char* name) {
  return {.mode = parse_mode(mode), .fullgraph = true, .dynamic = Dynamic::kFalse, .name = name};
}

double first_seconds(std::initializer_list<const Pass*> passes) {
  double begin = seconds();
  for (auto* pass : passes) (*pass)();
  runtime::cuda_synchronize(0);
  return seconds() - begin;
}

// One row of `sinter bench`.
Json row_of(const Options& o, const std::string& mode, int64_t parameters, double first, const Json& prefill, const Json& decode) {
  Json row{{"model", o.config}, {"mode", mode}, {"batch", o.batch}, {"prompt", o.prompt}, {"dtype", "bf16"},
           {"parameters", parameters}, {"first_call_s", first}, {"prefill_ms", prefill},
           {"peak_bytes", runtime::cuda_memory_stats(0).peak}};
  if (!decode.is_null()) row["decode_ms"] = decode;
  return row;
}

Json measure_llama(const Options& o, const std::shared_ptr<models::CausalLM>& model, const std::string& mode) {
  auto cache = model->make_cache(o.batch, o.cache);
  auto step = [model](bool begins) {
    return [model, begins](const Tensor& ids, const Tensor& positions, const Tensor& wanted, models::KvCache cache) {
      cache.begins = begins;
      return model->forward(ids, positions, {}, &cache, wanted);
    };
  };
  using Step = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const models::KvCache&)>;
  Step prefill_step = step(true), decode_step = step(false);
  if (mode != "eager") {
    prefill_step = compile(step(true), options_of(mode, "prefill"));
    decode_step = compile(step(false), options_of(mode, "decode"));
  }
  Tensor ids = randint(model->config().vocab_size, {o.batch, o.prompt}).to(cuda()), one = ids.slice(1, 0, 1).contiguous();
  Tensor positions = arange(o.prompt).to(cuda()), next = tensor({o.prompt}).to(cuda());
  Tensor last = full({o.batch}, o.prompt - 1, kInt64).to(cuda()), first = full({o.batch}, 0, kInt64).to(cuda());
  Pass prefill = [&] { return prefill_step(ids, positions, last, cache); };
  Pass decode = [&] { return decode_step(one, next, first, cache); };
  double first_call = first_seconds({&prefill, &decode});
  if (o.profile) {
    for (int i = 0; i < 3; ++i) prefill(), decode();
    Profile profile([&] {
      for (int i = 0; i < 5; ++i) prefill(), decode();
    });
    std::cout << profile.table(60);
    return nullptr;
  }
  Json prefill_ms = timed(prefill, o.repeats);
  return row_of(o, mode, model->parameter_count(), first_call, prefill_ms, timed(decode, o.repeats));
}

Json measure_forward(const Options& o, const std::shared_ptr<models::Model>& model, const std::string& mode) {
  auto& c = model->config();
  Tensor input;
  std::function<Tensor(const Tensor&)> forward;
  if (auto encoder = std::dynamic_pointer_cast<models::TextEncoder>(model)) {
    input = randint(c.vocab_size, {o.batch, o.prompt}).to(cuda());
    forward = [encoder](const Tensor& x) { return encoder->forward(x); };
  } else {
    auto images = std::dynamic_pointer_cast<models::ImageClassifier>(model);
    check(bool(images), "gpu_steps: {} is neither a decoder, nor an encoder, nor an image classifier", o.config);
    input = randn({o.batch, c.channels, c.image_size, c.image_size}).to(kBFloat16).to(cuda()).contiguous(MemoryFormat::kChannelsLast);
    forward = [images](const Tensor& x) { return images->forward(x); };
  }
  if (mode != "eager") forward = compile(forward, options_of(mode, "forward"));
  Pass pass = [&] { return forward(input); };
  double first = first_seconds({&pass});
  if (o.profile) {
    for (int i = 0; i < 3; ++i) pass();
    Profile profile([&] {
      for (int i = 0; i < 5; ++i) pass();
    });
    std::cout << profile.table(60);
    return nullptr;
  }
  return row_of(o, mode, model->parameter_count(), first, timed(pass, o.repeats), nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options o = parse(argc, argv);
    NoGradGuard no_grad;
    auto model = models::from_config(o.config, {.dtype = kBFloat16, .device = cuda()});
    Json rows = Json::array();
    for (auto& mode : o.modes) {
      runtime::reset_cuda_memory_peak(0);
      auto decoder = std::dynamic_pointer_cast<models::CausalLM>(model);
      Json row = decoder ? measure_llama(o, decoder, mode) : measure_forward(o, model, mode);
      if (!row.is_null()) rows.push_back(std::move(row));
    }
    if (!o.profile) std::cout << rows.dump(1) << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "gpu_steps: " << error.what() << "\n";
    return 1;
  }
}
