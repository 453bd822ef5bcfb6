#pragma once
// Attention of decoders, with or without a cache: what the layers of one forward pass share.
#include <map>
#include <optional>
#include <utility>

#include "sinter/models/models.h"

namespace sinter::models {

// How attention is computed: by the op of that name, as one kernel where the device has one, or by plain products and a
// softmax. The choice is the process's and holds for all models; a program that has been captured keeps what it was
// made with, so choose before the first call.
enum class Attention : uint8_t { kSdpa, kDecomposed };
// "sdpa", "decomposed"; any other name is an Error.
Attention parse_attention(const std::string& name);
void set_attention(Attention implementation);
Attention attention_in_use();

// softmax(query key^T * scale) value by the implementation in use: query [batch, heads, tokens, head_dim], key and
// value [batch, kv_heads, length, head_dim]. A mask, where defined, is as in scaled_dot_product_attention. Scores
// beyond `softcap` are bent towards it; no op has that, so it is always decomposed.
Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 std::optional<double> scale = {}, std::optional<double> softcap = {});

struct AttendOptions {
  int64_t window = 0;  // how many positions a token sees, itself included; 0: all
  std::optional<double> scale, softcap;
};

class DecoderPass {
 public:
  DecoderPass(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask, KvCache* cache);

  // [tokens], or [batch, tokens] where rows differ.
  const Tensor& positions() const { return positions_; }
  // How far each key lies behind each query, in front of it where negative: [tokens, length] or [batch, 1, tokens, length].
  Tensor distances() const;
  // Is added to the scores of all layers: [batch, heads, tokens, length], or what broadcasts to it. Before the first layer.
  void add_bias(const Tensor& bias);
  // Query [batch, heads, tokens, head_dim], key and value [batch, kv_heads, tokens, head_dim] to [batch, tokens, heads
  // * head_dim]. Key and value are written to the layer's cache first, where there is one.
  Tensor attend(int64_t layer, const Tensor& query, const Tensor& key, const Tensor& value,
                const AttendOptions& options);

 private:
  bool sees_cache() const { return cache_ && !cache_->begins; }
  // Of the scores: positions of queries, [tokens, 1] or [batch, 1, tokens, 1], and of keys.
  Tensor rows() const;
  Tensor columns() const;
  Tensor mask_for(int64_t window);
  // Writes rows into a layer's part of the cache, as codes where there are scales of them; and reads all that a pass may see.
  void store(Tensor& cache, Tensor* scales, const Tensor& rows);
  Tensor stored(const Tensor& cache, const Tensor* scales, DType dtype) const;
  void write(Tensor& cache, const Tensor& rows);
  bool is_paged() const { return cache_ && cache_->table; }
  // Where there are pages: the page and the row in it of each token, [batch, tokens].
  const std::pair<Tensor, Tensor>& places();

  Tensor positions_;
  std::optional<Tensor> mask_;
  KvCache* cache_;
  Dim tokens_;
  std::map<int64_t, Tensor> masks_;  // by window, made once for all layers
  std::optional<std::pair<Tensor, Tensor>> places_;
};

// The source of an encoder-decoder; an Error where the cache has none.
const Source& source_in(const KvCache* cache);
// What a layer's query, [batch, heads, tokens, head_dim], finds there: [batch, tokens, heads * head_dim].
Tensor read_source(const Source& source, int64_t layer, const Tensor& query, std::optional<double> scale = {});

// [batch, tokens, heads * head_dim] as [batch, heads, tokens, head_dim].
Tensor split_heads(const Tensor& x, int64_t heads);
// And back.
Tensor merge_heads(const Tensor& x);
// Which tokens may be seen, [batch, tokens] of numbers or truth values, as attention takes it: [batch, 1, 1, tokens].
Tensor seen_tokens(const Tensor& attention_mask);

// Of [batch, tokens, width] the row of each sequence that is wanted: [batch, 1, width]; all rows without.
Tensor rows_wanted(const Tensor& x, const std::optional<Tensor>& wanted);

// The function of this name as config.json has it: "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu" …
Tensor activate(const Tensor& x, const std::string& name);
// An Error that lists the names unless this is one.
void check_activation(const std::string& name, const ConfigFile& file);

}  // namespace sinter::models
