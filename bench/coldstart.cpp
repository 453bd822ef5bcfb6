// From the start of a process to a first compiled result: with an empty store (cold) and with a full one (warm). Each
// measurement is a process of its own. Weights are random, and their making is not counted.
// Usage: coldstart [--json] [--repeat N] [--layers 1,8,32,96] [--tokens N] [--dtype f32] [--device cpu] [--mode MODE] [MODEL…]
//        coldstart --one MODEL …     one measurement here, as a line of JSON; what bench/peers/coldstart.py asks
//        coldstart --configs [MODEL…]   these models, or those measured by default, as {name: config.json}
// MODEL is one of --configs, a name of `sinter bench --config`, or a config.json. A decoder on a GPU computes a prompt and a
// step behind it over a static cache, everything else one forward pass.
#include <time.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "bench/support/child.h"
#include "bench/support/llama_steps.h"
#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/models/families.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"
#include "sinter/runtime/cuda/device.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

// --- the models

// 32 layers of a width that a small machine can run in a moment: what is measured grows with the layers.
constexpr const char* kDeepLlama = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000,
  "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 32, "num_attention_heads": 8,
  "num_key_value_heads": 4, "head_dim": 64, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "tie_word_embeddings": true})";
constexpr const char* kDeepLlamaName = "llama-32-layers";
constexpr const char* kMeasured[] = {"gpt2-small", "bert-base", kDeepLlamaName};

struct Options {
  std::vector<std::string> models;
  std::vector<int64_t> layers;
  int64_t tokens = 16, batch = 1, cache = 1024;
  std::string dtype = "f32", device = "cpu", mode;
  int repeat = 3;
  bool json = false;
  std::string one;
  int64_t started = 0;  // nanoseconds of the monotonic clock
};

Json configuration(const std::string& model, int64_t layers) {
  Json config = model.ends_with(".json")   ? Json::parse(std::ifstream(model))
                : model == kDeepLlamaName ? Json::parse(kDeepLlama)
                                          : Json::parse(models::config_text(model));
  if (layers > 0) config[config.contains("n_layer") ? "n_layer" : "num_hidden_layers"] = layers;
  return config;
}

// Fills parameters from host memory, so that no kernel has to be compiled for it: matrices with uniform values that keep
// activations near 1, norms with ones, the rest with zeros.
class HostFill {
 public:
  HostFill() {
    std::mt19937 draw(1);
    for (auto& value : block_) value = float(int32_t(draw())) * (1.0f / 2147483648.0f);
  }

  void operator()(const std::string& name, const Tensor& tensor) {
    if (tensor.dim() >= 2) {
      float bound = std::sqrt(3.0f / float(int64_t(tensor.numel() / tensor.size(0))));
      write(tensor, [&](size_t i) { return block_[i] * bound; });
    } else {
      float value = name.ends_with("bias") ? 0 : 1;
      write(tensor, [&](size_t) { return value; });
    }
  }
  void zero(const Tensor& tensor) {
    write(tensor, [](size_t) { return 0.0f; });
  }

 private:
  // One block again and again: a billion draws would take minutes. Its length is prime, so that rows differ.
  void write(const Tensor& tensor, auto&& value) {
    const size_t item = size_t(item_size(tensor.dtype())), count = size_t(int64_t(tensor.numel()));
    const size_t block = std::min(count, kBlock);
    std::vector<char> bytes(block * item, 0);
    for (size_t i = 0; i < block; ++i) {
      float x = value(i);
      uint32_t bits = std::bit_cast<uint32_t>(x) >> (tensor.dtype() == kBFloat16 ? 16 : 0);
      if (is_floating(tensor.dtype())) std::memcpy(&bytes[i * item], &bits, item);
    }
    auto* to = static_cast<char*>(tensor.data_ptr());
    for (size_t done = 0; done < count; done += block) {
      size_t length = std::min(block, count - done) * item;
      if (tensor.device().is_cuda())
        runtime::cuda_copy(to + done * item, tensor.device(), bytes.data(), Device(), length);
      else
        std::memcpy(to + done * item, bytes.data(), length);
    }
  }

  static constexpr size_t kBlock = 1048573;
  std::vector<float> block_ = std::vector<float>(kBlock);
};

// --- one measurement, in a process of its own

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e3 + double(t.tv_nsec) * 1e-6;
}

using Pass = std::function<Tensor()>;

