#include "sinter/cli/bench_check.h"

#include <algorithm>
#include <cmath>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"

namespace sinter::cli {

double bench_tolerance(DType dtype) {
  if (dtype == kBFloat16) return 4e-2;
  if (dtype == kFloat16) return 5e-3;
  return 1e-4;
}

void TokenCheck::operator()(const std::string& mode, const std::string& key, const Sequences& prompts,
                            const Sequences& tokens) {
  auto known = std::find_if(references_.begin(), references_.end(), [&](auto& entry) { return entry.first == key; });
  if (known == references_.end()) {
    references_.emplace_back(key, tokens);
    if (mode != "eager") judge(mode, 0, prompts.at(0), tokens.at(0));
    return;
  }
  check(known->second.size() == tokens.size(), "bench: {} gave {} sequences, not {}", mode, tokens.size(),
        known->second.size());
  for (size_t row = 0; row < tokens.size(); ++row)
    if (tokens[row] != known->second[row]) judge(mode, int64_t(row), prompts.at(row), tokens[row]);
}

void TokenCheck::judge(const std::string& mode, int64_t row, const std::vector<int64_t>& prompt,
                       const std::vector<int64_t>& tokens) const {
  if (tokens.empty()) return;
  NoGradGuard no_grad;
  std::vector<int64_t> ids(prompt);
  ids.insert(ids.end(), tokens.begin(), tokens.end() - 1);
  Device device = model_->parameters().at(0).device();
  Tensor logits = model_->forward(tensor(ids).to(device).unsqueeze(0)).select(0, 0).to(kFloat32);
  Tensor host = logits.to(cpu()).contiguous();
  int64_t vocab = host.size(1).to_int();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* scores = host.data_ptr<float>() + (int64_t(prompt.size()) - 1 + int64_t(i)) * vocab;
    check(tokens[i] >= 0 && tokens[i] < vocab, "bench: wrong result: {} gave the id {}, row {}", mode, tokens[i], row);
    float largest = *std::max_element(scores, scores + vocab), magnitude = 0;
    for (int64_t v = 0; v < vocab; ++v) magnitude = std::max(magnitude, std::abs(scores[v]));
    double missing = double(largest) - double(scores[tokens[i]]);
    check(missing <= tolerance_ * double(magnitude),
          "bench: wrong result: in mode {} token {} of row {} is {}; an eager pass finds {} likelier by {} ({} of the "
          "largest logit; {} is allowed). No times are reported",
          mode, i, row, tokens[i], std::max_element(scores, scores + vocab) - scores, missing,
          magnitude > 0 ? missing / double(magnitude) : 0, tolerance_);
  }
}

void check_close(const std::string& mode, const Tensor& result, const Tensor& reference, double tolerance) {
  check(result.sizes() == reference.sizes() && result.dtype() == reference.dtype(),
        "bench: wrong result: mode {} gives {} {}, not {} {}", mode, result.dtype(), result.sizes(), reference.dtype(),
        reference.sizes());
  NoGradGuard no_grad;
  Tensor a = result.to(cpu()).to(kFloat32).contiguous(), b = reference.to(cpu()).to(kFloat32).contiguous();
  double distance = 0, norm = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    double x = a.data_ptr<float>()[i], y = b.data_ptr<float>()[i];
    distance += (x - y) * (x - y);
    norm += y * y;
  }
  // The comparison is false for NaN.
  check(std::sqrt(distance) <= tolerance * std::sqrt(norm),
        "bench: wrong result: mode {} differs by {} of the reference's norm; {} is allowed. No times are reported",
        mode, norm > 0 ? std::sqrt(distance / norm) : std::sqrt(distance), tolerance);
}

}  // namespace sinter::cli
