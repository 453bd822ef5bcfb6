#include "sinter/nn/quantize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sinter/autograd/autograd.h"
#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/dequantize.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/float8.h"

namespace sinter::nn {

namespace {

constexpr float kMostInt8 = 127, kMostUInt4 = 15;
constexpr float kRounder =
    12582912;  // 1.5 * 2^23: adding it to something small leaves a whole number, halves go to even

// The scale and the zero of one group, and the squared error that they leave.
struct Fit {
  float scale = 0, zero = 0;
  double error = INFINITY;
};

// What a stored scale is: of a dtype with fewer digits than float.
class Rounding {
 public:
  explicit Rounding(DType dtype) : dtype_(dtype) {}
  float operator()(float value) const {
    return dtype_ == kBFloat16 ? float(BFloat16(value)) : dtype_ == kFloat16 ? float(Half(value)) : value;
  }

 private:
  DType dtype_;
};

// Four numbers at a time.
typedef float Lanes __attribute__((vector_size(16)));
constexpr int64_t kLanes = 4;

float sum_of(Lanes v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// A group in whole lanes; zeros behind it are codes without an error.
class Group {
 public:
  Group(const float* w, int64_t count) : lanes_(size_t((count + kLanes - 1) / kLanes)) {
    for (int64_t i = 0; i < count; ++i) lanes_[size_t(i / kLanes)][i % kLanes] = w[i];
  }

  float least() const {
    return reduced([](float a, float b) { return std::min(a, b); });
  }
  float most() const {
    return reduced([](float a, float b) { return std::max(a, b); });
  }

  // Codes as floats, less the zero.
  static Lanes shifted_codes(Lanes w, float inverse, float zero) {
    const Lanes code = w * inverse + kRounder - kRounder, low = Lanes{} - zero, high = low + kMostUInt4;
    const Lanes above = code < low ? low : code;
    return above > high ? high : above;
  }

  Fit judged(float scale, float zero) const {
    if (!(scale > 0)) return {};
    const float inverse = 1 / scale;
    Lanes error{};
    for (const Lanes& w : lanes_) {
      const Lanes off = w - shifted_codes(w, inverse, zero) * scale;
      error += off * off;
    }
    return {scale, zero, double(sum_of(error))};
  }

  // For codes as they are, the scale with the least squared error.
  float refined(const Fit& fit) const {
    const float inverse = 1 / fit.scale;
    Lanes with_weight{}, with_itself{};
    for (const Lanes& w : lanes_) {
      const Lanes code = shifted_codes(w, inverse, fit.zero);
      with_weight += code * w;
      with_itself += code * code;
    }
    const float divisor = sum_of(with_itself);
    return divisor > 0 ? sum_of(with_weight) / divisor : fit.scale;
  }

  int code(int64_t i, const Fit& fit) const {
    return int(shifted_codes(lanes_[size_t(i / kLanes)], 1 / fit.scale, fit.zero)[i % kLanes] + fit.zero);
  }

 private:
  template <class F>
  float reduced(F&& f) const {
    float out = 0;
    for (const Lanes& w : lanes_)
      for (int64_t i = 0; i < kLanes; ++i) out = f(out, w[i]);
    return out;
  }

  std::vector<Lanes> lanes_;
};

// Ranges from the whole one to one that cuts off a third, each with the scale that its codes want.
Fit fit_group(const Group& group, const Rounding& rounded) {
  const float least = group.least(), most = group.most();  // zero is among them
  Fit best;
  for (float part = 1; part > 0.66f && most > least; part -= 0.06f) {
    const float scale = rounded(part * (most - least) / kMostUInt4);
    if (!(scale > 0)) continue;
    const float zero = std::clamp(std::nearbyint(-part * least / scale), 0.0f, kMostUInt4);
    Fit fit = group.judged(scale, zero);
    const Fit again = group.judged(rounded(group.refined(fit)), zero);
    if (again.error < fit.error) fit = again;
    if (fit.error < best.error) best = fit;
  }
  // All zero, or so small that no scale tells them from zero.
  return std::isfinite(best.error) ? best : Fit{1, 0, 0};
}

// Rows of a weight as floats, some at a time: a copy of all of it could be the largest tensor of a model.
void for_each_row(const Tensor& weight, const std::function<void(int64_t row, const float* w)>& f) {
  const int64_t rows = weight.size(0), columns = weight.size(1),
                step = std::max<int64_t>(1, (int64_t(4) << 20) / (columns + 1));
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const Tensor floats = weight.narrow(0, first, count).cpu().to(kFloat32).contiguous();
    const float* w = floats.data_ptr<float>();
    parallel_for(0, count, std::max<int64_t>(1, 16384 / (columns + 1)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t i = 0; i < columns; ++i)
          check(std::isfinite(w[r * columns + i]),
                "quantize: the weight holds infinities, or what is no number; there are no codes for them");
        f(first + r, w + r * columns);
      }
    });
  }
}

QuantizedWeight to_int8(const Tensor& weight, DType dtype) {
  const int64_t rows = weight.size(0), columns = weight.size(1);
  Tensor codes = empty({rows, columns}, kInt8), scale = empty({rows, 1}, kFloat32);
  const Rounding rounded(dtype);
  int8_t* const to = codes.data_ptr<int8_t>();
  float* const scales = scale.data_ptr<float>();
  for_each_row(weight, [&](int64_t r, const float* w) {
    float most = 0;
    for (int64_t i = 0; i < columns; ++i) most = std::max(most, std::abs(w[i]));
    const float step = rounded(most / kMostInt8);
    scales[r] = step > 0 ? step : 1;
    const float inverse = 1 / scales[r];
    for (int64_t i = 0; i < columns; ++i)
      to[r * columns + i] = int8_t(std::clamp(w[i] * inverse + kRounder - kRounder, -kMostInt8, kMostInt8));
  });
  return {codes, scale.to(dtype), {}, {}, Encoding::kInt8, 0, 1, columns};
}

