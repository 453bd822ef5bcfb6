#pragma once
// Wrong results are never fast: what a mode computes is compared before it is timed.
#include <memory>
#include <string>
#include <vector>

#include "sinter/models/models.h"

namespace sinter::cli {

// The largest relative difference that rounding explains.
double bench_tolerance(DType dtype);

// Greedy tokens of several modes. The first batch that is given for a key is the reference: later ones must have the
// same tokens. Where rounding may have decided (two logits nearly alike) an eager pass over the sequence is the judge:
// each token's logit must reach the largest one to within `tolerance` times the largest magnitude. An Error names mode, row
// and token.
class TokenCheck {
 public:
  using Sequences = std::vector<std::vector<int64_t>>;
  TokenCheck(std::shared_ptr<models::CausalLM> model, double tolerance)
      : model_(std::move(model)), tolerance_(tolerance) {}

  // A reference that is not eager is judged as well, by its first row.
  void operator()(const std::string& mode, const std::string& key, const Sequences& prompts, const Sequences& tokens);

 private:
  void judge(const std::string& mode, int64_t row, const std::vector<int64_t>& prompt,
             const std::vector<int64_t>& tokens) const;

  std::shared_ptr<models::CausalLM> model_;
  double tolerance_;
  std::vector<std::pair<std::string, Sequences>> references_;  // by key
};

// The same for a tensor: norm(result - reference) is at most `tolerance` times norm(reference).
void check_close(const std::string& mode, const Tensor& result, const Tensor& reference, double tolerance);

}  // namespace sinter::cli
