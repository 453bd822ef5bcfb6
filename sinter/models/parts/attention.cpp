#include "sinter/models/parts/attention.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/matmul.h"
#include "sinter/ops/paged_attention.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

std::atomic<Attention> in_use{Attention::kSdpa};

// Query heads that share a key head become rows of one product.
Tensor decomposed(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double scale,
                  std::optional<double> softcap) {
  Dim batch = query.size(0), heads = query.size(1), tokens = query.size(2), size = query.size(3);
  Dim kv_heads = key.size(1), rows = heads / kv_heads * tokens;
  Tensor q = query.reshape({batch, kv_heads, rows, size});
  Tensor scores = matmul(q, key.transpose(-1, -2)).to(kFloat32).view({batch, heads, tokens, -1});
  scores = softcap ? (scores * (scale / *softcap)).tanh() * *softcap : scores * scale;
  if (mask.defined())
    scores = mask.dtype() == kBool ? where(mask, scores, -std::numeric_limits<double>::infinity()) : scores + mask;
  Tensor weights = scores.softmax(-1).to(query.dtype());
  return matmul(weights.view({batch, kv_heads, rows, -1}), value).view({batch, heads, tokens, -1});
}

}  // namespace

Attention parse_attention(const std::string& name) {
  if (name == "sdpa") return Attention::kSdpa;
  check(name == "decomposed", "attention: there is no implementation '{}'; there are sdpa and decomposed", name);
  return Attention::kDecomposed;
}

void set_attention(Attention implementation) { in_use = implementation; }
Attention attention_in_use() { return in_use; }

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 std::optional<double> scale, std::optional<double> softcap) {
  if (softcap || attention_in_use() == Attention::kDecomposed)
    return decomposed(query, key, value, mask, scale.value_or(1 / std::sqrt(double(query.size(3).to_int()))), softcap);
  return scaled_dot_product_attention(query, key, value, mask, 0, false, scale, query.size(1) != key.size(1));
}

DecoderPass::DecoderPass(const Tensor& ids, const Tensor& positions, const std::optional<Tensor>& mask, KvCache* cache)
    : positions_(positions),
      mask_(mask),
      cache_(cache && !cache->keys.empty() ? cache : nullptr),
      tokens_(ids.size(1)) {
  check(ids.dim() == 2 && !ids.is_floating_point(), "forward: ids are [batch, tokens] integers, not {} {}", ids.dtype(),
        ids.sizes());
  check(positions.dim() == 1 || positions.dim() == 2, "forward: positions are [tokens] or [batch, tokens], not {}",
        positions.sizes());
  if (positions.dim() == 2 && positions.size(0) == 1) positions_ = positions.squeeze(0);
  check(positions_.size(-1) == tokens_, "forward: {} positions for {} tokens", positions_.size(-1), tokens_);
  if (!is_paged()) return;
  check(!cache_->begins, "forward: a pass over pages goes on with its sequences; begins must be false");
  check(cache_->counts.has_value(), "forward: a cache with a table needs the counts of its rows");
  positions_ = positions.dim() == 2 ? positions : positions.unsqueeze(0);
  check(positions_.size(0) == ids.size(0), "forward: a cache of pages needs positions [batch, tokens], not {}",
        positions.sizes());
}

Tensor DecoderPass::rows() const {
  TensorOptions options = TensorOptions(kInt64).device(positions_.device());
  Tensor rows = (sees_cache() ? positions_ : arange_of_size(tokens_, options)).unsqueeze(-1);
  return rows.dim() == 3 ? rows.unsqueeze(1) : rows;
}

Tensor DecoderPass::columns() const {
  Dim length = sees_cache() ? cache_->keys.at(0).size(2) : tokens_;
  if (is_paged()) length = length * cache_->table->size(1);
  return arange_of_size(length, TensorOptions(kInt64).device(positions_.device()));
}

Tensor DecoderPass::distances() const { return rows() - columns(); }

void DecoderPass::add_bias(const Tensor& bias) {
  if (mask_ && mask_->dtype() == kBool)
    mask_ = where(*mask_, bias, -std::numeric_limits<double>::infinity());
  else
    mask_ = mask_ ? *mask_ + bias : bias;
}

Tensor DecoderPass::mask_for(int64_t window) {
  auto [it, is_new] = masks_.try_emplace(window);
  if (!is_new) return it->second;
  Tensor rows = this->rows(), columns = this->columns();
  Tensor seen = columns <= rows;
  if (window > 0) seen = logical_and(seen, columns > rows - window);
  if (mask_ && mask_->dtype() == kBool)
    seen = logical_and(seen, *mask_);
  else if (mask_)
    seen = where(seen, *mask_, -std::numeric_limits<double>::infinity());
  return it->second = seen;
}

const std::pair<Tensor, Tensor>& DecoderPass::places() {
  if (places_) return *places_;
  Dim page = cache_->keys.at(0).size(2), batch = positions_.size(0);
  Tensor pages = cache_->table->gather(1, floor_divide(positions_, page.to_int()));
  Tensor own = arange_of_size(tokens_, positions_.options()).unsqueeze(0) < cache_->counts->view({batch, 1});
  places_.emplace(where(own, pages, 0), remainder(positions_, page.to_int()));
  return *places_;
}

