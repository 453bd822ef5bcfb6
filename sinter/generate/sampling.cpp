#include "sinter/generate/sampling.h"

#include <algorithm>
#include <limits>

#include "sinter/base/error.h"
#include "sinter/base/hash.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter {

void SamplingOptions::check() const {
  sinter::check(temperature >= 0,
                "generate: temperature is {}, which must not be negative (0 takes the likeliest token)", temperature);
  sinter::check(top_k >= 0, "generate: top_k is {}, which must not be negative (0 keeps all tokens)", top_k);
  sinter::check(top_p > 0 && top_p <= 1, "generate: top_p is {}, which must be in (0, 1]", top_p);
  sinter::check(min_p >= 0 && min_p < 1, "generate: min_p is {}, which must be in [0, 1)", min_p);
  sinter::check(repetition_penalty > 0, "generate: repetition_penalty is {}, which must be positive",
                repetition_penalty);
}

SamplingShape SamplingShape::of(const SamplingOptions& options) {
  SamplingShape shape;
  shape.penalty = options.repetition_penalty != 1;
  shape.suppresses = !options.suppress_ids.empty() || !options.suppress_first_ids.empty();
  shape.samples = options.samples();
  if (!shape.samples) return shape;
  shape.nucleus = options.top_p < 1;
  shape.min_p = options.min_p > 0;
  shape.top_k = options.top_k;
  return shape;
}

namespace {

constexpr int64_t kTemperature = 0, kTopP = 1, kMinP = 2, kPenalty = 3, kTopK = 4, kColumns = 5;

// Without a limit top_k is that of all tokens.
void write_numbers(const SamplingOptions& options, float* row, int64_t vocab) {
  row[kTemperature] = float(options.temperature);
  row[kTopP] = float(options.top_p);
  row[kMinP] = float(options.min_p);
  row[kPenalty] = float(options.repetition_penalty);
  row[kTopK] = float(options.top_k > 0 ? options.top_k : vocab);
}

}  // namespace

std::string SamplingShape::text() const {
  return format("samples={} penalty={} nucleus={} min_p={} top_k={} suppresses={}", samples, penalty, nucleus, min_p,
                top_k, suppresses);
}

Tensor sampling_numbers(const SamplingOptions& options, int64_t rows) {
  std::vector<float> values(size_t(rows * kColumns));
  for (int64_t r = 0; r < rows; ++r) write_numbers(options, values.data() + r * kColumns, /*vocab=*/0);
  return tensor(values).view({rows, kColumns});
}

double sampling_draw(uint64_t seed, int64_t row, int64_t step) {
  const int64_t counter[2] = {row, step};
  return double(hash_bytes(counter, sizeof counter, hash_mix(seed, 0x9e3779b97f4a7c15ull)) >> 11) * 0x1p-53;
}

namespace {

// Of tokens that have occurred.
Tensor penalised(const Tensor& logits, const Tensor& seen, const Tensor& penalty) {
  return where(seen, where(logits > 0, logits / penalty, logits * penalty), logits);
}

// The first candidate whose sum passes the draw, [rows, 1]. A draw next to one may pass the last sum by rounding.
Tensor drawn_place(const Tensor& p, const Tensor& draws) {
  Tensor sums = p.cumsum(-1), total = sums.slice(-1, -1);
  Tensor place = (sums <= draws.unsqueeze(-1).to(kFloat32) * total).to(kInt64).sum({-1}, true);
  Tensor last = (p > 0).to(kInt64) * arange_of_size(p.size(-1), TensorOptions(kInt64).device(p.device()));
  return minimum(place, last.amax({-1}, true));
}

}  // namespace

