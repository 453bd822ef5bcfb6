#pragma once
// The steps of sequences that come and go: the programs of a model over a cache of pages (models::KvCache with a
// table), for whoever decides which sequences take part in which step. Programs exist for a list of numbers of rows and
// a list of chunks of a prompt; a step is padded to the next, so that after warmup() nothing is compiled. Page 0 is
// nobody's: padding is written there.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sinter/capture/compiler.h"
#include "sinter/generate/sampling.h"
#include "sinter/generate/text_generator.h"
#include "sinter/models/models.h"

namespace sinter {

struct PagedOptions {
  Mode mode = Mode::kDefault;
  bool eager = false;
  OptionMap options = {};            // for compile()
  int64_t page = 32;                 // positions in a page
  int64_t pages = 0;                 // beside page 0; 0: so many that all rows of the largest step have max_length
  int64_t max_length = 0;            // positions a sequence may have; 0: what the model allows, at most 2048
  std::vector<int64_t> rows = {};    // of a decode step; empty: 1, 2, 4, 8, 16, 32
  std::vector<int64_t> chunks = {};  // of a prompt; empty: 32, 64, 128, 256, 512
  bool logprobs = true;              // whether the program of logprobs() is made ready
};

// One sequence in a step: tokens that follow `start` positions, all of which lie in these pages.
struct PagedRow {
  std::span<const int64_t> ids;
  int64_t start = 0;
  std::span<const int64_t> pages;
};

class PagedDecoder {
 public:
  PagedDecoder(std::shared_ptr<models::CausalLM> model, PagedOptions options);
  ~PagedDecoder();

  // Logits [1, vocab] behind the last token of a chunk of at most largest_chunk() tokens.
  Tensor prefill(const PagedRow& row);
  // Logits [rows, vocab] behind one token each of at most largest_rows() rows; perhaps with more rows behind them.
  Tensor decode(std::span<const PagedRow> rows);

  // A token for each row of logits that has settings.
  std::vector<int64_t> sample(const Tensor& logits, std::span<const RowSampling* const> rows);

  // The logarithm of a token's probability, and those of the likeliest.
  struct Logprob {
    int64_t id;
    double logprob;
  };
  struct Logprobs {
    double chosen = 0;
    std::vector<Logprob> top;
  };
  static constexpr int64_t kMostLogprobs = 20;
  // As the model has them, before any setting changes them.
  std::vector<Logprobs> logprobs(const Tensor& logits, std::span<const int64_t> chosen);

  // Makes all programs and runs each once, on page 0.
  void warmup();
  // Programs made so far.
  int64_t programs() const;

  const std::shared_ptr<models::CausalLM>& model() const { return model_; }
  const PagedOptions& options() const { return options_; }
  int64_t vocab() const { return model_->config().vocab_size; }
  int64_t largest_rows() const { return options_.rows.back(); }
  int64_t largest_chunk() const { return options_.chunks.back(); }
  int64_t cache_bytes() const;

 private:
  struct Programs;
  struct Inputs;

  // Of so many rows of so many tokens, what is missing filled up.
  Inputs inputs(std::span<const PagedRow> rows, int64_t count, int64_t tokens) const;
  Tensor run(const Inputs& inputs);

  std::shared_ptr<models::CausalLM> model_;
  PagedOptions options_;
  int64_t table_width_ = 0;
  models::KvCache cache_;
  std::unique_ptr<Programs> programs_;
};

}  // namespace sinter