QuantizedWeight to_e4m3(const Tensor& weight, DType dtype) {
  const int64_t rows = weight.size(0), columns = weight.size(1);
  Tensor codes = empty({rows, columns}, kUInt8), scale = empty({rows, 1}, kFloat32);
  const Rounding rounded(dtype);
  uint8_t* const to = codes.data_ptr<uint8_t>();
  float* const scales = scale.data_ptr<float>();
  for_each_row(weight, [&](int64_t r, const float* w) {
    float most = 0;
    for (int64_t i = 0; i < columns; ++i) most = std::max(most, std::abs(w[i]));
    const float step = rounded(most / kMostE4m3);
    scales[r] = step > 0 ? step : 1;
    for (int64_t i = 0; i < columns; ++i) to[r * columns + i] = float_to_e4m3(w[i] / scales[r]);
  });
  return {codes, scale.to(dtype), {}, e4m3_table(), Encoding::kTable8, 0, 1, columns};
}

QuantizedWeight to_uint4(const Tensor& weight, DType dtype, int64_t group_size) {
  const int64_t rows = weight.size(0), columns = weight.size(1), groups = (columns + group_size - 1) / group_size;
  const int64_t bytes = (columns + 1) / 2;
  Tensor codes = zeros({rows, bytes}, kUInt8), scale = empty({rows, groups}, kFloat32),
         zero = empty({rows, groups}, kUInt8);
  const Rounding rounded(dtype);
  uint8_t *const to = codes.data_ptr<uint8_t>(), *const zeros = zero.data_ptr<uint8_t>();
  float* const scales = scale.data_ptr<float>();
  for_each_row(weight, [&](int64_t r, const float* w) {
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = g * group_size, count = std::min(group_size, columns - first);
      const Group group(w + first, count);
      const Fit fit = fit_group(group, rounded);
      scales[r * groups + g] = fit.scale;
      zeros[r * groups + g] = uint8_t(fit.zero);
      for (int64_t i = 0; i < count; ++i)
        to[r * bytes + (first + i) / 2] |= uint8_t(group.code(i, fit) << ((first + i) % 2 * 4));
    }
  });
  return {codes, scale.to(dtype), zero, {}, Encoding::kUInt4, group_size, 1, columns};
}

}  // namespace

Tensor e4m3_table() {
  std::vector<float> numbers;
  for (int code = 0; code < 256; ++code) numbers.push_back(e4m3_to_float(uint8_t(code)));
  return tensor(numbers);
}

Tensor QuantizedWeight::dequantize(DType dtype) const {
  const Tensor stored = dequantize_as_stored(dtype);
  return order.defined() ? stored.index_select(1, argsort(order)) : stored;
}

Tensor QuantizedWeight::dequantize_as_stored(DType dtype) const {
  DequantizeOptions options;
  options.encoding(encoding).group_size(group_size).block_rows(block_rows).dtype(dtype).table(table).offset(offset);
  if (columns % codes_in_byte(encoding) != 0) options.columns(columns);
  return sinter::dequantize(codes, scale, zero, options);
}

QuantizedWeight quantize(const Tensor& weight, const QuantizeOptions& options) {
  NoGradGuard no_grad;
  check(weight.dim() == 2 && weight.is_floating_point(), "quantize: expected a floating-point matrix, got {} {}",
        weight.dtype(), weight.sizes());
  check(options.encoding != Encoding::kTable4, "quantize: {} is a way to read weights; they are quantised to int8, uint4 or table8",
        field_text(options.encoding));
  check(options.group_size >= 0 && options.group_size % 8 == 0,
        "quantize: groups of {} columns; they are a multiple of 8", options.group_size);
  const Tensor values = weight.detach();
  const DType dtype = weight.dtype() == kFloat64 ? kFloat32 : weight.dtype();
  constexpr int64_t kShortRow = 1024, kGroup = 128, kSmallGroup = 32;
  const int64_t group = options.group_size ? options.group_size : weight.size(1) < kShortRow ? kSmallGroup : kGroup;
  QuantizedWeight out = options.encoding == Encoding::kInt8    ? to_int8(values, dtype)
                        : options.encoding == Encoding::kTable8 ? to_e4m3(values, dtype)
                                                                : to_uint4(values, dtype, group);
  for (Tensor* tensor : out.tensors())
    if (tensor->defined()) *tensor = tensor->to(weight.device());
  return out;
}

void set_quantized(LinearImpl& layer, const QuantizedWeight& weight) {
  const int64_t in = layer.options.in_features(), out = layer.options.out_features();
  check(weight.codes.defined() && weight.columns == in && weight.codes.size(0) == out,
        "nn::Linear: a quantised weight of {} by {} for a layer of {} by {}",
        weight.codes.defined() ? weight.codes.size(0) : Dim(0), weight.columns, out, in);
  check(!layer.quantized, "nn::Linear: the layer is quantised already");
  layer.unregister_parameter("weight");
  layer.weight = Tensor();
  layer.quantized = std::make_shared<QuantizedWeight>(weight);
  layer.register_quantized();
}

int64_t quantize_(Module& module, const QuantizeOptions& options) {
  int64_t count = 0;
  for (auto& [name, each] : module.named_modules()) {
    auto* layer = each->as<Linear>();
    if (!layer || layer->quantized || (options.filter && !options.filter(name))) continue;
    set_quantized(*layer, quantize(layer->weight, options));
    ++count;
  }
  return count;
}

}  // namespace sinter::nn
