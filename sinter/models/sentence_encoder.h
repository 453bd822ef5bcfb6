#pragma once
// Embeddings of texts: an encoder and what follows it, as sentence-transformers lays it out.
//
//   auto model = models::sentence_encoder("path/to/checkpoint");
//   Tensor a = model->encode({"A whale.", "A ship."}, Tokenizer::from_pretrained("path/to/checkpoint"));
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sinter/base/api.h"
#include "sinter/io/tokenizer/tokenizer.h"
#include "sinter/models/models.h"

namespace sinter SINTER_API {
namespace models {

class SentenceEncoder : public Model {
 public:
  // One of the steps from hidden states to an embedding.
  class Step;

  SentenceEncoder(std::shared_ptr<TextEncoder> encoder, std::vector<std::shared_ptr<Step>> steps, int64_t max_tokens);

  // ids and attention_mask [batch, tokens] (not zero where there is a token) to [batch, size].
  Tensor forward(const Tensor& ids, const Tensor& attention_mask);
  // input_ids and perhaps attention_mask to sentence_embedding.
  NamedTensors run(const NamedTensors& inputs) override;

  // How many tokens of a text are read.
  int64_t max_tokens() const { return max_tokens_; }
  // Texts as ids and mask: cut to max_tokens() in front of their last special token, and padded to the longest or, with
  // `multiple`, to a multiple of it.
  std::pair<Tensor, Tensor> tokenize(std::span<const std::string> texts, const Tokenizer& tokenizer,
                                     int64_t multiple = 1) const;
  Tensor encode(const std::vector<std::string>& texts, const Tokenizer& tokenizer);

 private:
  std::shared_ptr<TextEncoder> encoder_;
  std::vector<std::shared_ptr<Step>> steps_;
  int64_t max_tokens_;
};

// The encoder of a folder and the steps that its modules.json names: pooling of any kind, linear layers, norms, unit length.
// A folder without one gives the mean over its tokens.
std::shared_ptr<SentenceEncoder> sentence_encoder(const std::string& folder_or_id, const FromOptions& options = {});

}  // namespace models
}  // namespace SINTER_API
