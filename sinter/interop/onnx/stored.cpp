#include "sinter/interop/onnx/stored.h"

#include <algorithm>
#include <set>

namespace sinter::interop::onnx {

namespace {

HostTensor host_copy(const Tensor& tensor) {
  HostTensor out{.dtype = tensor.dtype(), .sizes = IntList(tensor.sizes()), .stored = tensor};
  const int64_t count = tensor.numel();
  visit_dtype(out.dtype, [&](auto zero) {
    auto* data = static_cast<const decltype(zero)*>(tensor.data_ptr());
    for (int64_t i = 0; i < count; ++i) {
      if (out.is_real())
        out.real.push_back(double(data[i]));
      else
        out.whole.push_back(int64_t(data[i]));
    }
  });
  return out;
}

// Names as those of modules want them: dots separate parts that are not empty.
class FreeNames {
 public:
  std::string take(std::string name) {
    if (name.empty()) name = "constant";
    if (!fits(name)) std::replace(name.begin(), name.end(), '.', '_');
    std::string out = name;
    for (int number = 2; !fits(out); ++number) out = name + "_" + std::to_string(number);
    tensors_.insert(out);
    for (size_t dot = out.find('.'); dot != std::string::npos; dot = out.find('.', dot + 1))
      modules_.insert(out.substr(0, dot));
    return out;
  }

 private:
  bool fits(const std::string& name) const {
    if (name.front() == '.' || name.back() == '.' || name.find("..") != std::string::npos) return false;
    if (tensors_.contains(name) || modules_.contains(name)) return false;
    if (std::count(name.begin(), name.end(), '.') > kMostDots) return false;
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      if (tensors_.contains(name.substr(0, dot))) return false;
    return true;
  }

  static constexpr int64_t kMostDots = 64;
  std::set<std::string> tensors_, modules_;
};

}  // namespace

Wanted wanted_of(std::string_view type) {
  if (type.starts_with("Tensor")) return Wanted::kTensor;
  return type == "State" ? Wanted::kState : Wanted::kNumber;
}

StoredTensors::Entry& StoredTensors::add(const TensorBytes& bytes, std::string_view name, bool is_weight) {
  entries_.push_back({.bytes = bytes, .name = std::string(name), .is_weight = is_weight});
  return entries_.back();
}

Value StoredTensors::value(Entry& entry, Wanted wanted) const {
  if (!entry.tensor.defined()) entry.tensor = files_.read(entry.bytes);
  const Tensor& tensor = entry.tensor;
  const bool is_small = tensor.numel() <= HostTensor::kMostElements && !is_complex(tensor.dtype());
  // A constant of one element is a number to whoever wants one.
  const bool is_number = tensor.dim() == 0 || (!entry.is_weight && tensor.numel() == 1);
  const bool is_size = is_integral(tensor.dtype()) || tensor.dtype() == kBool || is_number;
  entry.is_state |= wanted == Wanted::kState;
  if (!is_small || !(is_size || wanted == Wanted::kNumber)) return {tensor};
  entry.is_number = true;
  if (!entry.host) entry.host = std::make_shared<const HostTensor>(host_copy(tensor));
  return {entry.host};
}

std::vector<StoredTensor> StoredTensors::take() {
  using Kind = ProgramInput::Kind;
  FreeNames names;
  std::vector<StoredTensor> out;
  for (auto& entry : entries_) {
    if (!entry.tensor.defined()) continue;
    const bool is_weight = entry.is_weight && is_differentiable(entry.tensor.dtype()) && !entry.is_number;
    const Kind kind = !is_weight ? Kind::kConstant : entry.is_state ? Kind::kBuffer : Kind::kParameter;
    out.push_back({kind, names.take(entry.name), entry.tensor});
  }
  return out;
}

}  // namespace sinter::interop::onnx
