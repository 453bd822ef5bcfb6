#include <limits>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/nn/attention.h"
#include "sinter/nn/init.h"
#include "sinter/ops/pointwise.h"

namespace sinter::nn {

namespace {

MultiheadAttention attention_of(const TransformerLayerOptions& o) {
  return MultiheadAttention(
      MultiheadAttentionOptions(o.d_model(), o.nhead()).dropout(o.dropout()).batch_first(o.batch_first()));
}

LayerNorm norm_of(const TransformerLayerOptions& o) {
  return LayerNorm(LayerNormOptions(o.d_model()).eps(o.layer_norm_eps()));
}

void check_activation(const char* layer, const std::string& activation) {
  check(activation == "relu" || activation == "gelu", "nn::{}: activation is relu or gelu, not {}", layer, activation);
}

// The network of an encoder's or a decoder's layer, up to its last dropout.
template <class Layer>
Tensor feed_forward(const Layer& layer, const Tensor& x) {
  Tensor hidden = layer.linear1(x);
  hidden = layer.options.activation() == "relu" ? relu(hidden) : gelu(hidden);
  return layer.linear2(layer.dropout(hidden));
}

AttentionArgs masks(const Tensor& mask, const Tensor& padding) {
  return AttentionArgs().attn_mask(mask).key_padding_mask(padding);
}

// The layers of a stack, each a module of its own.
template <class Layer>
std::vector<Layer> layers_of(const TransformerStackOptions<Layer>& options) {
  std::vector<Layer> layers;
  for (int64_t i = 0; i < options.num_layers(); ++i) {
    layers.emplace_back(options.layer());
    if (options.first()) layers.back()->load_state_dict(options.first()->state_dict());
  }
  return layers;
}

}  // namespace

// --- TransformerEncoderLayer

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options)
    : options(options) {
  reset();
}