// What is run until the first result, and once more for its usual time.
Pass make_pass(const Options& o, const std::shared_ptr<models::Model>& model, HostFill& fill) {
  auto decoder = std::dynamic_pointer_cast<models::CausalLM>(model);
  const Device device = parse_device(o.device);
  if (decoder && device.is_cuda()) {
    models::KvCache cache;
    auto& c = decoder->config();
    for (auto* list : {&cache.keys, &cache.values})
      for (int64_t i = 0; i < c.layers; ++i) {
        list->push_back(empty({o.batch, c.kv_heads, o.cache, c.head_dim}, decoder->parameters().at(0).options()));
        fill.zero(list->back());
      }
    auto steps = std::make_shared<LlamaSteps>(decoder, o.mode, o.batch, o.tokens, cache);
    return [steps] { return steps->prefill(), steps->decode(); };
  }
  auto encoder = std::dynamic_pointer_cast<models::TextEncoder>(model);
  auto images = std::dynamic_pointer_cast<models::ImageClassifier>(model);
  auto& c = model->config();
  Tensor input;
  std::function<Tensor(const Tensor&)> forward;
  if (images) {
    input = empty({o.batch, c.channels, c.image_size, c.image_size}, model->parameters().at(0).options());
    fill("pixels", input);
    forward = [images](const Tensor& x) { return images->forward(x); };
  } else {
    input = from_data(random_ids(o.batch * o.tokens, c.vocab_size), {o.batch, o.tokens}).to(device);
    forward = [decoder, encoder](const Tensor& x) { return decoder ? decoder->forward(x) : encoder->forward(x); };
  }
  CompileOptions options{.mode = parse_mode(o.mode), .name = "forward"};
  options.fingerprint = [model] { return model->fingerprint("coldstart"); };
  return [input, fast = compile(forward, options)] { return fast(input); };
}

int measure(const Options& o, double main_ms) {
  const double start = o.started ? double(o.started) * 1e-6 : main_ms;
  NoGradGuard no_grad;
  const Device device = parse_device(o.device);
  double mark = now_ms();
  auto lap = [&] {
    double last = mark;
    return (mark = now_ms()) - last;
  };
  auto synchronize = [&] {
    if (device.is_cuda()) runtime::cuda_synchronize(device.index());
  };
  if (device.is_cuda()) runtime::cuda_device_info(device.index());
  synchronize();
  const double context = lap();
  auto dtype = parse_dtype(o.dtype);
  check(dtype.has_value(), "coldstart: no element type '{}'", o.dtype);
  ConfigFile file = ConfigFile::parse(configuration(o.one, o.layers.empty() ? 0 : o.layers[0]).dump(), o.one);
  std::shared_ptr<models::Model> model;
  {
    nn::ParameterScope scope(TensorOptions(*dtype).device(device), /*initialise=*/false);
    model = models::family_of(file).make(file);
    model->requires_grad_(false);
    model->eval();
    model->set_origin(file.dump());  // as models::from_pretrained does
  }
  const double made = lap();
  HostFill fill;
  for (auto& [name, tensor] : model->state_dict()) fill(name, tensor);
  Pass pass = make_pass(o, model, fill);
  synchronize();
  const double weights = lap();
  auto before = compiler::compile_times();
  auto toolchain = runtime::toolchain_stats();
  pass();
  synchronize();
  const double first = lap(), end = mark;
  auto taken = compiler::compile_times() - before;
  auto after = runtime::toolchain_stats();
  double usual = 1e30;
  for (int i = 0; i < 5; ++i) {
    lap();
    pass();
    synchronize();
    usual = std::min(usual, lap());
  }
  std::printf("%s\n", Json{{"start_ms", main_ms - start},
                           {"context_ms", context},
                           {"model_ms", made},
                           {"weights_ms", weights},
                           {"first_ms", first},
                           {"usual_ms", usual},
                           {"raw_ms", end - start},
                           {"total_ms", end - start - weights - context},
                           {"capture_ms", taken.capture * 1e3},
                           {"passes_ms", taken.passes * 1e3},
                           {"schedule_ms", taken.schedule * 1e3},
                           {"emit_ms", taken.emit * 1e3},
                           {"toolchain_ms", taken.toolchain * 1e3},
                           {"emitted", taken.kernels},
                           {"compiled", after.compiles - toolchain.compiles},
                           {"from_disk", after.disk_hits - toolchain.disk_hits}}
                          .dump()
                          .c_str());
  std::fflush(stdout);
  return 0;
}

