#pragma once
// Models, and how they are made from checkpoints and from names. A model is a module with a configuration, called with
// named tensors where the kind of model does not matter. Models are made for inference: they start in eval mode, and
// their parameters do not require gradients.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/base/fields.h"
#include "sinter/io/config.h"
#include "sinter/nn/module.h"

namespace sinter SINTER_API {
namespace models {

// Rotary position embeddings, with the ways in which checkpoints stretch them to longer texts.
struct RopeConfig {
  std::string type = "default";  // or linear, dynamic, yarn, llama3, longrope
  int64_t dim = 0;               // how many elements of a head are rotated: the first ones, or none
  double theta = 10000;
  double factor = 1;
  int64_t max_positions = 0, original_max_positions = 0;
  double attention_factor = 1;                       // multiplies cos and sin
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool interleaved = false;                          // neighbours are rotated, not halves against each other
  bool truncate = true;                              // yarn
  std::vector<double> short_factor, long_factor;     // longrope
  bool operator==(const RopeConfig&) const = default;

  // From config.json in the newer form (rope_parameters, perhaps one object a layer type) or the older one (rope_theta,
  // rope_scaling). `part` of a head is rotated where the file does not say.
  static RopeConfig read(const ConfigFile& file, int64_t head_dim, const std::string& layer_type = "", double part = 1);
};

// How a norm of a decoder computes: by the mean square, the same with 1 + weight, or by mean and variance.
enum class NormKind : uint8_t { kRms, kUnitOffsetRms, kLayer };
// Which norms query and key have: none, of each head with weights that all heads share or that each has for itself (as one
// matrix, or as a list of modules), or one over all heads.
enum class QkNorm : uint8_t { kNone, kSharedByHeads, kOfEachHead, kListOfHeads, kWhole };
// Where a layer has its norms: before attention and MLP, also behind them, or only behind. Side by side, both read the same
// input, by one norm or by one each.
enum class BlockOrder : uint8_t { kNormsBefore, kNormsAround, kNormsBehind, kSideBySide, kSideBySideTwoNorms };
// Query, key and value as projections of their own, as one after the other, or as one in which each key's head follows the
// query heads that it serves, and the value's head follows it.
enum class QkvLayout : uint8_t { kSeparate, kJoined, kJoinedByGroup };
// activation(gate) * up, as two projections or as one, or the activation alone.
enum class MlpKind : uint8_t { kGated, kJoinedGated, kPlain };

// Sizes and switches of a model; a family's file says which of them it reads, and how they follow from config.json.
struct ModelConfig {
  std::string architecture, model_type;  // "LlamaForCausalLM", "llama"
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t max_positions = 0;
  double norm_eps = 1e-5;
  std::string activation = "silu";  // as activate() knows it
  bool tie_embeddings = false;
  int64_t image_size = 224, channels = 3;  // of the images that a classifier takes

  // Decoders of the Llama kind.
  QkvLayout qkv_layout = QkvLayout::kSeparate;
  MlpKind mlp = MlpKind::kGated;
  BlockOrder order = BlockOrder::kNormsBefore;
  NormKind norm = NormKind::kRms;
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, norm_bias = false, head_bias = false;
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  bool alibi = false;  // scores fall with the distance of a key, in each head by a slope of its own
  // Experts in place of the MLP, where there are any, but for the dense layers; beside them perhaps one for all tokens.
  int64_t experts = 0, experts_per_token = 0, expert_size = 0, shared_expert_size = 0;
  bool expert_weights_add_up = true;  // to 1, over the chosen ones
  std::vector<int64_t> dense_layers;
  std::optional<double> attention_scale, attention_softcap, logit_softcap;
  std::vector<RopeConfig> ropes;    // the distinct ones
  std::vector<int64_t> layer_rope;  // by layer, into ropes; empty: the first for all
  std::vector<int64_t> windows;     // by layer: how many positions a token sees, itself included; 0: all. Empty: all

  int64_t window(int64_t layer) const { return windows.empty() ? 0 : windows[size_t(layer)]; }
  // Only the names filled in.
  static ModelConfig named(const ConfigFile& file);
  // Also the sizes and the like, as nearly all families call them.
  static ModelConfig common(const ConfigFile& file);
  // An Error that names the file where heads do not divide the rest, or a size is beyond reason.
  void check_sizes(const ConfigFile& file) const;
};

class Model : public nn::Module {
 public:
  explicit Model(ModelConfig config) : config_(std::move(config)) {}
  const ModelConfig& config() const { return config_; }
  int64_t parameter_count() const;

  // "input_ids", "attention_mask", "pixel_values" … in; "logits" or "last_hidden_state" out.
  virtual NamedTensors run(const NamedTensors& inputs) = 0;

