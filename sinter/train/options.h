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
  double loss_scale = 65536;
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
  const char *group, *name, *help;
  bool may_change = false;  // in a run that is resumed
};

// f(text, field) for each; `Options` is TrainOptions or const.
template <class Options, class F>
void for_each_option(Options& o, F f) {
  const char* group = nullptr;
  auto option = [&](const char* name, auto& field, const char* help, bool may_change = false) {
    f(OptionText{group, name, help, may_change}, field);
  };
  group = "Model and data";
  option("model", o.model, "Checkpoint to fine-tune: a folder, or a hub id in the local Hugging Face cache", true);
  option("config", o.config, "Train from random weights: a config.json, its folder, or a name such as llama-125m",
         true);
  option("tokenizer", o.tokenizer, "Folder of tokenizer.json, where the model's has none", true);
  option("data", o.data, "A text file; for a classifier a folder with a folder of pictures for each class", true);
  option("length", o.length, "Tokens in an example");
  option("noise", o.noise, "Share of the ids that go in which are replaced by random ones");
  option("held-out", o.held_out, "Share of the data that is never trained on: the end of a text, some of the pictures");
  group = "Steps";
  option("steps", o.steps, "Steps of the optimiser in all", true);
  option("batch", o.batch, "Examples in a batch");
  option("accumulate", o.accumulate, "Batches whose gradients make up one step");
  option("autocast", o.autocast, "Products in this type, weights and sums in f32: none, bf16 or f16");
  option("loss-scale", o.loss_scale, "f16: what the loss is scaled up by at first, so that gradients do not vanish");
  option("device", o.device, "Where to train: cpu, cuda, cuda:1", true);
  option("mode", o.mode, "How steps run: default, reduce-overhead, max-autotune, or eager", true);
  option("workers", o.workers, "Threads that make batches; 0: the one that trains", true);
  option("seed", o.seed, "Of random weights, order and noise");
  group = "Optimiser";
  option("lr", o.lr, "Learning rate at its highest");
  option("warmup", o.warmup, "Steps in which the rate rises from next to nothing");
  option("schedule", o.schedule, "How the rate falls after that: constant, linear or cosine");
  option("final-lr", o.final_lr, "Where it falls to");
  option("beta1", o.beta1, "AdamW's decay of the mean of gradients");
  option("beta2", o.beta2, "AdamW's decay of the mean of their squares");
  option("weight-decay", o.weight_decay, "AdamW's weight decay, of matrices; biases and norms have none");
  option("clip", o.clip, "The norm that gradients are scaled down to; 0: as they are");
  group = "Adapter (LoRA)";
  option("lora-rank", o.lora_rank, "Train an adapter of this rank and leave the model as it is; 0: train the model");
  option("lora-alpha", o.lora_alpha, "Times this over the rank is what an adapter adds");
  option("lora-targets", o.lora_targets, "Linear layers that get one: q_proj,v_proj (default: all but the head)");
  option("adapter", o.adapter, "Folder of an adapter to go on with, in the place of --lora-rank", true);
  option("merge", o.merge, "Write the model with the adapter added to its weights, not the adapter", true);
  group = "What is told and written";
  option("eval-every", o.eval_every, "Steps from one look at the held-out data to the next; 0: at the end alone", true);
  option("save-every", o.save_every, "Steps from one checkpoint to the next; 0: at the end alone", true);
  option("keep", o.keep, "Checkpoints to keep, the newest; 0: all", true);
  option("save-dtype", o.save_dtype, "Type of the weights in a checkpoint: f32, bf16, f16 (default: the model's)",
         true);
}

// The options as a JSON object, but for `out`.
std::string to_json(const TrainOptions& options);
// Those of a run that goes on: what `stored` (to_json's) says, where `given` does not name an option. An Error names
// one that is given, differs from what is stored, and may not change.
TrainOptions resumed(const TrainOptions& options, const std::set<std::string>& given, const std::string& stored);

}  // namespace sinter::train
