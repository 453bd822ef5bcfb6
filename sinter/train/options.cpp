#include "sinter/train/options.h"

#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/capture/options.h"
#include "sinter/tensor/device.h"
#include "sinter/tensor/dtype.h"

namespace sinter::train {

using nlohmann::json;

namespace {

void check_range(const char* name, double value, double low, double high) {
  sinter::check(value >= low && value <= high, "train: --{} {} is not between {} and {}", name, value, low, high);
}

void check_least(const char* name, int64_t value, int64_t least) {
  sinter::check(value >= least, "train: --{} {} is below {}", name, value, least);
}

void check_one_of(const char* name, const std::string& value, std::initializer_list<const char*> known) {
  std::string list;
  for (auto* one : known) {
    if (value == one) return;
    list += (list.empty() ? "" : ", ") + std::string(one);
  }
  throw_error(format("train: --{} '{}' is none of {}", name, value, list));
}

}  // namespace

void TrainOptions::check() const {
  sinter::check(
      model.empty() != config.empty(),
      "train: give a checkpoint to fine-tune (--model) or a config.json to train from random weights (--config), "
      "one of the two");
  sinter::check(!data.empty(), "train: give the text or the pictures to train on (--data)");
  sinter::check(!out.empty(), "train: give the folder for checkpoints and losses (--out)");
  for (auto& [name, value] :
       {std::pair("steps", steps), {"batch", batch}, {"length", length}, {"accumulate", accumulate}})
    check_least(name, value, 1);
  for (auto& [name, value] : {std::pair("warmup", warmup),
                              {"eval-every", eval_every},
                              {"save-every", save_every},
                              {"keep", keep},
                              {"workers", workers},
                              {"seed", seed},
                              {"lora-rank", lora_rank}})
    check_least(name, value, 0);
  check_range("lr", lr, 0, 1e3);
  check_range("final-lr", final_lr, 0, lr);
  check_range("weight-decay", weight_decay, 0, 1e3);
  check_range("clip", clip, 0, 1e9);
  check_range("loss-scale", loss_scale, 1e-6, 1e30);
  check_range("noise", noise, 0, 1);
  check_range("held-out", held_out, 0, 0.9);
  sinter::check(!trains_adapter() || !model.empty(),
                "train: an adapter is for a model that exists; name it with --model");
  sinter::check(trains_adapter() || !merge,
                "train: --merge is for adapters; say what kind with --lora-rank or --adapter");
  sinter::check(lora_rank == 0 || adapter.empty(), "train: --adapter has its own rank; leave out --lora-rank");
  check_one_of("schedule", schedule, {"constant", "linear", "cosine"});
  check_one_of("autocast", autocast, {"none", "bf16", "f16"});
  if (!save_dtype.empty()) check_one_of("save-dtype", save_dtype, {"f32", "bf16", "f16"});
  if (mode != "eager") parse_mode(mode);
  parse_device(device);
}

std::string to_json(const TrainOptions& options) {
  json out = json::object();
  for_each_option(options, [&](const OptionText& text, const auto& field) { out[text.name] = field; });
  return out.dump();
}

TrainOptions resumed(const TrainOptions& options, const std::set<std::string>& given, const std::string& stored) {
  json before = json::parse(stored);
  TrainOptions out = options;
  for_each_option(out, [&](const OptionText& text, auto& field) {
    auto found = before.find(text.name);
    if (found == before.end()) return;
    auto value = found->get<std::remove_cvref_t<decltype(field)>>();
    if (!given.contains(text.name)) {
      field = value;
      return;
    }
    check(text.may_change || field == value,
          "train: --{} was {} when the run began; leave it out to go on, or begin another run with another --out",
          text.name, found->dump());
  });
  return out;
}

}  // namespace sinter::train