  // Known by its configuration, so that compiled programs are found without tracing, as long as nothing but the values of
  // its tensors has changed since it was made.
  std::shared_ptr<const capture::Fingerprint> fingerprint() override { return fingerprint(""); }
  // The same for a function of the model other than its forward pass: `function` says which, and all that it depends on
  // beside the model and its arguments.
  std::shared_ptr<const capture::Fingerprint> fingerprint(const std::string& function);
  // To be told once by who makes a model, when it is complete: the text that it is made from.
  void set_origin(std::string configuration);
  // That text; empty for a model of the user's own.
  const std::string& origin() const { return origin_; }

 protected:
  // Tensors that a forward pass reads beside parameters and buffers.
  void add_constants(const std::vector<Tensor>& tensors) {
    constants_.insert(constants_.end(), tensors.begin(), tensors.end());
  }

  ModelConfig config_;

 private:
  std::string origin_;
  std::vector<Tensor> constants_;
  uint64_t made_ = 0;  // of the states of its modules when it was made
};

// What an encoder has made of its input, as the layers of a decoder see it.
struct Source {
  TensorList keys, values;     // per layer [batch, heads, length, head_dim]
  std::optional<Tensor> mask;  // bool [batch, 1, 1, length]: which places there are; without, all
  SINTER_FIELDS(keys, values, mask)
};

// Keys and values of the positions so far, in memory of a fixed length: per layer [batch, kv_heads, length, head_dim].
// A forward pass writes the rows of its positions in place.
//
// Or in pages that sequences of different lengths share: with a `table` it is [pages, kv_heads, page, head_dim], and
// position p of row r lies in page table[r, p / page]. Positions are then [batch, tokens], one after the other in each
// row, and the first counts[r] tokens of a row are its own; what is behind them is padding, whose keys go to page 0,
// which belongs to nobody.
struct KvCache {
  TensorList keys, values;
  Source source = {};  // of an encoder-decoder
  // Whether a pass begins its sequences: its tokens are then the first ones, and see each other alone. Not with pages.
  bool begins = false;
  // Of a cache of i8, for each of its rows: what the codes are multiplied by, [batch, kv_heads, length, 1].
  TensorList key_scales = {}, value_scales = {};
  std::optional<Tensor> table = {}, counts = {};  // i64 [batch, n] and [batch]
  SINTER_FIELDS(keys, values, source, begins, key_scales, value_scales, table, counts)
};

// A model that writes a text token by token.
class TextDecoder : public Model {
 public:
  using Model::Model;

  // Logits [batch, tokens, vocab] of ids [batch, tokens] (i64). positions, [tokens] or [batch, tokens], are those of
  // the ids in their sequences, and the rows of the cache that they take. With a cache a token sees the rows 0 to its
  // own position; so a prompt shorter than its row of ids is padded behind, with any ids: nobody looks at what follows
  // before it is overwritten. Without a cache a token sees the ids up to itself. `mask`, where given, restricts that
  // further: a bool one says what may be seen, a floating one is added; it broadcasts to [batch, 1, tokens, length].
  // `wanted` [batch], where given, is the place in each row of ids whose logits are asked for: the result is [batch, 1,
  // vocab].
  //
  // To compile a step, hand the cache in as an argument, so that one program serves every cache and every position:
  //   compile([model](const Tensor& ids, const Tensor& positions, KvCache cache) {
  //     return model->forward(ids, positions, {}, &cache);
  //   });
  virtual Tensor forward(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask,
                         KvCache* cache, const std::optional<Tensor>& wanted = {}) = 0;

  // Zeros, in the type and on the device of the parameters unless told otherwise. i8: rows are stored as codes, with a scale each in
  // the parameters' type, and decoded for each step: half the memory of bf16, for some time.
  KvCache make_cache(int64_t batch, int64_t length, std::optional<DType> dtype = {}) const;
  // The same for so many pages; table and counts are the caller's to set.
  KvCache make_pages(int64_t pages, int64_t page, std::optional<DType> dtype = {}) const {
    return make_cache(pages, page, dtype);
  }
};

// One that goes on with a text.
class CausalLM : public TextDecoder {
 public:
  using TextDecoder::forward;
  using TextDecoder::TextDecoder;

  // Whole sequences without a cache.
  Tensor forward(const Tensor& ids);
  NamedTensors run(const NamedTensors& inputs) override;
};

// One that reads something else first: ids of a text, [batch, tokens], or features of a sound, [batch, features, frames].
//
//   KvCache cache = model->make_cache(1, 64);
//   cache.source = model->read(ids);
//   Tensor logits = model->forward(first, positions, {}, &cache);   // as of a CausalLM
//
// A cache that has nothing but a source is for whole sequences.
class EncoderDecoder : public TextDecoder {
 public:
  using TextDecoder::TextDecoder;

