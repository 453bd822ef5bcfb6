#include "tests/runtime/attention_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "sinter/base/format.h"
#include "sinter/ops/philox.h"

namespace sinter::runtime {

namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

size_t bytes_of(DType dtype) { return size_t(item_size(dtype)); }

void encode(uint8_t* to, DType dtype, double value) {
  const float x = float(value);
  const uint16_t bits = dtype == kBFloat16 ? float_to_bfloat16(x) : float_to_float16(x);
  std::memcpy(to, dtype == kFloat32 ? static_cast<const void*>(&x) : &bits, bytes_of(dtype));
}

double decode(const uint8_t* from, DType dtype) {
  float x;
  uint16_t bits;
  std::memcpy(dtype == kFloat32 ? static_cast<void*>(&x) : &bits, from, bytes_of(dtype));
  return dtype == kFloat32 ? x : dtype == kBFloat16 ? bfloat16_to_float(bits) : float16_to_float(bits);
}

DType dtype_of(AttentionMaskType mask) {
  return mask == AttentionMaskType::kFloat32 ? kFloat32 : mask == AttentionMaskType::kBFloat16 ? kBFloat16 : kFloat16;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const GradientCase& c) {
  return out << format("batch {} heads {}/{} queries {} keys {} sizes {}/{} causal {} mask {} layout {} dropout {}", c.batch,
                       c.heads, c.key_heads, c.queries, c.keys, c.size, c.value_size, c.causal, int(c.mask),
                       int(c.layout), c.dropout);
}

HostRows::HostRows(const GradientCase& c, DType type, int64_t heads_of, int64_t rows_of, int64_t size_of)
    : heads(heads_of), rows(rows_of), size(size_of), dtype(type) {
  const int64_t width = size + (c.layout == GradientCase::kOddRows ? 1 : 0);
  operand = {nullptr, rows * heads * width, c.layout == GradientCase::kHeadsOutside ? rows * width : width,
             c.layout == GradientCase::kHeadsOutside ? width : heads * width};
  memory.assign(size_t(c.batch * rows * heads * width) * bytes_of(dtype) + 2 * kMargin, 0xff);
  values.resize(size_t(c.batch * heads * rows * size));
}

int64_t HostRows::place(int64_t at) const {
  return at / (size * rows * heads) * operand.batch_stride + at / (size * rows) % heads * operand.head_stride +
         at / size % rows * operand.row_stride + at % size;
}

void HostRows::write(int64_t at, double value) {
  uint8_t* to = data() + size_t(place(at)) * bytes_of(dtype);
  encode(to, dtype, value);
  values[size_t(at)] = decode(to, dtype);
}

void HostRows::read() {
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = decode(data() + size_t(place(int64_t(i))) * bytes_of(dtype), dtype);
}

bool HostRows::gaps_are_untouched() const {
  std::vector<uint8_t> rest = memory;
  for (size_t i = 0; i < values.size(); ++i)
    std::memset(rest.data() + kMargin + size_t(place(int64_t(i))) * bytes_of(dtype), 0xff, bytes_of(dtype));
  return std::all_of(rest.begin(), rest.end(), [](uint8_t x) { return x == 0xff; });
}

GradientProblem::GradientProblem(const GradientCase& of, DType type)
    : c(of),
      dtype(type),
      scale(float(of.scale != 0 ? of.scale : 1 / std::sqrt(double(of.size)))),
      query(of, type, of.heads, of.queries, of.size),
      key(of, type, of.key_heads, of.keys, of.size),
      value(of, type, of.key_heads, of.keys, of.value_size),
      out(of, type, of.heads, of.queries, of.value_size),
      grad_out(of, type, of.heads, of.queries, of.value_size) {
  if (c.dropout > 0) {
    dropout.set_probability(c.dropout);
    dropout.seed = -0x123456789abcdef;
    dropout.offset = int64_t(5) << 33;
  }
  fill();
  compute();
}

double GradientProblem::kept(int64_t row, int64_t key) const {
  if (c.dropout == 0) return 1;
  const uint32_t word = philox(row * ((c.keys + 3) / 4) + key / 4, dropout.seed, dropout.offset)[size_t(key % 4)];
  return (word >> 8) * 0x1p-24 >= double(float(c.dropout)) ? dropout.factor : 0;
}

AttentionMask GradientProblem::mask_shape() const {
  AttentionMask m{.type = c.mask};
  if (c.mask == AttentionMaskType::kNone) return m;
  const int64_t rows = c.mask_by_query ? c.queries : 1, heads = c.mask_by_head ? c.heads : 1;
  m.key_stride = 1;
  m.row_stride = c.mask_by_query ? c.keys : 0;
  m.head_stride = c.mask_by_head ? rows * c.keys : 0;
  m.batch_stride = heads * rows * c.keys;
  return m;
}

void GradientProblem::fill() {
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  for (HostRows* x : {&query, &key, &value, &grad_out})
    for (size_t i = 0; i < x->values.size(); ++i) x->write(int64_t(i), normal(random));
  if (c.mask == AttentionMaskType::kNone) return;
  const AttentionMask m = mask_shape();
  const bool is_bool = c.mask == AttentionMaskType::kBool;
  const size_t item = is_bool ? 1 : bytes_of(dtype_of(c.mask));
  mask.resize(size_t(c.batch * m.batch_stride) * item);
  for (size_t i = 0; i < mask.size() / item; ++i) {
    const int64_t row = int64_t(i) / c.keys % (c.mask_by_query ? c.queries : 1);
    const bool blind = std::find(c.blind.begin(), c.blind.end(), row) != c.blind.end();
    const double x = normal(random);
    if (is_bool)
      mask[i] = !blind && x > -0.3;
    else
      encode(mask.data() + i * item, dtype_of(c.mask), blind || x < -1.5 ? kNever : x);
  }
}

double GradientProblem::mask_term(int64_t batch, int64_t head, int64_t row, int64_t column) const {
  if (c.causal && column > row) return kNever;
  if (c.mask == AttentionMaskType::kNone) return 0;
  const AttentionMask m = mask_shape();
  const auto at = size_t(batch * m.batch_stride + head * m.head_stride + row * m.row_stride + column * m.key_stride);
  if (c.mask == AttentionMaskType::kBool) return mask[at] ? 0 : kNever;
  return decode(mask.data() + at * bytes_of(dtype_of(c.mask)), dtype_of(c.mask));
}

void GradientProblem::compute() {
  lse.resize(size_t(c.batch * c.heads * c.queries));
  means.resize(lse.size());
  const auto clear = [](Expected& x, size_t count) { x.values.assign(count, 0), x.magnitude.assign(count, 0); };
  clear(grad_query, query.values.size()), clear(grad_key, key.values.size()), clear(grad_value, value.values.size());
  const auto add = [](Expected& x, size_t at, double term, double size) {
    x.values[at] += term, x.magnitude[at] += size * size;
  };
  const auto dot = [](const double* a, const double* b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  };
  std::vector<double> weight(size_t(c.keys)), row(size_t(c.value_size));
  for (int64_t unit = 0; unit < c.batch * c.heads; ++unit) {
    const int64_t batch = unit / c.heads, head = unit % c.heads;
    const int64_t key_unit = batch * c.key_heads + head / (c.heads / c.key_heads);
    for (int64_t i = 0; i < c.queries; ++i) {
      const int64_t at = unit * c.queries + i;
      const double *q = &query.values[size_t(at * c.size)], *grad = &grad_out.values[size_t(at * c.value_size)];
      double top = kNever, sum = 0;
      for (int64_t j = 0; j < c.keys; ++j) {
        const double hidden = mask_term(batch, head, i, j);
        weight[size_t(j)] =
            hidden == kNever
                ? kNever
                : double(scale) * dot(q, &key.values[size_t((key_unit * c.keys + j) * c.size)], c.size) + hidden;
        top = std::max(top, weight[size_t(j)]);
      }
      for (double& w : weight) sum += w = top == kNever ? 0 : std::exp(w - top);
      lse[size_t(at)] = top == kNever ? -kNever : top + std::log(sum);
      std::fill(row.begin(), row.end(), 0);
      for (int64_t j = 0; j < c.keys; ++j)
        for (int64_t e = 0; e < c.value_size; ++e)
          row[size_t(e)] += (sum == 0 ? 0 : weight[size_t(j)] / sum * kept(at, j)) *
                            value.values[size_t((key_unit * c.keys + j) * c.value_size + e)];
      const double delta = means[size_t(at)] = dot(row.data(), grad, c.value_size);
      for (int64_t e = 0; e < c.value_size; ++e) out.write(at * c.value_size + e, row[size_t(e)]);
      for (int64_t j = 0; j < c.keys; ++j) {
        const double w = sum == 0 ? 0 : weight[size_t(j)] / sum;
        if (w == 0) continue;
        const auto first = size_t((key_unit * c.keys + j) * c.size),
                   second = size_t((key_unit * c.keys + j) * c.value_size);
        const double stays = kept(at, j), step = stays * dot(grad, &value.values[second], c.value_size);
        const double change = scale * w * (step - delta), size = scale * w * (std::abs(step) + std::abs(delta));
        for (int64_t e = 0; e < c.size; ++e) {
          const double k = key.values[first + size_t(e)], x = q[e];
          add(grad_query, size_t(at * c.size + e), change * k, size * k);
          add(grad_key, first + size_t(e), change * x, size * x);
        }
        for (int64_t e = 0; e < c.value_size; ++e) add(grad_value, second + size_t(e), stays * w * grad[e], stays * w * grad[e]);
      }
    }
  }
  for (Expected* x : {&grad_query, &grad_key, &grad_value})
    for (double& m : x->magnitude) m = std::sqrt(m);
}

CudaAttentionBackward GradientProblem::shape() const {
  CudaAttentionBackward p{.batch = c.batch,
                          .heads = c.heads,
                          .queries = c.queries,
                          .keys = c.keys,
                          .size = c.size,
                          .value_size = c.value_size,
                          .group = c.heads / c.key_heads,
                          .dtype = dtype};
  p.query = query.operand, p.key = key.operand, p.value = value.operand;
  p.grad_out = grad_out.operand;
  p.mask = mask_shape();
  p.causal = c.causal;
  p.scale = scale;
  p.dropout = dropout;
  const auto gradient = [](const HostRows& x) {
    return CudaAttentionGradient{nullptr, x.operand.batch_stride, x.operand.head_stride, x.operand.row_stride};
  };
  p.grad_query = gradient(query), p.grad_key = gradient(key), p.grad_value = gradient(value);
  return p;
}

Distance distance(const std::vector<double>& got, const std::vector<double>& want,
                  const std::vector<double>& magnitude) {
  double error = 0, worst = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += magnitude[i] * magnitude[i];
  }
  const double count = double(want.size()), root = size == 0 ? 1 : std::sqrt(size / count);
  for (size_t i = 0; i < want.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - want[i]) / (std::abs(magnitude[i]) + root));
  return {std::sqrt(error / count) / root, worst};
}

}  // namespace sinter::runtime
