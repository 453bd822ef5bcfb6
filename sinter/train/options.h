#pragma once
// What a training run is asked for. Each option is listed once, with its help: the command line, the file that a
// checkpoint keeps them in, and the comparison when a run is resumed read that list.
#include <cstdint>
#include <set>
#include <string>

namespace sinter::train {

struct TrainOptions {
  std::string model, config, tokenizer, data, out;
  int64_t steps = 1000, batch = 8, length = 256, accumulate = 1;
  double lr = 3e-4, final_lr = 0, beta1 = 0.9, beta2 = 0.999, weight_decay = 0.01, clip = 1;
  int64_t warmup = 0;
  std::string schedule = "cosine", autocast = "none", save_dtype;
  double noise = 0, held_out = 0.05;
  int64_t eval_every = 100, save_every = 500, keep = 2, seed = 0, workers = 1;
  std::string device = "cpu", mode = "default";
  int64_t lora_rank = 0;
  double lora_alpha = 16;
  std::string lora_targets, adapter;
  bool merge = false;

  bool trains_adapter() const { return lora_rank > 0 || !adapter.empty(); }
  // An Error that names the option where one makes no sense.
  void check() const;
};

struct OptionText {
  const char *name, *help;
  bool may_change = false;  // in a run that is resumed
};

// f(text, field) for each; `Options` is TrainOptions or const.
template <class Options, class F>
void for_each_option(Options& o, F f) {
  using Text = OptionText;
  f(Text{"model", "Checkpoint to fine-tune: a folder, or a hub id in the local Hugging Face cache", true}, o.model);
  f(Text{"config", "Train from random weights: a config.json, its folder, or a name such as llama-125m", true},
    o.config);
  f(Text{"tokenizer", "Folder of tokenizer.json, where the model's has none", true}, o.tokenizer);
  f(Text{"data", "A text file; for a classifier a folder with a folder of pictures for each class", true}, o.data);
  f(Text{"steps", "Steps of the optimiser in all", true}, o.steps);
  f(Text{"batch", "Examples in a batch"}, o.batch);
  f(Text{"length", "Tokens in an example"}, o.length);
  f(Text{"accumulate", "Batches whose gradients make up one step"}, o.accumulate);
  f(Text{"lr", "Learning rate at its highest"}, o.lr);
  f(Text{"warmup", "Steps in which the rate rises from next to nothing"}, o.warmup);
  f(Text{"schedule", "How the rate falls after that: constant, linear or cosine"}, o.schedule);
  f(Text{"final-lr", "Where it falls to"}, o.final_lr);
  f(Text{"beta1", "AdamW's decay of the mean of gradients"}, o.beta1);
  f(Text{"beta2", "AdamW's decay of the mean of their squares"}, o.beta2);
  f(Text{"weight-decay", "AdamW's weight decay, of matrices; biases and norms have none"}, o.weight_decay);
  f(Text{"clip", "The norm that gradients are scaled down to; 0: as they are"}, o.clip);
  f(Text{"noise", "Share of the ids that go in which are replaced by random ones"}, o.noise);
  f(Text{"autocast", "Products in this type, weights and sums in f32: none or bf16"}, o.autocast);
  f(Text{"held-out", "Share of the data that is never trained on: the end of a text, some of the pictures"},
    o.held_out);
  f(Text{"lora-rank", "Train an adapter of this rank and leave the model as it is; 0: train the model"}, o.lora_rank);
  f(Text{"lora-alpha", "Times this over the rank is what an adapter adds"}, o.lora_alpha);
  f(Text{"lora-targets", "Linear layers that get one: q_proj,v_proj (default: all but the head)"}, o.lora_targets);
  f(Text{"adapter", "Folder of an adapter to go on with, in the place of --lora-rank", true}, o.adapter);
  f(Text{"merge", "Write the model with the adapter added to its weights, not the adapter", true}, o.merge);
  f(Text{"eval-every", "Steps from one look at the held-out data to the next; 0: at the end alone", true},
    o.eval_every);
  f(Text{"save-every", "Steps from one checkpoint to the next; 0: at the end alone", true}, o.save_every);
  f(Text{"keep", "Checkpoints to keep, the newest; 0: all", true}, o.keep);
  f(Text{"save-dtype", "Type of the weights in a checkpoint: f32, bf16, f16 (default: the model's)", true},
    o.save_dtype);
  f(Text{"seed", "Of random weights, order and noise"}, o.seed);
  f(Text{"workers", "Threads that make batches; 0: the one that trains", true}, o.workers);
  f(Text{"device", "Where to train: cpu, cuda, cuda:1", true}, o.device);
  f(Text{"mode", "How steps run: default, reduce-overhead, max-autotune, or eager", true}, o.mode);
}

// The options as a JSON object, but for `out`.
std::string to_json(const TrainOptions& options);
// Those of a run that goes on: what `stored` (to_json's) says, where `given` does not name an option. An Error names
// one that is given, differs from what is stored, and may not change.
TrainOptions resumed(const TrainOptions& options, const std::set<std::string>& given, const std::string& stored);

}  // namespace sinter::train