Tensor sample(const Tensor& given, const SamplingShape& shape, const Tensor& numbers, const Tensor& draws,
              const Tensor& seen) {
  auto number = [&](int64_t column) { return numbers.slice(1, column, column + 1); };
  Tensor logits = given.to(kFloat32);
  if (shape.penalty) logits = penalised(logits, seen, number(kPenalty));
  if (!shape.samples) return logits.argmax(-1);

  logits = logits / number(kTemperature);
  // Candidates in order, where an order is needed; position j of row i stands for token tokens[i, j].
  Tensor tokens;
  if (shape.top_k > 0)
    std::tie(logits, tokens) = topk(logits, Dim(std::min(shape.top_k, logits.size(-1).to_int())), -1);
  else if (shape.nucleus)
    std::tie(logits, tokens) = sort(logits, -1, /*descending=*/true);
  Tensor p = logits.softmax(-1);
  // Kept are the candidates before whom less than top_p has gone: always the first.
  if (shape.nucleus) p = where(p.cumsum(-1) - p < number(kTopP), p, 0.0);
  if (shape.min_p) p = where(p >= p.amax({-1}, true) * number(kMinP), p, 0.0);
  Tensor place = drawn_place(p, draws);
  if (tokens.defined()) place = tokens.gather(-1, place);
  return place.squeeze(-1);
}

Picking RowSampling::picking() const {
  if (!bias.empty() || !seen.empty()) return Picking::kGeneral;
  if (!options.samples()) return Picking::kLikeliest;
  return options.top_k > 0 || options.top_p < 1 ? Picking::kGeneral : Picking::kDrawn;
}

RowsSampling RowsSampling::of(std::span<const RowSampling* const> rows, Picking picking, int64_t vocab) {
  const int64_t count = int64_t(rows.size()), wide = picking == Picking::kGeneral ? vocab : 0;
  RowsSampling out;
  std::vector<float> numbers(size_t(count * kColumns), 1);
  std::vector<double> draws(size_t(count), 0);
  out.bias = empty({count, wide}, kFloat32);
  out.seen = empty({count, wide}, kBool);
  for (int64_t r = 0; r < count; ++r) {
    const RowSampling* row = rows[size_t(r)];
    write_numbers(row ? row->options : SamplingOptions(), numbers.data() + r * kColumns, vocab);
    draws[size_t(r)] = row ? row->draw : 0;
    if (wide == 0) continue;
    float* bias = out.bias.data_ptr<float>() + r * vocab;
    bool* seen = out.seen.data_ptr<bool>() + r * vocab;
    std::fill_n(bias, vocab, 0.0f);
    std::fill_n(seen, vocab, false);
    if (!row) continue;
    std::copy(row->bias.begin(), row->bias.end(), bias);
    std::copy(row->seen.begin(), row->seen.end(), seen);
  }
  out.numbers = tensor(numbers).view({count, kColumns});
  out.draws = tensor(draws);
  return out;
}

Tensor sample_rows(const Tensor& given, Picking picking, const RowsSampling& rows) {
  auto number = [&](int64_t column) { return rows.numbers.slice(1, column, column + 1); };
  Tensor logits = given.to(kFloat32);
  if (picking == Picking::kLikeliest) return logits.argmax(-1);
  if (picking == Picking::kGeneral) logits = penalised(logits, rows.seen, number(kPenalty)) + rows.bias;
  Tensor likeliest = logits.argmax(-1), temperature = number(kTemperature), tokens;
  logits = logits / where(temperature > 0, temperature, 1.0);
  if (picking == Picking::kGeneral) {
    std::tie(logits, tokens) = sort(logits, -1, /*descending=*/true);
    Tensor place = arange_of_size(logits.size(-1), TensorOptions(kFloat32).device(logits.device()));
    logits = where(place < number(kTopK), logits, -std::numeric_limits<double>::infinity());
  }
  Tensor p = logits.softmax(-1);
  if (picking == Picking::kGeneral) p = where(p.cumsum(-1) - p < number(kTopP), p, 0.0);
  p = where(p >= p.amax({-1}, true) * number(kMinP), p, 0.0);
  Tensor place = drawn_place(p, rows.draws);
  if (tokens.defined()) place = tokens.gather(-1, place);
  return where(temperature.squeeze(-1) > 0, place.squeeze(-1), likeliest);
}

}  // namespace sinter
