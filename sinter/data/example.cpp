#include "sinter/data/example.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/ops/view.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::data::detail {

Tensor stack_examples(std::span<const Tensor> tensors, const char* what) {
  check(!tensors.empty(), "Stack: no examples");
  if (std::none_of(tensors.begin(), tensors.end(), [](auto& t) { return t.defined(); })) return {};
  const Tensor& first = tensors[0];
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].defined(), "Stack: the {} of example {} of the batch are undefined", what, i);
    check(first.defined() && tensors[i].sizes().same_as(first.sizes()) && tensors[i].dtype() == first.dtype() &&
              tensors[i].device() == first.device(),
          "Stack: the {} of the batch differ: {}{} on {} in example 0, {}{} on {} in example {}", what,
          tensors[0].dtype(), tensors[0].sizes(), tensors[0].device(), tensors[i].dtype(), tensors[i].sizes(),
          tensors[i].device(), i);
  }
  // On the host by plain copies: a worker's batch needs no kernel, and takes no threads of others.
  if (!first.device().is_cpu()) return stack({tensors.begin(), tensors.end()});
  Shape shape = {Dim(int64_t(tensors.size()))};
  shape.append(first.sizes());
  Tensor out = empty(shape, first.dtype());
  auto* at = static_cast<char*>(out.data_ptr());
  const int64_t bytes = first.impl().numel * first.element_size();
  for (auto& tensor : tensors) {
    copy_packed(tensor, at);
    at += bytes;
  }
  return out;
}

}  // namespace sinter::data::detail