// --- the table

Json measure_apart(const Options& o, const std::string& model, int64_t layers, const OwnDirectory& cache) {
  return Json::parse(output_of_self(
      format("--one '{}' --layers {} --tokens {} --batch {} --cache {} --dtype {} --device {} --mode {} --started {}", model,
             layers, o.tokens, o.batch, o.cache, o.dtype, o.device, o.mode, int64_t(now_ms() * 1e6)),
      cache));
}

void run(const Options& o) {
  double start = seconds();
  Report report(o.json);
  report.fact("threads", num_threads());
  report.fact("target", runtime::host_target().name);
  report.section("coldstart", "From the start of a process to a first result, ms; the best of the rounds",
                 {{"model", "model"},
                  {"layers", "layers"},
                  {"store", "store"},
                  {"total_ms", "to first result", 1},
                  {"start_ms", "start", 1},
                  {"context_ms", "context", 1},
                  {"model_ms", "model", 1},
                  {"first_ms", "first call", 1},
                  {"usual_ms", "usual call", 1},
                  {"capture_ms", "capture", 1},
                  {"passes_ms", "passes", 1},
                  {"schedule_ms", "schedule", 1},
                  {"emit_ms", "emit", 1},
                  {"toolchain_ms", "toolchain", 1},
                  {"emitted", "kernels"},
                  {"compiled", "compiled"},
                  {"from_disk", "from disk"},
                  {"weights_ms", "weights", 0}});
  for (auto& model : o.models)
    for (int64_t layers : o.layers) {
      Json best[2];
      for (int i = 0; i < o.repeat; ++i) {
        OwnDirectory cache;
        for (Json* kept : {&best[0], &best[1]}) {
          Json row = measure_apart(o, model, layers, cache);
          if (kept->is_null() || row["total_ms"] < (*kept)["total_ms"]) *kept = row;
        }
      }
      for (int warm : {0, 1}) {
        best[warm]["model"] = model;
        if (layers) best[warm]["layers"] = layers;
        best[warm]["store"] = warm ? "warm" : "cold";
        report.row(best[warm]);
      }
    }
  report.note("To first result: start, model and first call; weights and a GPU's context are not counted. The first call by");
  report.note("stages (on all threads together), and running it once; a usual call is the best of five later ones.");
  report.finish(seconds() - start);
}

Options parse(int argc, char** argv) {
  Options out;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--json") {
      out.json = true;
      continue;
    }
    if (!name.starts_with("--")) {
      out.models.push_back(name);
      continue;
    }
    check(i + 1 < argc, "coldstart: {} needs a value", name);
    const std::string value = argv[++i];
    if (name == "--one") out.one = value;
    else if (name == "--repeat") out.repeat = std::max(1, std::stoi(value));
    else if (name == "--tokens") out.tokens = std::stoll(value);
    else if (name == "--batch") out.batch = std::stoll(value);
    else if (name == "--cache") out.cache = std::stoll(value);
    else if (name == "--dtype") out.dtype = value;
    else if (name == "--device") out.device = value;
    else if (name == "--mode") out.mode = value;
    else if (name == "--started") out.started = std::stoll(value);
    else if (name == "--layers") {
      std::istringstream list(value);
      for (std::string part; std::getline(list, part, ',');) out.layers.push_back(std::stoll(part));
    } else {
      check(false, "coldstart: no option {}", name);
    }
  }
  if (out.mode.empty()) out.mode = out.device == "cpu" ? "default" : "reduce-overhead";
  if (out.models.empty()) out.models.assign(std::begin(kMeasured), std::end(kMeasured));
  if (out.layers.empty()) out.layers.push_back(0);  // as many as the model has
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  const double main_ms = now_ms();
  if (argc >= 2 && std::string(argv[1]) == "--configs") {
    Json all = Json::object();
    std::vector<std::string> names(argv + 2, argv + argc);
    if (names.empty()) names.assign(std::begin(kMeasured), std::end(kMeasured));
    for (auto& name : names) all[name] = configuration(name, 0);
    std::printf("%s\n", all.dump().c_str());
    return 0;
  }
  Options o = parse(argc, argv);
  if (!o.one.empty()) return measure(o, main_ms);
  run(o);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
