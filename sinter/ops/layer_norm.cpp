// Normalisations of rows: kept whole while gradients are taken. Differentiated op by op a row would be added up twice, the
// second sum waiting for the first; what the mathematics leaves are two sums side by side.
#include "sinter/ops/layer_norm.h"

#include "sinter/ops/contract.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/define.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/registry.h"

namespace sinter {

namespace {

struct RowNormAttrs {
  int64_t dims = 1;  // how many of the last ones are a row
  double eps = 1e-5;
  SINTER_FIELDS(dims, eps)
};

IntList row_dims(const Tensor& x, int64_t dims) {
  IntList out;
  for (int64_t d = x.dim() - dims; d < x.dim(); ++d) out.push_back(d);
  return out;
}
IntList row_dims(const Tensor& x, const Attrs& attrs) { return row_dims(x, attrs.as<RowNormAttrs>().dims); }

// Elements of a row.
Dim count_of(const Tensor& x, const Attrs& attrs) {
  Dim count = 1;
  for (int64_t d : row_dims(x, attrs)) count *= x.size(d);
  return count;
}

Tensor operand_or(std::span<const TensorArg> inputs, size_t i) {
  return i < inputs.size() ? widened(inputs[i].tensor()) : Tensor();
}

// A number a row, next to x.
Type row_type(const Type& x, int64_t dims) {
  Type out{wide_dtype(x.dtype), x.shape, x.device};
  for (int64_t d = 0; d < dims; ++d) out.shape[out.shape.size() - 1 - size_t(d)] = 1;
  return out;
}

const Type& check_operands(const OpCall& call, size_t most) {
  check(!call.inputs.empty() && call.inputs.size() <= most, "{}: takes 1 to {} tensors, got {}", call.name(), most,
        call.inputs.size());
  const Type& x = call.inputs[0];
  const int64_t dims = call.as<RowNormAttrs>().dims;
  check(is_floating(x.dtype) && dims >= 1 && dims <= x.rank(), "{}: expected a floating input of at least {} dimensions, got {}",
        call.name(), dims, x);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    const Shape& have = call.shape(int(i));
    bool same = have.rank() == dims;
    for (int64_t d = 0; same && d < dims; ++d) same = have[size_t(d)] == x.shape[size_t(x.rank() - dims + d)];
    check(same, "{}: {} is not a row of {}", call.name(), call.inputs[i], x);
  }
  return x;
}

// The gradient of a row's weight or bias, from that of each row.
Tensor over_rows(const Tensor& t, int64_t dims) {
  IntList lead;
  for (int64_t d = 0; d < t.dim() - dims; ++d) lead.push_back(d);
  return lead.empty() ? t : t.sum(lead);
}

}  // namespace

TensorTriple layer_norm_gradients(const Tensor& grad, const Tensor& x, int64_t rows, const Tensor& mean, const Tensor& rstd,
                                  const Tensor& weight, const std::array<bool, 3>& wanted) {
  const IntList dims = row_dims(x, rows);
  Tensor g = widened(grad), normal = (widened(x) - mean) * rstd, dx, dweight, dbias;
  if (wanted[0]) {
    Tensor scaled = weight.defined() ? g * widened(weight) : g;
    dx = (scaled - scaled.mean(dims, true) - normal * (scaled * normal).mean(dims, true)) * rstd;
  }
  if (wanted[1]) dweight = over_rows(g * normal, rows);
  if (wanted[2]) dbias = over_rows(g, rows);
  return {dx, dweight, dbias};
}

