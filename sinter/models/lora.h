#pragma once
// Low-rank adapters: y = W x + alpha / rank · B A x in the place of W x, where A and B are trained and W is not.
// Files are those of PEFT: adapter_config.json and adapter_model.safetensors.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/models/models.h"
#include "sinter/nn/linear.h"

namespace sinter::models {

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16;
  // Which linear layers, by the ends of their names in the checkpoint ("q_proj", "mlp.up_proj"); none: all but the
  // head.
  std::vector<std::string> targets = {};
};

class Lora {
 public:
  // A new one, that changes nothing yet: A is drawn from the default generator, B is zero. In f32, on the model's
  // device. An
  // Error names targets that meet no layer.
  Lora(const std::shared_ptr<Model>& model, const LoraOptions& options);
  // One from a folder.
  Lora(const std::shared_ptr<Model>& model, const std::string& folder);
  ~Lora();
  Lora(const Lora&) = delete;

  // The model's layers go through it from now on, as long as it lives.
  void attach();
  // Adds it to the model's own weights.
  void merge() const;

  // "model.layers.0.self_attn.q_proj.lora_A.weight" and so on, leaves that want gradients.
  NamedTensors parameters() const;
  const LoraOptions& options() const { return options_; }
  // The two files, each whole or not at all. `base` is where the model came from, for people and for PEFT.
  void save(const std::string& folder, const std::string& base, std::optional<DType> dtype = {}) const;

  // While alive, the model's own weights are W + alpha / rank · B A, to be saved; afterwards what they were.
  class Merged {
   public:
    explicit Merged(const Lora& lora);
    ~Merged();
    Merged(const Merged&) = delete;

   private:
    std::vector<std::pair<Tensor, Tensor>> before_;  // a weight, and what it was
  };

 private:
  struct Layer;
  void add(const std::string& name, nn::LinearImpl& layer, const Tensor& a, const Tensor& b);

  std::shared_ptr<Model> model_;
  LoraOptions options_;
  double scale_ = 1;
  std::vector<Layer> layers_;
};

}  // namespace sinter::models
