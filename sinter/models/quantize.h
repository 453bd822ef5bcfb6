#pragma once
// Which layers of a model are quantised, and how; and how a configuration tells of it. Internal to models/.
#include <map>
#include <string>

#include "sinter/models/models.h"
#include "sinter/nn/quantize.h"

namespace sinter::models {

// Quantises the linear layers of a model one by one, as soon as their weights are there. Embeddings and norms stay, and so does
// what shares its memory with an embedding. The layer that gives logits has eight bits at least.
class Quantizer {
 public:
  // "int8", "int4" or "fp8".
  Quantizer(Model& model, const std::string& format);

  // `name` is a tensor of the state dict. Its layer is quantised if it is the weight of one, which nobody else may hold then, and
  // what it becomes is put on this device.
  bool is_wanted(const std::string& name) const { return layers_.contains(name); }
  void filled(const std::string& name, Device device);
  // The weights of the layer that gives logits, and of the embedding of as many ids, by their names; empty: there is none.
  const std::string& head() const { return head_; }
  const std::string& embedding() const { return embedding_; }

 private:
  struct Layer {
    nn::LinearImpl* layer;
    Encoding encoding;
  };
  std::map<std::string, Layer> layers_;  // by the names of their weights
  std::string head_, embedding_;
};

bool is_quantized(const Model& model);
// The same configuration with a head that shares nothing with the embedding.
ConfigFile untied(const ConfigFile& file);
// The configuration of a model whose layers are quantised: that it was made from, and what they became.
std::string quantized_config(Model& model, const ConfigFile& file);
// Gives a model made from such a configuration the layers that it tells of, with memory for the tensors of `state`.
void make_quantized(Model& model, const ConfigFile& file, const NamedTensors& state, Device device);

}  // namespace sinter::models
