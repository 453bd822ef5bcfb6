// BERT, RoBERTa and DistilBERT: one encoder, three sets of names.
#include "sinter/base/error.h"
#include "sinter/models/families.h"
#include "sinter/models/parts/encoder.h"
#include "sinter/nn/containers.h"
#include "sinter/nn/linear.h"
#include "sinter/nn/normalization.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::models {

namespace {

struct BertConfig : ModelConfig {
  int64_t token_types = 0;                // 0: no such embedding
  int64_t position_rows = 0;              // of the embedding of positions
  std::optional<int64_t> first_position;  // RoBERTa counts from the padding's id, and tokens only
};

class Bert : public TextEncoder {
 public:
  explicit Bert(const BertConfig& c) : TextEncoder(c), first_position_(c.first_position) {
    auto add = [&](const char* name, int64_t rows) {
      return register_module(name, nn::Embedding(rows, c.hidden_size));
    };
    words_ = add("word_embeddings", c.vocab_size);
    positions_ = add("position_embeddings", c.position_rows);
    if (c.token_types > 0) token_types_ = add("token_type_embeddings", c.token_types);
    norm_ = register_module("LayerNorm", nn::LayerNorm(nn::LayerNormOptions(c.hidden_size).eps(c.norm_eps)));
    register_module("layer", layers_);
    for (int64_t layer = 0; layer < c.layers; ++layer) layers_->push_back(EncoderBlock(c, /*norm_first=*/false));
  }
  using TextEncoder::forward;
  Tensor forward(const Tensor& ids, const std::optional<Tensor>& attention_mask,
                 const std::optional<Tensor>& token_types) override {
    Tensor x = words_(ids);
    if (token_types_) x = x + token_types_(token_types ? *token_types : zeros_like(ids));
    x = norm_(x + positions_(positions_of(ids)));
    Tensor mask;
    if (attention_mask) mask = seen_tokens(*attention_mask);
    for (auto& layer : *layers_) x = layer(x, mask);
    return x;
  }

 private:
  Tensor positions_of(const Tensor& ids) const {
    if (!first_position_) return arange_of_size(ids.size(1), TensorOptions(kInt64).device(ids.device()));
    Tensor is_token = ne(ids, *first_position_).to(kInt64);
    return cumsum(is_token, 1) * is_token + *first_position_;
  }

  std::optional<int64_t> first_position_;
  nn::Embedding words_{nullptr}, positions_{nullptr}, token_types_{nullptr};
  nn::LayerNorm norm_{nullptr};
  nn::ModuleListOf<EncoderBlock> layers_;
};

BertConfig bert_config(const ConfigFile& file) {
  BertConfig c;
  static_cast<ModelConfig&>(c) = ModelConfig::common(file);
  c.activation = file.text("hidden_act", "gelu");
  check_activation(c.activation, file);
  c.norm_eps = file.number("layer_norm_eps", 1e-12);
  c.token_types = file.integer("type_vocab_size", 2);
  c.position_rows = c.max_positions;
  return c;
}

std::shared_ptr<Model> make_bert(const ConfigFile& file) { return std::make_shared<Bert>(bert_config(file)); }

std::shared_ptr<Model> make_roberta(const ConfigFile& file) {
  BertConfig c = bert_config(file);
  c.first_position = file.integer("pad_token_id", 1);
  c.max_positions -= *c.first_position + 1;
  check(c.max_positions > 0, "config: '{}' has no positions behind that of padding", file.name());
  return std::make_shared<Bert>(c);
}

std::shared_ptr<Model> make_distilbert(const ConfigFile& file) {
  BertConfig c;
  static_cast<ModelConfig&>(c) = ModelConfig::named(file);
  c.vocab_size = file.size("vocab_size");
  c.hidden_size = file.size("dim");
  c.intermediate_size = file.size("hidden_dim");
  c.layers = file.size("n_layers");
  c.heads = c.kv_heads = file.size("n_heads");
  c.head_dim = c.hidden_size / c.heads;
  c.max_positions = c.position_rows = file.size("max_position_embeddings");
  c.norm_eps = 1e-12;
  c.activation = file.text("activation", "gelu");
  check_activation(c.activation, file);
  c.check_sizes(file);
  return std::make_shared<Bert>(c);
}

// Old checkpoints call a norm's weight and bias gamma and beta.
const std::vector<Rename> kBertNames = {
    {"encoder.layer.", "layer."},
    {"attention.self.", ""},
    {"attention.output.dense.", "attention_output."},
    {"attention.output.LayerNorm.", "attention_norm."},
    {"intermediate.dense.", "intermediate."},
    {"output.dense.", "output."},
    {"output.LayerNorm.", "output_norm."},
    {"embeddings.LayerNorm.", "LayerNorm."},
    {"embeddings.word_embeddings.", "word_embeddings."},
    {"embeddings.position_embeddings.", "position_embeddings."},
    {"embeddings.token_type_embeddings.", "token_type_embeddings."},
    {".gamma", ".weight"},
    {".beta", ".bias"},
};
// Heads and tables that the hidden states do not depend on.
const std::vector<const char*> kHeads = {"pooler.", "cls.", "lm_head.", "classifier.", "qa_outputs.", "position_ids"};

}  // namespace

Family bert_family() {
  return {.model_type = "bert",
          .architectures = {"BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification",
                            "BertForTokenClassification", "BertForQuestionAnswering"},
          .make = make_bert,
          .prefix = "bert.",
          .renames = kBertNames,
          .ignored = kHeads};
}

Family roberta_family() {
  return {.model_type = "roberta",
          .architectures = {"RobertaModel", "RobertaForMaskedLM", "RobertaForSequenceClassification",
                            "RobertaForTokenClassification", "RobertaForQuestionAnswering", "XLMRobertaModel",
                            "XLMRobertaForMaskedLM", "XLMRobertaForSequenceClassification"},
          .make = make_roberta,
          .prefix = "roberta.",
          .renames = kBertNames,
          .ignored = kHeads};
}

Family distilbert_family() {
  return {.model_type = "distilbert",
          .architectures = {"DistilBertModel", "DistilBertForMaskedLM", "DistilBertForSequenceClassification",
                            "DistilBertForTokenClassification", "DistilBertForQuestionAnswering"},
          .make = make_distilbert,
          .prefix = "distilbert.",
          .renames = {{"transformer.layer.", "layer."},
                      {"attention.q_lin.", "query."},
                      {"attention.k_lin.", "key."},
                      {"attention.v_lin.", "value."},
                      {"attention.out_lin.", "attention_output."},
                      {"sa_layer_norm.", "attention_norm."},
                      {"ffn.lin1.", "intermediate."},
                      {"ffn.lin2.", "output."},
                      {"output_layer_norm.", "output_norm."},
                      {"embeddings.LayerNorm.", "LayerNorm."},
                      {"embeddings.word_embeddings.", "word_embeddings."},
                      {"embeddings.position_embeddings.", "position_embeddings."}},
          .ignored = {"vocab_transform.", "vocab_layer_norm.", "vocab_projector.", "pre_classifier.", "classifier.",
                      "qa_outputs.", "position_ids"}};
}

}  // namespace sinter::models
