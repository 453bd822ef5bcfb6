#include "sinter/engine/kernel_parameters.h"

#include <cctype>

namespace sinter {

Layout layout_of(const TensorImpl* impl, const Shape& shape, int operand, KernelParameters& parameters) {
  if (!impl) return {.scalar = true, .strides = {}};
  if (impl->contiguous) return contiguous_layout(shape);
  Layout layout;
  for (size_t d = 0; d < impl->strides.size(); ++d) layout.strides.push_back(parameters.stride(operand, d, impl->strides[d]));
  return layout;
}

NamedFused name_sizes(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                      std::span<const TensorImpl* const> outputs, KernelParameters& parameters) {
  NamedFused out{Attrs(attrs).map_dims([&](const Dim& d) { return parameters.size(d); }), {}};
  auto& body = *out.attrs.as<FusedAttrs>().body;
  for (size_t i = 0; i < inputs.size(); ++i)
    out.layouts.push_back(layout_of(inputs[i], body.inputs()[i].type().shape, int(i), parameters));
  for (size_t j = 0; j < outputs.size(); ++j)
    out.layouts.push_back(layout_of(outputs[j], body.outputs()[j].type().shape, int(inputs.size() + j), parameters));
  return out;
}

std::string kernel_name(const std::string& name) {
  std::string out = "k_";
  for (char c : name) out += std::isalnum((unsigned char)c) ? c : '_';
  return out;
}

}  // namespace sinter