void DecoderPass::write(Tensor& cache, const Tensor& rows) {
  if (is_paged()) {
    auto& [pages, places] = this->places();
    cache.index_put_({pages, Slice(), places}, rows.transpose(1, 2));
    return;
  }
  if (positions_.dim() == 1) {
    cache.index_copy_(2, positions_, rows);
    return;
  }
  Tensor batch = arange_of_size(rows.size(0), positions_.options()).unsqueeze(1);
  cache.index_put_({batch, Slice(), positions_}, rows.transpose(1, 2));
}

void DecoderPass::store(Tensor& cache, Tensor* scales, const Tensor& rows) {
  if (!scales) return write(cache, rows.to(cache.dtype()));
  // One scale a row: the largest number becomes 127. A row of zeros has no code but 0.
  constexpr double kMost = 127, kLeast = 1e-30;
  const Tensor wide = rows.to(kFloat32), scale = (wide.abs().amax({-1}, true) / kMost).to(scales->dtype());
  write(cache, (wide / scale.to(kFloat32).clamp_min(kLeast)).round().clamp(-kMost, kMost).to(kInt8));
  write(*scales, scale);
}

Tensor DecoderPass::stored(const Tensor& cache, const Tensor* scales, DType dtype) const {
  auto all = [&](const Tensor& part) { return is_paged() ? rows_of_pages(part, *cache_->table) : part; };
  return scales ? (all(cache).to(kFloat32) * all(*scales).to(kFloat32)).to(dtype) : all(cache).to(dtype);
}

Tensor DecoderPass::attend(int64_t layer, const Tensor& query, const Tensor& given_key, const Tensor& given_value,
                           const AttendOptions& options) {
  Tensor key = given_key, value = given_value;
  if (cache_) {
    const size_t at = size_t(layer);
    auto scale_of = [&](TensorList& scales) { return scales.empty() ? nullptr : &scales.at(at); };
    Tensor *key_scale = scale_of(cache_->key_scales), *value_scale = scale_of(cache_->value_scales);
    Tensor &keys = cache_->keys.at(at), &values = cache_->values.at(at);
    store(keys, key_scale, key);
    store(values, value_scale, value);
    if (is_paged() && !mask_ && !options.softcap && keys.dtype() == query.dtype() && attention_in_use() == Attention::kSdpa) {
      Tensor starts = positions_.select(1, 0);
      return merge_heads(paged_attention(query, keys, values, *cache_->table, starts, starts + *cache_->counts, options.scale,
                                         options.window));
    }
    if (!cache_->begins) {
      key = stored(keys, key_scale, query.dtype());
      value = stored(values, value_scale, query.dtype());
    }
  }
  bool plain = !sees_cache() && !mask_ && (options.window == 0 || tokens_ <= options.window);
  // The op knows the causal mask by itself.
  if (plain && !options.softcap && attention_in_use() == Attention::kSdpa) {
    bool grouped = query.size(1) != key.size(1);
    return merge_heads(scaled_dot_product_attention(query, key, value, {}, 0, true, options.scale, grouped));
  }
  return merge_heads(attention(query, key, value, mask_for(options.window), options.scale, options.softcap));
}

const Source& source_in(const KvCache* cache) {
  check(cache && !cache->source.keys.empty(),
        "forward: an encoder-decoder needs to have read something: cache.source = model->read(input)");
  return cache->source;
}

Tensor read_source(const Source& source, int64_t layer, const Tensor& query, std::optional<double> scale) {
  Tensor key = source.keys.at(size_t(layer)).to(query.dtype()),
         value = source.values.at(size_t(layer)).to(query.dtype());
  return merge_heads(attention(query, key, value, source.mask.value_or(Tensor()), scale));
}

Tensor split_heads(const Tensor& x, int64_t heads) { return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2); }

Tensor merge_heads(const Tensor& x) { return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)}); }

Tensor seen_tokens(const Tensor& attention_mask) { return ne(attention_mask, 0).unsqueeze(1).unsqueeze(1); }

Tensor rows_wanted(const Tensor& x, const std::optional<Tensor>& wanted) {
  if (!wanted || x.size(1) == 1) return x;
  Dim batch = x.size(0), width = x.size(2);
  return x.gather(1, wanted->view({batch, 1, 1}).expand({batch, 1, width}));
}

namespace {

struct NamedActivation {
  const char* name;
  Tensor (*function)(const Tensor&);
};

constexpr NamedActivation kActivations[] = {
    {"silu", [](const Tensor& x) { return silu(x); }},
    {"swish", [](const Tensor& x) { return silu(x); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"gelu_new", [](const Tensor& x) { return gelu(x, "tanh"); }},
    {"gelu_fast", [](const Tensor& x) { return gelu(x, "tanh"); }},
    {"gelu_pytorch_tanh", [](const Tensor& x) { return gelu(x, "tanh"); }},
    {"quick_gelu", [](const Tensor& x) { return x * sigmoid(x * 1.702); }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"tanh", [](const Tensor& x) { return tanh(x); }},
};

}  // namespace

Tensor activate(const Tensor& x, const std::string& name) {
  for (auto& known : kActivations)
    if (name == known.name) return known.function(x);
  throw_error(format("activate: no activation is named '{}'", name));
}

void check_activation(const std::string& name, const ConfigFile& file) {
  std::string names;
  for (auto& known : kActivations) {
    if (name == known.name) return;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw_error(format("config: '{}' has the activation '{}'; known are {}", file.name(), name, names));
}

}  // namespace sinter::models
