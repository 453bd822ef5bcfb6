#include "sinter/interop/host_tensor.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/view.h"

namespace sinter::interop {

bool HostTensor::is_constant() const {
  return std::all_of(whole.begin(), whole.end(), [](const Dim& d) { return d.is_number(); });
}

HostTensor read_elements(const Tensor& tensor) {
  HostTensor out{.dtype = tensor.dtype(), .sizes = IntList(tensor.sizes()), .device = tensor.device()};
  check(!is_complex(out.dtype), "complex numbers are read where plain numbers are expected");
  if (out.is_real()) {
    out.real = tensor.to(kFloat64).to_vector<double>();
  } else {
    for (int64_t each : tensor.to_vector<int64_t>()) out.whole.push_back(each);
  }
  if (!tensor.is_traced()) out.stored = tensor;
  return out;
}

Tensor tensor_of(const HostTensor& host) {
  if (host.stored.defined()) return host.stored;
  const TensorOptions options = TensorOptions(host.dtype).device(host.device);
  if (host.count() == 1) {
    // Filled by an op, so that a captured program holds the number and no memory of the host's.
    const TensorArg value = host.is_real() ? TensorArg(Scalar(host.real[0])) : TensorArg(host.whole[0]);
    return full(Shape(host.sizes), value, options);
  }
  if (host.is_real()) return from_data(host.real, Shape(host.sizes)).to(host.dtype).to(host.device);
  if (host.is_constant()) {
    std::vector<int64_t> numbers;
    for (auto& each : host.whole) numbers.push_back(each.number());
    return from_data(numbers, Shape(host.sizes)).to(host.dtype).to(host.device);
  }
  TensorList elements;
  for (auto& each : host.whole) elements.push_back(full({1}, each, options));
  return cat(elements).view(Shape(host.sizes));
}

Value element_of(const HostTensor& host, int64_t at) {
  if (host.is_real()) return {Scalar(host.real[size_t(at)])};
  return {host.whole[size_t(at)]};
}

}  // namespace sinter::interop
