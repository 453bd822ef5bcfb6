#pragma once
// The two programs of a causal model that generates text over a static cache: the prompt, and one step after it.
#include <memory>

#include "sinter/sinter.h"

namespace sinter::bench {

// Tokens of a vocabulary, the same every time.
std::vector<int64_t> random_ids(int64_t count, int64_t vocabulary);

class LlamaSteps {
 public:
  // The cache's content is the caller's. `mode` is "eager" or a mode of compile(). Making this runs and compiles nothing.
  LlamaSteps(const std::shared_ptr<models::CausalLM>& model, const std::string& mode, int64_t batch, int64_t prompt,
             models::KvCache cache);

  // Logits of the prompt's last place, and of one token behind it.
  Tensor prefill() const { return prefill_(ids_, positions_, last_, cache_); }
  Tensor decode() const { return decode_(one_, next_, first_, cache_); }
  // What they are given, [batch, prompt] and [batch, 1]: random unless it is set.
  Tensor& ids() { return ids_; }
  Tensor& next_ids() { return one_; }

 private:
  using Step = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const models::KvCache&)>;

  Step prefill_, decode_;
  Tensor ids_, positions_, last_, one_, next_, first_;
  models::KvCache cache_;
};

}  // namespace sinter::bench