void TransformerEncoderLayerImpl::reset() {
  check_activation("TransformerEncoderLayer", options.activation());
  int64_t e = options.d_model();
  self_attn = register_module("self_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(e, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), e));
  norm1 = register_module("norm1", norm_of(options));
  norm2 = register_module("norm2", norm_of(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

Tensor TransformerEncoderLayerImpl::attend(const Tensor& x, const AttentionArgs& args) {
  return dropout1(std::get<0>(self_attn(x, x, x, args)));
}

Tensor TransformerEncoderLayerImpl::forward(const TensorArg& arg, const AttentionArgs& args) {
  UserPosition here(arg.where(), "nn::TransformerEncoderLayer");
  const Tensor& x = arg.tensor();
  if (options.norm_first()) {
    Tensor h = x + attend(norm1(x), args);
    return h + dropout2(feed_forward(*this, norm2(h)));
  }
  Tensor h = norm1(x + attend(x, args));
  return norm2(h + dropout2(feed_forward(*this, h)));
}

Tensor TransformerEncoderLayerImpl::forward(const TensorArg& x, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  return forward(x, masks(src_mask, src_key_padding_mask));
}

// --- TransformerDecoderLayer

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options)
    : options(options) {
  reset();
}

void TransformerDecoderLayerImpl::reset() {
  check_activation("TransformerDecoderLayer", options.activation());
  int64_t e = options.d_model();
  self_attn = register_module("self_attn", attention_of(options));
  multihead_attn = register_module("multihead_attn", attention_of(options));
  linear1 = register_module("linear1", Linear(e, options.dim_feedforward()));
  dropout = register_module("dropout", Dropout(options.dropout()));
  linear2 = register_module("linear2", Linear(options.dim_feedforward(), e));
  norm1 = register_module("norm1", norm_of(options));
  norm2 = register_module("norm2", norm_of(options));
  norm3 = register_module("norm3", norm_of(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

Tensor TransformerDecoderLayerImpl::attend(MultiheadAttention& attention, const Dropout& after, const Tensor& x,
                                           const Tensor& memory, const AttentionArgs& args) {
  return after(std::get<0>(attention(x, memory, memory, args)));
}

Tensor TransformerDecoderLayerImpl::forward(const TensorArg& arg, const Tensor& memory, const AttentionArgs& self,
                                            const AttentionArgs& cross) {
  UserPosition here(arg.where(), "nn::TransformerDecoderLayer");
  const Tensor& x = arg.tensor();
  if (options.norm_first()) {
    Tensor own = norm1(x), h = x + attend(self_attn, dropout1, own, own, self);
    h = h + attend(multihead_attn, dropout2, norm2(h), memory, cross);
    return h + dropout3(feed_forward(*this, norm3(h)));
  }
  Tensor h = norm1(x + attend(self_attn, dropout1, x, x, self));
  h = norm2(h + attend(multihead_attn, dropout2, h, memory, cross));
  return norm3(h + dropout3(feed_forward(*this, h)));
}

Tensor TransformerDecoderLayerImpl::forward(const TensorArg& x, const Tensor& memory, const Tensor& tgt_mask,
                                            const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  return forward(x, memory, masks(tgt_mask, tgt_key_padding_mask), masks(memory_mask, memory_key_padding_mask));
}

// --- TransformerEncoder, TransformerDecoder

TransformerEncoderImpl::TransformerEncoderImpl(const TransformerEncoderOptions& options) {
  layers = register_module("layers", ModuleListOf<TransformerEncoderLayer>(layers_of(options)));
  if (options.norm()) norm = register_module("norm", options.norm());
}

Tensor TransformerEncoderImpl::forward(const TensorArg& arg, const AttentionArgs& args) {
  UserPosition here(arg.where(), "nn::TransformerEncoder");
  Tensor x = arg.tensor();
  for (auto& layer : *layers) x = layer(x, args);
  return norm ? norm(x) : x;
}

Tensor TransformerEncoderImpl::forward(const TensorArg& x, const Tensor& src_mask, const Tensor& src_key_padding_mask) {
  return forward(x, masks(src_mask, src_key_padding_mask));
}

TransformerDecoderImpl::TransformerDecoderImpl(const TransformerDecoderOptions& options) {
  layers = register_module("layers", ModuleListOf<TransformerDecoderLayer>(layers_of(options)));
  if (options.norm()) norm = register_module("norm", options.norm());
}

Tensor TransformerDecoderImpl::forward(const TensorArg& arg, const Tensor& memory, const AttentionArgs& self,
                                       const AttentionArgs& cross) {
  UserPosition here(arg.where(), "nn::TransformerDecoder");
  Tensor x = arg.tensor();
  for (auto& layer : *layers) x = layer(x, memory, self, cross);
  return norm ? norm(x) : x;
}

Tensor TransformerDecoderImpl::forward(const TensorArg& x, const Tensor& memory, const Tensor& tgt_mask,
                                       const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  return forward(x, memory, masks(tgt_mask, tgt_key_padding_mask), masks(memory_mask, memory_key_padding_mask));
}

// Copies of the layers themselves: no options are kept.
template <class Stack>
static void clone_stack(const Stack& from, Stack& to, const std::optional<Device>& device) {
  to.layers = to.register_module("layers", detail::cloned(from.layers, device));
  if (from.norm) to.norm = to.register_module("norm", detail::cloned(from.norm, device));
}
void TransformerEncoderImpl::clone_members(CloneableBase& copy, const std::optional<Device>& device) const {
  clone_stack(*this, static_cast<TransformerEncoderImpl&>(copy), device);
}
void TransformerDecoderImpl::clone_members(CloneableBase& copy, const std::optional<Device>& device) const {
  clone_stack(*this, static_cast<TransformerDecoderImpl&>(copy), device);
}

// --- Transformer

TransformerImpl::TransformerImpl(const TransformerOptions& options) : options(options) { reset(); }

void TransformerImpl::reset() {
  TransformerLayerOptions layer(options.d_model(), options.nhead());
  layer.dim_feedforward(options.dim_feedforward()).dropout(options.dropout()).activation(options.activation());
  layer.layer_norm_eps(options.layer_norm_eps()).batch_first(options.batch_first()).norm_first(options.norm_first());
  encoder = register_module(
      "encoder",
      TransformerEncoder(TransformerEncoderOptions(layer, options.num_encoder_layers()).norm(norm_of(layer))));
  decoder = register_module(
      "decoder",
      TransformerDecoder(TransformerDecoderOptions(layer, options.num_decoder_layers()).norm(norm_of(layer))));
  if (initialises_parameters()) reset_parameters();
}

void TransformerImpl::reset_parameters() {
  for (auto& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
}

Tensor TransformerImpl::forward(const TensorArg& src, const Tensor& tgt, const Tensor& src_mask, const Tensor& tgt_mask,
                                const Tensor& memory_mask, const Tensor& src_key_padding_mask,
                                const Tensor& tgt_key_padding_mask, const Tensor& memory_key_padding_mask) {
  UserPosition here(src.where(), "nn::Transformer");
  Tensor memory = encoder(src, src_mask, src_key_padding_mask);
  return decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  return triu(full({size, size}, -std::numeric_limits<double>::infinity(), TensorOptions()), 1);
}

}  // namespace sinter::nn
