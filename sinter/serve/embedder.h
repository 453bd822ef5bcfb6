#pragma once
// Answers with embeddings of texts. Programs exist for a list of numbers of texts and of lengths, and texts are padded
// to the next: after start() nothing is compiled. One computation at a time.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sinter/capture/options.h"
#include "sinter/models/sentence_encoder.h"
#include "sinter/serve/metrics.h"

namespace sinter::serve {

struct EmbedderOptions {
  Mode mode = Mode::kDefault;
  bool eager = false;
  std::vector<int64_t> rows = {1, 4, 16};  // texts at once
  std::vector<int64_t> lengths = {};       // tokens; empty: 16, 64, 256 … and what the model reads
  std::string model_name = "model";
};

class Embedder {
 public:
  Embedder(std::shared_ptr<models::SentenceEncoder> model, Tokenizer tokenizer, EmbedderOptions options);

  void start();
  bool is_ready() const { return is_ready_; }

  // A text as the model reads it: cut where it is longer.
  std::vector<int64_t> ids_of(const std::string& text) const;
  // An Error where a text is empty, too long, or has an id that the model does not know.
  std::vector<std::vector<float>> embed(const std::vector<std::vector<int64_t>>& texts);

  int64_t max_tokens() const { return options_.lengths.back(); }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  Registry& metrics() { return registry_; }

 private:
  Tensor run(const std::vector<std::vector<int64_t>>& texts, int64_t rows, int64_t length);

  std::shared_ptr<models::SentenceEncoder> model_;
  Tokenizer tokenizer_;
  EmbedderOptions options_;
  std::function<Tensor(const Tensor&, const Tensor&)> forward_;
  std::mutex mutex_;
  std::atomic<bool> is_ready_ = false;
  Registry registry_;
  Counter &prompt_tokens_, &texts_;
  Histogram& whole_;
};

}  // namespace sinter::serve
