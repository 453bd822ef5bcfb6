// config.json and generation_config.json out of the values of a GGUF file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "sinter/base/error.h"
#include "sinter/io/gguf/gguf.h"

namespace sinter::gguf {

namespace {

using Json = nlohmann::json;

// Values of the file's architecture: "llama.block_count" as "block_count".
class Values {
 public:
  Values(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  bool has(const std::string& key) const { return file_.contains(prefix_ + key); }
  int64_t integer(const std::string& key) const { return file_.integer(prefix_ + key); }
  double number(const std::string& key) const { return file_.number(prefix_ + key); }
  double number(const std::string& key, double otherwise) const { return file_.number(prefix_ + key, otherwise); }
  bool boolean(const std::string& key, bool otherwise) const { return file_.boolean(prefix_ + key, otherwise); }
  std::string text(const std::string& key, const std::string& otherwise) const {
    return file_.text(prefix_ + key, otherwise);
  }
  // What may be told for each layer, and is the same for all.
  int64_t of_all_layers(const std::string& key) const {
    if (is_single(key)) return integer(key);
    auto& list = file_.integers(prefix_ + key);
    check(!list.empty() && std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == list[0]; }),
          "gguf: '{}' has layers that differ in {}{}; such models are not read", file_.path(), prefix_, key);
    return list[0];
  }
  bool has_tensor(const char* name) const { return file_.find(name) != nullptr; }
  const GgufFile& file() const { return file_; }