  // Hidden states of the encoder, [batch, length, hidden]. mask [batch, tokens]: not zero where there is a token.
  virtual Tensor encode(const Tensor& input, const std::optional<Tensor>& mask) = 0;
  // What the layers of the decoder attend to, of hidden states.
  virtual Source source_of(const Tensor& encoded, const std::optional<Tensor>& mask) = 0;
  Source read(const Tensor& input, const std::optional<Tensor>& mask = {}) {
    return source_of(encode(input, mask), mask);
  }
  // input_ids or input_features, perhaps attention_mask, and decoder_input_ids.
  NamedTensors run(const NamedTensors& inputs) override;
};

// A model that gives hidden states of a text: [batch, tokens, hidden].
class TextEncoder : public Model {
 public:
  using Model::Model;
  // attention_mask [batch, tokens]: not zero where there is a token. token_types: 0 without.
  virtual Tensor forward(const Tensor& ids, const std::optional<Tensor>& attention_mask,
                         const std::optional<Tensor>& token_types) = 0;
  Tensor forward(const Tensor& ids) { return forward(ids, {}, {}); }
  NamedTensors run(const NamedTensors& inputs) override;
};

// A model that classifies images: [batch, channels, height, width] to [batch, classes].
class ImageClassifier : public Model {
 public:
  using Model::Model;
  virtual Tensor forward(const Tensor& pixels) = 0;
  NamedTensors run(const NamedTensors& inputs) override;
};

// --- from checkpoints and from names

struct FromOptions {
  std::optional<DType> dtype = {};  // that of the checkpoint by default; f32 for a model made from a name
  Device device = {};
  // "int8", "int4" or "fp8": what the weights of linear layers become while they are read, one after the other (quantize_ below).
  // Empty: they stay.
  std::string quantize = {};
  // Bytes of parameters filled so far, and all of them.
  std::function<void(int64_t done, int64_t total)> progress = {};
};

// The model of a folder with config.json and safetensors, of a hub id "org/name" in the local Hugging Face cache, or of a GGUF
// file; nothing is downloaded. Weights are read through a mapping, converted on the way, one file after the other. An Error
// names what is missing, left over or of the wrong shape.
std::shared_ptr<Model> from_pretrained(const std::string& folder_or_id, const FromOptions& options = {});

// A model of well-known sizes with random weights, drawn from the default generator: for benchmarks. config_names()
// lists the names, "llama-1b" among them.
std::shared_ptr<Model> from_config(const std::string& name, const FromOptions& options = {});
// The same for any config.json.
std::shared_ptr<Model> from_config(const ConfigFile& file, const FromOptions& options = {});
std::vector<std::string> config_names();
// The text of a config.json with the sizes of this name.
std::string config_text(const std::string& name);

// A model with the tensors of a state dict, whose names and types are the model's own. On the CPU the model takes them as
// they are, without a copy; so a mapped file is read when it is first computed with.
std::shared_ptr<Model> from_state(const ConfigFile& file, const NamedTensors& state, Device device = {});

// --- and back: what from_pretrained and transformers load, of models that were made by one of the above and predict tokens
// or classify images

// Parameters and persistent buffers on the host, as the model's checkpoint names and stores them, those of floating-point
// types in `dtype` where one is given.
NamedTensors checkpoint_state(const Model& model, std::optional<DType> dtype = {});
// The same for the name of one, "layers.0.mlp.up_proj.weight".
std::string checkpoint_name(const Model& model, const std::string& name);
// config.json and model.safetensors, into a folder that is made where it is missing. Each appears whole or not at all. Quantised
// layers are written in the layout of compressed-tensors; an Error tells which that does not have.
void save_pretrained(const Model& model, const std::string& folder, std::optional<DType> dtype = {});

// The weights of all linear layers in fewer bits (nn/quantize.h): "int8" or "fp8", one scale a row, or "int4", in groups of 128
// columns, of 32 where a row has less than 1024. Embeddings and norms stay, and so does a layer that shares an embedding's memory; the one that
// gives logits has eight bits. Needs no data. Gives the number of layers.
int64_t quantize_(Model& model, const std::string& format);

// The model as one that goes on with a text, or as one that reads something first; an Error where it is not.
std::shared_ptr<CausalLM> causal_lm(const std::shared_ptr<Model>& model);
std::shared_ptr<EncoderDecoder> encoder_decoder(const std::shared_ptr<Model>& model);

}  // namespace models
}  // namespace sinter
