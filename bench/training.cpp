// One step of training: forward, backward, clipping and AdamW, op by op, with the loss compiled, and compiled whole.
// Usage: training CONFIG [--batch N] [--tokens N] [--image N] [--layers N] [--device cpu|cuda] [--dtype f32|bf16|autocast]
//        [--how eager,loss,whole] [--mode default|reduce-overhead] [--budget X] [--repeats N] [--profile] [--explain]
// CONFIG is a name of models/presets.cpp, or gpt-tiny: 4 layers, width 256, a vocabulary of 5000; or gpt-plain, which is that
// model by hand, and gpt-checkpointed, with checkpoint() around each block. Random weights and data.
// Prints a line of JSON for each way: milliseconds a step, the first step, the loss after the last one, the peak of memory.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "bench/support/device_times.h"
#include "bench/support/plain_gpt.h"
#include "bench/support/report.h"
#include "bench/support/timing.h"
#include "sinter/engine/profile.h"
#include "sinter/runtime/cpu/memory.h"
#include "sinter/runtime/cuda/memory.h"
#include "sinter/runtime/cuda/stream.h"
#include "sinter/sinter.h"

using namespace sinter;
using namespace sinter::bench;

namespace {

struct Options {
  std::string config, device = "cpu", dtype = "f32", mode = "default";
  int64_t batch = 4, tokens = 128, image = 0, layers = 0;
  std::vector<std::string> ways = {"eager", "loss", "whole"};
  int repeats = 20;
  double budget = 1;
  bool profile = false, explain = false;
};

Options parse(int argc, char** argv) {
  Options out;
  check(argc > 1, "usage: training CONFIG [--batch N] [--tokens N] [--image N] [--layers N] [--device cpu|cuda] "
        "[--dtype f32|bf16|autocast] [--how eager,loss,whole] [--mode MODE] [--budget X] [--repeats N] [--profile] [--explain]");
  out.config = argv[1];
  for (int i = 2; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--profile" || name == "--explain") {
      (name == "--profile" ? out.profile : out.explain) = true;
      continue;
    }
    check(i + 1 < argc, "{} needs a value", name);
    std::string value = argv[++i];
    if (name == "--batch") out.batch = std::stoll(value);
    else if (name == "--tokens") out.tokens = std::stoll(value);
    else if (name == "--image") out.image = std::stoll(value);
    else if (name == "--layers") out.layers = std::stoll(value);
    else if (name == "--repeats") out.repeats = std::stoi(value);
    else if (name == "--budget") out.budget = std::stod(value);
    else if (name == "--device") out.device = value;
    else if (name == "--dtype") out.dtype = value;
    else if (name == "--mode") out.mode = value;
    else if (name == "--how") {
      out.ways.clear();
      std::istringstream list(value);
      for (std::string way; std::getline(list, way, ',');) out.ways.push_back(way);
    } else {
      check(false, "training knows no option {}", name);
    }
  }
  return out;
}

ConfigFile config_of(const Options& o) {
  constexpr auto kTiny = R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 5000, "n_embd": 256,
    "n_layer": 4, "n_head": 4, "n_positions": 1024})";
  Json text = Json::parse(o.config == "gpt-tiny" ? kTiny : models::config_text(o.config));
  if (o.layers) text[text.contains("n_layer") ? "n_layer" : "num_hidden_layers"] = o.layers;
  if (o.image) text["image_size"] = o.image;
  return ConfigFile::parse(text.dump(), o.config);
}

using Step = std::function<Tensor(const Tensor& x, const Tensor& y)>;

// A model, its optimiser, and a batch.
struct Training {
  std::shared_ptr<models::Model> model;
  PlainGpt plain{nullptr};  // in its place
  TensorList parameters;
  std::unique_ptr<optim::AdamW> optimizer;
  Tensor x, y;

