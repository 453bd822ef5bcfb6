#include "sinter/serve/embedder.h"

#include <algorithm>
#include <chrono>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/capture/compiler.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/view.h"

namespace sinter::serve {

namespace {

int64_t next_of(const std::vector<int64_t>& sizes, int64_t least) {
  return *std::lower_bound(sizes.begin(), sizes.end(), least);
}

}  // namespace

Embedder::Embedder(std::shared_ptr<models::SentenceEncoder> model, Tokenizer tokenizer, EmbedderOptions options)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      registry_({{"model_name", options_.model_name}, {"engine", "0"}}),
      prompt_tokens_(registry_.counter("prompt_tokens", "Tokens of texts.")),
      texts_(registry_.counter("embedded_texts", "Texts that became embeddings.")),
      whole_(registry_.histogram("embedding_seconds", "Of the texts of a request.",
                                 {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30})) {
  const int64_t most = model_->max_tokens();
  if (options_.lengths.empty())
    for (int64_t length = 16; length < most; length *= 4) options_.lengths.push_back(length);
  options_.lengths.push_back(most);
  for (auto* sizes : {&options_.lengths, &options_.rows}) {
    std::ranges::sort(*sizes);
    check(!sizes->empty() && sizes->front() > 0, "Embedder: sizes are positive");
  }
  std::erase_if(options_.lengths, [&](int64_t length) { return length > most; });
  auto run = [model = model_](const Tensor& ids, const Tensor& mask) { return model->forward(ids, mask); };
  forward_ = run;
  if (options_.eager) return;
  CompileOptions how{.mode = options_.mode, .fullgraph = true, .dynamic = Dynamic::kFalse};
  how.options.try_emplace("recompile_limit", int64_t(256));
  forward_ = compile(run, how);
}

void Embedder::start() {
  NoGradGuard no_grad;
  for (int64_t length : options_.lengths)
    for (int64_t rows : options_.rows) run({}, rows, length);
  is_ready_ = true;
}

std::vector<int64_t> Embedder::ids_of(const std::string& text) const {
  return model_->tokenize(std::span(&text, 1), tokenizer_).first.to_vector<int64_t>();
}

Tensor Embedder::run(const std::vector<std::vector<int64_t>>& texts, int64_t rows, int64_t length) {
  std::vector<int64_t> ids(size_t(rows * length), 0), mask(size_t(rows * length), 0);
  for (size_t r = 0; r < size_t(rows); ++r) {
    // A row without a text is read like one of a single token.
    const size_t count = r < texts.size() ? texts[r].size() : 1;
    if (r < texts.size()) std::copy(texts[r].begin(), texts[r].end(), ids.begin() + int64_t(r) * length);
    std::fill_n(mask.begin() + int64_t(r) * length, count, 1);
  }
  const Device device = model_->parameters().at(0).device();
  auto tensor_of = [&](const std::vector<int64_t>& values) { return tensor(values).view({rows, length}).to(device); };
  return forward_(tensor_of(ids), tensor_of(mask)).to(kFloat32).cpu();
}

std::vector<std::vector<float>> Embedder::embed(const std::vector<std::vector<int64_t>>& texts) {
  const auto begin = std::chrono::steady_clock::now();
  const int64_t vocab = tokenizer_.vocab_size();
  for (auto& text : texts) {
    check(!text.empty() && int64_t(text.size()) <= max_tokens(), "a text has {} tokens; 1 to {} are read", text.size(),
          max_tokens());
    for (int64_t id : text)
      check(id >= 0 && id < vocab, "a text has the id {}; the model knows 0 to {}", id, vocab - 1);
    prompt_tokens_.add(double(text.size()));
  }
  // Of like lengths together; the answer keeps the order of the question.
  std::vector<size_t> order(texts.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return texts[i].size(); });
  std::vector<std::vector<float>> out(texts.size());
  NoGradGuard no_grad;
  for (size_t at = 0; at < order.size();) {
    const size_t count = std::min(order.size() - at, size_t(options_.rows.back()));
    std::vector<std::vector<int64_t>> batch;
    for (size_t i = at; i < at + count; ++i) batch.push_back(texts[order[i]]);
    Tensor found;
    {
      std::lock_guard lock(mutex_);
      found =
          run(batch, next_of(options_.rows, int64_t(count)), next_of(options_.lengths, int64_t(batch.back().size())));
    }
    for (size_t i = 0; i < count; ++i) out[order[at + i]] = found.select(0, int64_t(i)).to_vector<float>();
    at += count;
  }
  texts_.add(double(texts.size()));
  whole_.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return out;
}

}  // namespace sinter::serve
