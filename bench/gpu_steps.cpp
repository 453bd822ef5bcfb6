// Single passes on a GPU, timed by the device: a Llama's prefill and decode step over a static cache, an encoder's and an
// image classifier's forward pass. Random weights, bf16. For bench/gpu/run.py, which puts PyTorch beside it.
// Usage: gpu_steps CONFIG [--batch N] [--prompt N] [--cache N] [--modes eager,default,reduce-overhead] [--repeats N]
//        [--checkpoint FOLDER] [--profile]
// Prints the rows as `sinter bench --json` does; with --profile a table of kernels instead. A checkpoint is one that
// bench/gpu/torch_peers.py exported: its weights and inputs are taken, and rows tell how far results are from exact ones.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "bench/support/device_times.h"
#include "bench/support/llama_steps.h"
#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/base/stage_times.h"
#include "sinter/engine/profile.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/module.h"
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
  std::string checkpoint;
  bool profile = false;
};

Options parse(int argc, char** argv) {
  Options out;
  check(argc > 1, "usage: gpu_steps CONFIG [--batch N] [--prompt N] [--cache N] [--modes LIST] [--repeats N] [--checkpoint FOLDER] "
        "[--profile]");
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
    else if (name == "--checkpoint") out.checkpoint = value;
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

// What an exported checkpoint brings along: inputs and results of each kind of call.
class Recorded {
 public:
  explicit Recorded(const std::string& folder) {
    if (!folder.empty()) file_.emplace(folder + "/results.safetensors");
  }
  // The input of this name, or what is made in its place.
  Tensor input(const std::string& name, const std::function<Tensor()>& otherwise) const {
    return (file_ ? file_->tensor(name) : otherwise()).to(cuda());
  }
  // Relative norms of the deviation from the exact result: ours, and that of PyTorch's own type of arithmetic.
  void compare(const std::string& kind, const Pass& pass, Json& row) const {
    if (!file_) return;
    Tensor exact = file_->tensor(kind + ".exact").to(kFloat64);
    auto error = [&](const Tensor& got) {
      Tensor off = got.to(cpu()).to(kFloat64).reshape(exact.sizes()) - exact;
      return std::sqrt((off * off).sum().item().to_double() / (exact * exact).sum().item().to_double());
    };
    row["error"][kind] = error(pass());
    row["torch_error"][kind] = error(file_->tensor(kind + ".y"));
  }

 private:
  std::optional<SafeTensorsFile> file_;
};

// Kernels in the place of a row.
Json print_profile(const std::function<void()>& work) {
  for (int i = 0; i < 3; ++i) work();
  Profile profile([&] {
    for (int i = 0; i < 5; ++i) work();
  });
  std::cout << profile.table(60);
  return nullptr;
}

CompileOptions options_of(const std::string& mode, const char* name, const std::shared_ptr<models::Model>& model) {
  CompileOptions options{.mode = parse_mode(mode), .fullgraph = true, .dynamic = Dynamic::kFalse, .name = name};
  // A second process finds the programs without tracing, as a TextGenerator's are found.
  options.fingerprint = [model, what = std::string("gpu_steps ") + name] { return model->fingerprint(what); };
  return options;
}

// The first call of each, and where the time went: walls, and stages summed over threads, in milliseconds.
struct First {
  double seconds = 0;
  Json parts = Json::object();
};

First first_calls(std::initializer_list<std::pair<const char*, const Pass*>> passes) {
  First out;
  auto before = stage_times();
  auto compiled = runtime::cuda_compile_stats();
  auto run = [&](const std::string& name, const Pass& pass) {
    double taken = timed([&] {
      pass();
      runtime::cuda_synchronize(0);
    });
    out.parts[name] = taken * 1e3;
    return taken;
  };
  for (auto& [name, pass] : passes) out.seconds += run(name, *pass);
  for (auto& [name, pass] : passes) run(name + std::string(" again"), *pass);  // recorded, where they become graphs
  auto t = stage_times() - before;
  auto now = runtime::cuda_compile_stats();
  out.parts["stages"] = {{"capture", t.capture * 1e3},     {"passes", t.passes * 1e3},
                         {"schedule", t.schedule * 1e3},   {"emit", t.emit * 1e3},
                         {"toolchain", t.toolchain * 1e3}, {"device", t.device * 1e3},
                         {"libraries", t.libraries * 1e3}, {"modules", t.modules * 1e3},
                         {"recording", t.recording * 1e3}};
  out.parts["nvrtc"] = {{"ms", (now.seconds - compiled.seconds) * 1e3},
                        {"programs", now.compiles - compiled.compiles},
                        {"from_disk", now.disk_hits - compiled.disk_hits}};
  return out;
}

// One row of `sinter bench`.
Json row_of(const Options& o, const std::string& mode, int64_t parameters, const First& first, const Json& prefill, const Json& decode) {
  Json row{{"model", o.config}, {"mode", mode}, {"batch", o.batch}, {"prompt", o.prompt}, {"dtype", "bf16"},
           {"parameters", parameters}, {"first_call_s", first.seconds}, {"first_call", first.parts}, {"prefill_ms", prefill},
           {"peak_bytes", runtime::cuda_memory_stats(0).peak}};
  if (!decode.is_null()) row["decode_ms"] = decode;
  return row;
}

Json measure_llama(const Options& o, const std::shared_ptr<models::CausalLM>& model, const std::string& mode,
                   const Recorded& recorded) {
  LlamaSteps steps(model, mode, o.batch, o.prompt, model->make_cache(o.batch, o.cache));
  steps.ids() = recorded.input("prefill.x0", [&] { return steps.ids(); });
  steps.next_ids() = recorded.input("decode.x0", [&] { return steps.next_ids(); });
  Pass prefill = [&] { return steps.prefill(); }, decode = [&] { return steps.decode(); };
  First first_call = first_calls({{"prefill", &prefill}, {"decode", &decode}});
  if (o.profile) return print_profile([&] { prefill(), decode(); });
  Json errors;
  recorded.compare("prefill", prefill, errors);
  recorded.compare("decode", decode, errors);
  Json prefill_ms = device_times(prefill, o.repeats);
  Json row = row_of(o, mode, model->parameter_count(), first_call, prefill_ms, device_times(decode, o.repeats));
  if (!errors.is_null()) row.update(errors);
  return row;
}

Json measure_forward(const Options& o, const std::shared_ptr<models::Model>& model, const std::string& mode,
                     const Recorded& recorded) {
  auto& c = model->config();
  Tensor input;
  std::function<Tensor(const Tensor&)> forward;
  if (auto encoder = std::dynamic_pointer_cast<models::TextEncoder>(model)) {
    input = recorded.input("forward.x0", [&] { return randint(c.vocab_size, {o.batch, o.prompt}); });
    forward = [encoder](const Tensor& x) { return encoder->forward(x); };
  } else {
    auto images = std::dynamic_pointer_cast<models::ImageClassifier>(model);
    check(bool(images), "gpu_steps: {} is neither a decoder, nor an encoder, nor an image classifier", o.config);
    input = recorded.input("forward.x0", [&] { return randn({o.batch, c.channels, c.image_size, c.image_size}); });
    input = input.to(kBFloat16).contiguous(MemoryFormat::kChannelsLast);
    forward = [images](const Tensor& x) { return images->forward(x); };
  }
  if (mode != "eager") forward = compile(forward, options_of(mode, "forward", model));
  Pass pass = [&] { return forward(input); };
  First first = first_calls({{"forward", &pass}});
  if (o.profile) return print_profile([&] { pass(); });
  Json errors;
  recorded.compare("forward", pass, errors);
  Json row = row_of(o, mode, model->parameter_count(), first, device_times(pass, o.repeats), nullptr);
  if (!errors.is_null()) row.update(errors);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options o = parse(argc, argv);
    NoGradGuard no_grad;
    double begin = seconds();
    runtime::cuda_synchronize(0);
    double context = seconds() - begin;
    models::FromOptions where{.dtype = kBFloat16, .device = cuda()};
    Recorded recorded(o.checkpoint);
    auto model = o.checkpoint.empty() ? models::from_config(o.config, where) : models::from_pretrained(o.checkpoint, where);
    runtime::cuda_synchronize(0);
    double weights = seconds() - begin - context;
    Json rows = Json::array();
    for (auto& mode : o.modes) {
      runtime::reset_cuda_memory_peak(0);
      auto decoder = std::dynamic_pointer_cast<models::CausalLM>(model);
      Json row = decoder ? measure_llama(o, decoder, mode, recorded) : measure_forward(o, model, mode, recorded);
      if (row.is_null()) continue;
      row["context_ms"] = context * 1e3;
      row["weights_ms"] = weights * 1e3;
      rows.push_back(std::move(row));
    }
    if (!o.profile) std::cout << rows.dump(1) << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "gpu_steps: " << error.what() << "\n";
    return 1;
  }
}