 private:
  bool is_single(const std::string& key) const {
    try {
      integer(key);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  const GgufFile& file_;
  std::string prefix_;
};

int64_t head_dim(const Values& v) {
  if (v.has("attention.key_length")) return v.integer("attention.key_length");
  const int64_t heads = v.of_all_layers("attention.head_count");
  check(heads > 0, "gguf: '{}' has {} heads", v.file().path(), heads);
  return v.integer("embedding_length") / heads;
}

std::vector<float> floats_of(const Values& v, const char* name) {
  const GgufTensor& tensor = *v.file().find(name);
  check(tensor.type.name == std::string_view("F32"), "gguf: '{}' in '{}' is {}, not F32", name, v.file().path(),
        tensor.type.name);
  std::vector<float> out(tensor.size / sizeof(float));
  std::copy_n(v.file().data(tensor), tensor.size, reinterpret_cast<uint8_t*>(out.data()));
  return out;
}

// rope_parameters, of the layers that see everything.
Json rope(const Values& v) {
  Json out = {{"rope_type", "default"}, {"rope_theta", v.number("rope.freq_base", 10000)}};
  const int64_t dim = head_dim(v), rotated = v.has("rope.dimension_count") ? v.integer("rope.dimension_count") : dim;
  check(dim > 0, "gguf: '{}' has heads of {}", v.file().path(), dim);
  out["partial_rotary_factor"] = double(rotated) / double(dim);
  const std::string type = v.text("rope.scaling.type", "none");
  if (v.has("rope.scaling.original_context_length"))
    out["original_max_position_embeddings"] = v.integer("rope.scaling.original_context_length");
  // One frequency after the other is divided: what Llama 3's rule comes to, or the two lists of Phi 3.
  const bool two = v.has_tensor("rope_factors_long.weight");
  if (two || v.has_tensor("rope_freqs.weight")) {
    check(!two || v.has_tensor("rope_factors_short.weight"), "gguf: '{}' lacks 'rope_factors_short.weight'",
          v.file().path());
    out["rope_type"] = "longrope";
    out["long_factor"] = floats_of(v, two ? "rope_factors_long.weight" : "rope_freqs.weight");
    out["short_factor"] = floats_of(v, two ? "rope_factors_short.weight" : "rope_freqs.weight");
    out["attention_factor"] = v.number("rope.scaling.attn_factor", 1);
  } else if (type == "linear" || type == "yarn") {
    out["rope_type"] = type;
    out["factor"] = v.number("rope.scaling.factor", 1);
    if (v.has("rope.scaling.yarn_beta_fast")) out["beta_fast"] = v.number("rope.scaling.yarn_beta_fast");
    if (v.has("rope.scaling.yarn_beta_slow")) out["beta_slow"] = v.number("rope.scaling.yarn_beta_slow");
  } else {
    check(type == "none" || type == "longrope", "gguf: '{}' stretches positions by '{}', which is not known",
          v.file().path(), type);
  }
  return out;
}

void add_rms(const Values& v, Json& c) { c["rms_norm_eps"] = v.number("attention.layer_norm_rms_epsilon"); }

void llama(const Values& v, Json& c) {
  add_rms(v, c);
  c["attention_bias"] = v.has_tensor("blk.0.attn_output.bias");
  c["mlp_bias"] = v.has_tensor("blk.0.ffn_down.bias");
}

void granite(const Values& v, Json& c) {
  llama(v, c);
  c["attention_multiplier"] = v.number("attention.scale");
  c["embedding_multiplier"] = v.number("embedding_scale", 1);
  c["residual_multiplier"] = v.number("residual_scale", 1);
  c["logits_scaling"] = v.number("logit_scale", 1);
}

void gemma(const Values& v, Json& c) {
  add_rms(v, c);
  c["hidden_activation"] = "gelu_pytorch_tanh";
}

// Files do not say how queries are scaled. The largest models of both generations, known by their layers, divide by the
// root of the width a head, the others by that of a head's size.
int64_t gemma_query_scale(const Values& v, int64_t largest) {
  return v.integer("block_count") == largest ? v.integer("embedding_length") / v.of_all_layers("attention.head_count")
                                             : head_dim(v);
}

void add_layer_types(const Values& v, Json& c, int64_t period) {
  if (v.has("attention.sliding_window_pattern")) period = v.integer("attention.sliding_window_pattern");
  check(period > 0, "gguf: '{}' has a sliding_window_pattern of {}", v.file().path(), period);
  const int64_t window = v.has("attention.sliding_window") ? v.integer("attention.sliding_window") : 0;
  std::vector<std::string> types;
  for (int64_t layer = 1; layer <= v.integer("block_count"); ++layer)
    types.push_back(window == 0 || layer % period == 0 ? "full_attention" : "sliding_attention");
  c["layer_types"] = types;
  if (window > 0) c["sliding_window"] = window;
}

void gemma2(const Values& v, Json& c) {
  gemma(v, c);
  c["query_pre_attn_scalar"] = gemma_query_scale(v, 46);
  c["attn_logit_softcapping"] = v.number("attn_logit_softcapping", 50);
  c["final_logit_softcapping"] = v.number("final_logit_softcapping", 30);
  add_layer_types(v, c, 2);
}

void gemma3(const Values& v, Json& c) {
  gemma(v, c);
  c["query_pre_attn_scalar"] = gemma_query_scale(v, 62);
  if (v.has("final_logit_softcapping")) c["final_logit_softcapping"] = v.number("final_logit_softcapping");
  add_layer_types(v, c, 6);
  const Json local = {{"rope_type", "default"}, {"rope_theta", v.number("rope.freq_base_swa", 10000)}};
  c["rope_parameters"] = Json{{"full_attention", c["rope_parameters"]}, {"sliding_attention", local}};
}

void phi3(const Values& v, Json& c) {
  add_rms(v, c);
  if (v.has("attention.sliding_window") && v.integer("attention.sliding_window") > 0)
    c["sliding_window"] = v.integer("attention.sliding_window");
}

void phi2(const Values& v, Json& c) { c["layer_norm_eps"] = v.number("attention.layer_norm_epsilon"); }

void starcoder2(const Values& v, Json& c) {
  c["norm_epsilon"] = v.number("attention.layer_norm_epsilon");
  c["use_bias"] = v.has_tensor("blk.0.attn_q.bias");
}

void stablelm(const Values& v, Json& c) {
  c["layer_norm_eps"] = v.number("attention.layer_norm_epsilon");
  c["use_parallel_residual"] = v.boolean("use_parallel_residual", true);
  c["use_qkv_bias"] = v.has_tensor("blk.0.attn_q.bias");
  check(!v.has_tensor("blk.0.attn_q_norm.weight"),
        "gguf: '{}' has norms of query and key, which are not read in stablelm", v.file().path());
}

struct Architecture {
  const char *name, *model_type, *model;
  void (*add)(const Values& values, Json& config);
};

constexpr Architecture kArchitectures[] = {
    {"llama", "llama", "LlamaForCausalLM", llama},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", add_rms},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", add_rms},
    {"gemma", "gemma", "GemmaForCausalLM", gemma},
    {"gemma2", "gemma2", "Gemma2ForCausalLM", gemma2},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", gemma3},
    {"phi2", "phi", "PhiForCausalLM", phi2},
    {"phi3", "phi3", "Phi3ForCausalLM", phi3},
    {"granite", "granite", "GraniteForCausalLM", granite},
    {"olmo2", "olmo2", "Olmo2ForCausalLM", add_rms},
    {"starcoder2", "starcoder2", "Starcoder2ForCausalLM", starcoder2},
    {"stablelm", "stablelm", "StableLmForCausalLM", stablelm},
};

const Architecture& architecture_of(const GgufFile& file) {
  const std::string name = file.text("general.architecture");
  std::string known;
  for (auto& each : kArchitectures) {
    if (name == each.name) return each;
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw_error(
      format("gguf: '{}' is of the architecture '{}', which is not read; known are {}", file.path(), name, known));
}

int64_t vocab_size(const Values& v) {
  // The matrix decides: files may name fewer tokens than it has rows.
  const GgufTensor* table = v.file().find("token_embd.weight");
  check(table && table->shape.size() == 2, "gguf: '{}' has no matrix 'token_embd.weight'", v.file().path());
  return table->shape[0].number();
}

void add_id(const GgufFile& file, Json& config, const char* name, const char* key) {
  if (auto id = special_id(file, key)) config[name] = *id;
}

}  // namespace

std::string config(const GgufFile& file) {
  const Architecture& architecture = architecture_of(file);
  const Values v(file, architecture.name);
  const int64_t parts = file.integer("split.count", 0);
  check(parts <= 1,
        "gguf: '{}' is one of {} files of a model; join them first, with llama-gguf-split --merge for example",
        file.path(), parts);
  check(!v.has("expert_count") || v.integer("expert_count") == 0,
        "gguf: '{}' has experts, which are not read from such files", file.path());
  constexpr int64_t kMostLayers = 4096;
  const int64_t layers = v.integer("block_count");
  check(layers > 0 && layers <= kMostLayers, "gguf: '{}' has {} layers", file.path(), layers);
  Json c = {{"architectures", {architecture.model}}, {"model_type", architecture.model_type}};
  c["vocab_size"] = vocab_size(v);
  c["hidden_size"] = v.integer("embedding_length");
  c["intermediate_size"] = v.of_all_layers("feed_forward_length");
  c["num_hidden_layers"] = layers;
  c["num_attention_heads"] = v.of_all_layers("attention.head_count");
  if (v.has("attention.head_count_kv")) c["num_key_value_heads"] = v.of_all_layers("attention.head_count_kv");
  c["head_dim"] = head_dim(v);
  c["max_position_embeddings"] = v.integer("context_length");
  c["tie_word_embeddings"] = !v.has_tensor("output.weight");
  c["rope_parameters"] = rope(v);
  architecture.add(v, c);
  add_id(file, c, "bos_token_id", "tokenizer.ggml.bos_token_id");
  add_id(file, c, "eos_token_id", "tokenizer.ggml.eos_token_id");
  return c.dump();
}

std::string generation_config(const GgufFile& file) {
  Json c = Json::object();
  add_id(file, c, "bos_token_id", "tokenizer.ggml.bos_token_id");
  add_id(file, c, "pad_token_id", "tokenizer.ggml.padding_token_id");
  // A turn, a message and a text may each end by an id of its own.
  std::vector<int64_t> ends;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (auto id = special_id(file, key); id && std::find(ends.begin(), ends.end(), *id) == ends.end())
      ends.push_back(*id);
  if (!ends.empty()) c["eos_token_id"] = ends;
  return c.dump();
}

}  // namespace sinter::gguf