  explicit Training(const Options& o) {
    manual_seed(1);
    Device device = parse_device(o.device);
    DType dtype = o.dtype == "bf16" ? kBFloat16 : kFloat32;
    if (o.config == "gpt-plain" || o.config == "gpt-checkpointed") {
      plain = PlainGpt(o.layers ? o.layers : 4, o.config == "gpt-checkpointed");
      plain->to(device);
      parameters = plain->parameters();
    } else {
      model = models::from_config(config_of(o), {.dtype = dtype, .device = device});
      model->train();
      if (model->config().model_type == "resnet") model->to(MemoryFormat::kChannelsLast);
      parameters = model->parameters();
    }
    for (auto& parameter : parameters) parameter.requires_grad_(true);
    optimizer = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(1e-4).weight_decay(0.1));
    models::ModelConfig c;
    c.vocab_size = 5000;
    if (model) c = model->config();
    if (is_text()) {
      x = randint(c.vocab_size, {o.batch, o.tokens}).to(device);
      y = randint(c.vocab_size, {o.batch, o.tokens}).to(device);
    } else {
      x = randn({o.batch, c.channels, c.image_size, c.image_size}).to(TensorOptions(dtype).device(device));
      if (c.model_type == "resnet") x = x.contiguous(MemoryFormat::kChannelsLast);
      y = randint(1000, {o.batch}).to(device);
    }
  }

  bool is_text() const { return !model || std::dynamic_pointer_cast<models::CausalLM>(model); }
  // With autocast the weights and the losses are f32, as in PyTorch.
  Step loss(const Options& o) const {
    Step plain = loss_of_model();
    if (o.dtype != "autocast") return plain;
    return [plain, device = parse_device(o.device).type](const Tensor& x, const Tensor& y) {
      AutocastGuard autocast(device, kBFloat16);
      return plain(x, y);
    };
  }
  Step loss_of_model() const {
    auto loss_of_text = [](const Tensor& logits, const Tensor& y) {
      return cross_entropy(logits.reshape({-1, logits.size(-1)}).to(kFloat32), y.reshape({-1}));
    };
    if (!model)
      return [=, text = plain](const Tensor& x, const Tensor& y) { return loss_of_text(text->forward(x), y); };
    if (auto text = std::dynamic_pointer_cast<models::CausalLM>(model))
      return [=](const Tensor& x, const Tensor& y) { return loss_of_text(text->forward(x), y); };
    auto images = std::dynamic_pointer_cast<models::ImageClassifier>(model);
    return [images](const Tensor& x, const Tensor& y) { return cross_entropy(images->forward(x).to(kFloat32), y); };
  }
  Step step(Step loss) {
    return [this, loss](const Tensor& x, const Tensor& y) {
      optimizer->zero_grad();
      Tensor l = loss(x, y);
      l.backward();
      nn::utils::clip_grad_norm_(parameters, 1.0);
      optimizer->step();
      return l.detach();
    };
  }
};

Json host_times(const Pass& pass, int repeats) {
  pass();
  std::vector<double> rounds;
  for (int i = 0; i < repeats; ++i) rounds.push_back(timed([&] { pass().item(); }));
  Timing t = summarize(rounds);
  return {{"p50", t.median * 1e3}, {"best", t.best * 1e3}, {"deviation", t.deviation}};
}

Json measure(const Options& o, const std::string& way) {
  Training training(o);
  CompileOptions options{.mode = parse_mode(o.mode), .dynamic = Dynamic::kFalse, .name = way};
  options.options["activation_memory"] = o.budget;
  Step loss = training.loss(o);
  if (way == "loss") loss = compile(loss, options);
  Step step = training.step(loss);
  if (o.explain) {
    std::cout << compiler::explain(compile(step, options), training.x, training.y).fusion();
    return nullptr;
  }
  if (way == "whole") step = compile(step, options);
  Pass pass = [&] { return step(training.x, training.y); };
  const bool gpu = o.device != "cpu";
  double first = timed([&] { pass().item(); }), second = timed([&] { pass().item(); });
  if (!gpu) reset_cpu_memory_peak();
  if (o.profile) {
    for (int i = 0; i < 2; ++i) pass();
    Profile profile([&] {
      for (int i = 0; i < 3; ++i) pass();
    });
    std::cout << profile.table(70);
    return nullptr;
  }
  Json times = gpu ? device_times(pass, o.repeats) : host_times(pass, o.repeats);
  Json row{{"model", o.config}, {"how", way}, {"mode", o.mode}, {"batch", o.batch}, {"dtype", o.dtype},
           {"step_ms", times}, {"first_s", first}, {"second_s", second}, {"loss", pass().item<double>()}};
  row["peak_gb"] = double(gpu ? runtime::cuda_memory_stats(0).peak : cpu_memory_stats().peak) / 1e9;
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options o = parse(argc, argv);
    for (auto& way : o.ways) {
      Json row = measure(o, way);
      if (!row.is_null()) std::cout << row.dump() << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