// Every row less its mean and by its deviation, times the weight and plus the bias, if these are there; and the mean and the
// inverse deviation of each row.
struct LayerNorm : Composite {
  static constexpr auto name = "native_layer_norm";
  static constexpr int inputs = -1;
  using Attributes = RowNormAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    const Type& x = check_operands(call, 3);
    Type row = row_type(x, call.as<RowNormAttrs>().dims);
    return {x, row, row};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& x = inputs[0].tensor();
    const IntList dims = row_dims(x, attrs);
    Tensor wide = widened(x), mean = wide.mean(dims, true), centered = wide - mean;
    Tensor rstd = rsqrt((centered * centered).mean(dims, true) + attrs.as<RowNormAttrs>().eps), y = centered * rstd;
    Tensor weight = operand_or(inputs, 1), bias = operand_or(inputs, 2);
    if (weight.defined()) y = y * weight;
    if (bias.defined()) y = y + bias;
    return {narrowed(y, x.dtype()), mean, rstd};
  }
  static TensorList grad(const GradCall& c) {
    TensorList out(c.inputs.size());
    const Tensor &x = c[0].tensor(), &mean = c.out(1), &rstd = c.out(2);
    const int64_t row = c.as<RowNormAttrs>().dims;
    Tensor dx;
    if (c.grad(0).defined()) {
      const bool weighted = c.inputs.size() > 1, shifted = c.inputs.size() > 2;
      auto found = layer_norm_gradients(c.grad(0), x, row, mean, rstd, weighted ? c[1].tensor() : Tensor(),
                                        {c.needs(0), weighted && c.needs(1), shifted && c.needs(2)});
      dx = std::get<0>(found);
      if (weighted && c.needs(1)) out[1] = narrowed(std::get<1>(found), c[1].dtype());
      if (shifted && c.needs(2)) out[2] = narrowed(std::get<2>(found), c[2].dtype());
    }
    if (!c.needs(0)) return out;
    // Through the statistics, where somebody uses these.
    const Dim count = count_of(x, c.attrs);
    auto add_through = [&](const Tensor& t) { dx = dx.defined() ? dx + t : t.expand(x.sizes()); };
    if (c.grad(1).defined()) add_through(c.grad(1) / count);
    if (c.grad(2).defined()) add_through((widened(x) - mean) * (c.grad(2) * rstd * rstd * rstd * -1.0 / count));
    if (dx.defined()) out[0] = narrowed(dx, x.dtype());
    return out;
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 1e-4};
  SINTER_SAMPLES("x[3, 4, 5], x[5], x[5]", "x[7, 33], x[33] | eps=0.1", "x[2, 6, 3] | dims=2",
                 "x[2, 6, 3], x[6, 3], x[6, 3] | dims=2")
};

// Every row by the root of the mean of its squares, times the weight, if there is one; and the inverse of that root.
struct RmsNorm : Composite {
  static constexpr auto name = "native_rms_norm";
  static constexpr int inputs = -1;
  using Attributes = RowNormAttrs;

  static std::vector<Type> infer(const OpCall& call) {
    const Type& x = check_operands(call, 2);
    return {x, row_type(x, call.as<RowNormAttrs>().dims)};
  }
  static TensorList decompose(std::span<const TensorArg> inputs, const Attrs& attrs) {
    const Tensor& x = inputs[0].tensor();
    Tensor wide = widened(x), weight = operand_or(inputs, 1);
    Tensor rstd = rsqrt((wide * wide).mean(row_dims(x, attrs), true) + attrs.as<RowNormAttrs>().eps), y = wide * rstd;
    return {narrowed(weight.defined() ? y * weight : y, x.dtype()), rstd};
  }
  static TensorList grad(const GradCall& c) {
    TensorList out(c.inputs.size());
    const Tensor &x = c[0].tensor(), &rstd = c.out(1);
    const IntList dims = row_dims(x, c.attrs);
    Tensor wide = widened(x), normal = wide * rstd, dx;
    if (c.grad(0).defined()) {
      Tensor g = widened(c.grad(0));
      if (c.needs(0)) {
        Tensor scaled = c.inputs.size() > 1 ? g * widened(c[1].tensor()) : g;
        dx = (scaled - normal * (scaled * normal).mean(dims, true)) * rstd;
      }
      if (c.inputs.size() > 1 && c.needs(1)) out[1] = narrowed(over_rows(g * normal, c.as<RowNormAttrs>().dims), c[1].dtype());
    }
    if (!c.needs(0)) return out;
    if (c.grad(1).defined()) {
      Tensor through = wide * (c.grad(1) * rstd * rstd * rstd * -1.0 / count_of(x, c.attrs));
      dx = dx.defined() ? dx + through : through;
    }
    if (dx.defined()) out[0] = narrowed(dx, x.dtype());
    return out;
  }
  static constexpr Tolerance tolerance{.ulp = 128, .absolute = 1e-4};
  SINTER_SAMPLES("x[3, 4, 5], x[5]", "x[7, 33] | eps=0.1", "x[2, 6, 3], x[6, 3] | dims=2")
};

OpFamily row_norm_ops() {
  static const Op* const ops[] = {&op_of<LayerNorm>, &op_of<RmsNorm>};
  return ops;
}

TensorTriple layer_norm_of_rows(const TensorArg& x, int64_t dims, const Tensor& weight, const Tensor& bias, double eps) {
  std::vector<TensorArg> operands{x};
  if (weight.defined() || bias.defined()) operands.emplace_back(weight.defined() ? weight : ones_like(bias));
  if (bias.defined()) operands.emplace_back(bias);
  TensorList out = call_op_many(op_of<LayerNorm>, operands, RowNormAttrs{dims, eps}, x.where());
  return {out[0], out[1], out[2]};
}

Tensor rms_norm_of_rows(const TensorArg& x, int64_t dims, const Tensor& weight, double eps) {
  std::vector<TensorArg> operands{x};
  if (weight.defined()) operands.emplace_back(weight);
  return call_op_many(op_of<RmsNorm>, operands, RowNormAttrs{dims, eps}, x.where())[0];
}

}  // namespace sinter
