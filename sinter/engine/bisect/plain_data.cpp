#include "sinter/engine/bisect/plain_data.h"

#include <cmath>
#include <cstdio>

#include "sinter/autograd/autograd.h"
#include "sinter/ops/creation.h"

namespace sinter::bisection {

namespace {

// Values beyond these many are worth a line of their own length.
constexpr int64_t kMostElements = 1 << 12;

// The default stream, as it was when this is over.
class KeptStream {
 public:
  KeptStream() : before_(default_generator().next(0)) {}
  ~KeptStream() {
    default_generator().manual_seed(uint64_t(before_.seed));
    default_generator().next(before_.offset);
  }

 private:
  const Generator::Draw before_;
};

std::string list(const IntList& sizes) {
  std::string out;
  for (int64_t size : sizes) out += (out.empty() ? "" : ", ") + std::to_string(size);
  return "{" + out + "}";
}

std::string dtype_text(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return "kFloat64";
    case DType::kFloat32: return "kFloat32";
    case DType::kFloat16: return "kFloat16";
    case DType::kBFloat16: return "kBFloat16";
    case DType::kInt64: return "kInt64";
    case DType::kInt32: return "kInt32";
    case DType::kInt16: return "kInt16";
    case DType::kInt8: return "kInt8";
    case DType::kUInt8: return "kUInt8";
    case DType::kBool: return "kBool";
    case DType::kComplex64: return "kComplex64";
    case DType::kComplex128: return "kComplex128";
  }
  return "kFloat32";
}

// The expression for an f32 or i64 tensor on the host, brought to where the operand is.
std::string placed(const std::string& text, DType made, const Tensor& like) {
  std::string out = text;
  if (like.dtype() != made) out += format(".to({})", dtype_text(like.dtype()));
  if (!like.device().is_cpu()) out += format(".to({}({}))", name_of(like.device().type()), int(like.device().index()));
  return out;
}

Tensor placed(const Tensor& tensor, const Tensor& like) {
  Tensor out = tensor.dtype() == like.dtype() ? tensor : tensor.to(like.dtype());
  return like.device().is_cpu() ? out : out.to(like.device());
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  char text[40];
  std::snprintf(text, sizeof(text), "%.9g", value);
  if (std::stod(text) != value) std::snprintf(text, sizeof(text), "%.17g", value);
  std::string out = text;
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

// The same elements with so many digits.
Tensor rounded(const Tensor& tensor, int digits) {
  auto values = tensor.to_vector<double>();
  for (double& value : values) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    value = std::stod(text);
  }
  return placed(sinter::tensor(values, kFloat64).view(tensor.sizes()), tensor);
}

}  // namespace

std::vector<TrialInput> plain_inputs(const Tensor& tensor) {
  NoGradGuard no_history;
  KeptStream stream;
  std::vector<TrialInput> out;
  std::string sizes = list(tensor.impl().sizes);
  Shape shape = tensor.sizes();
  bool floating = is_floating(tensor.dtype());
  DType made = floating ? kFloat32 : kInt64;
  out.push_back({TensorArg(placed(ones(shape, made), tensor)), placed(floating ? "ones(" + sizes + ")" : "ones(" + sizes + ", kInt64)", made, tensor)});
  out.push_back({TensorArg(placed(zeros(shape, made), tensor)), placed(floating ? "zeros(" + sizes + ")" : "zeros(" + sizes + ", kInt64)", made, tensor)});
  if (floating) {
    for (int seed : {1, 2}) {
      manual_seed(uint64_t(seed));
      out.push_back({TensorArg(placed(randn(shape), tensor)), placed(format("random({}, {})", seed, sizes), kFloat32, tensor)});
    }
    if (tensor.numel() <= kMostElements)
      for (int digits : {1, 2}) out.push_back({TensorArg(rounded(tensor, digits))});
  } else if (tensor.dim() == 1 && tensor.dtype() != kBool) {
    out.push_back({TensorArg(placed(arange(tensor.numel()), tensor)), placed(format("arange({})", tensor.numel()), kInt64, tensor)});
  }
  return out;
}

std::string input_text(const TrialInput& input) {
  const Tensor& tensor = input.value.tensor();
  std::string out = input.maker;
  if (out.empty()) {
    std::string elements;
    auto values = tensor.detach().to_vector<double>();
    bool floating = is_floating(tensor.dtype());
    for (double value : values) elements += (elements.empty() ? "" : ", ") + (floating ? number_text(value) : std::to_string(int64_t(value)));
    out = values.empty() ? "zeros(" + list(tensor.impl().sizes) + ")"
                         : "tensor({" + elements + "}, " + (floating ? "kFloat64" : "kInt64") + ").view(" + list(tensor.impl().sizes) + ")";
    out = placed(out, values.empty() ? kFloat32 : floating ? kFloat64 : kInt64, tensor);
  }
  if (tensor.is_contiguous()) return out;
  return "laid(" + out + ", " + list(tensor.impl().strides) + ")";
}

}  // namespace sinter::bisection
