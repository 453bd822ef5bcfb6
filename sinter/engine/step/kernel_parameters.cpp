#include "sinter/engine/step/kernel_parameters.h"

#include <algorithm>
#include <cctype>

#include "sinter/base/error.h"
#include "sinter/base/fault.h"
#include "sinter/ops/known_ops.h"
#include "sinter/ops/reshape.h"
#include "sinter/runtime/device_runtime.h"

namespace sinter {

namespace {

// Runs of dimensions that hold as many elements, one on one side.
void find_products(IntList from, IntList to, std::map<int64_t, IntList>& parts_of) {
  auto drop_ones = [](IntList& sizes) {
    sizes.erase(std::remove(sizes.begin(), sizes.end(), 1), sizes.end());
    return std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
  };
  if (!drop_ones(from) || !drop_ones(to)) return;
  for (size_t f = 0, t = 0; f < from.size() && t < to.size();) {
    size_t first_f = f, first_t = t;
    int64_t a = from[f++], b = to[t++];
    while (a != b) a < b ? a *= from[f++] : b *= to[t++];
    if (f - first_f == 1 && t - first_t > 1) parts_of.try_emplace(a, IntList(to.begin() + first_t, to.begin() + t));
    if (t - first_t == 1 && f - first_f > 1) parts_of.try_emplace(a, IntList(from.begin() + first_f, from.begin() + f));
  }
}

}  // namespace

void KernelParameters::relate_products(const Graph& body) {
  std::map<int64_t, IntList> parts_of;
  for (auto& node : body.nodes()) {
    if (joins_pairs(node)) two_is_text_ = true;
    if (node.op != &reshape_op()) continue;
    find_products(node.inputs[0].type().shape.numbers(), node.types[0].shape.numbers(), parts_of);
  }
  for (auto& [product, parts] : parts_of)
    if (parts.back() == 2) two_is_text_ = true;
  if (two_is_text_) sizes_[2] = 2;
  for (auto& [product, parts] : parts_of) {
    Dim lifted = 1;
    for (int64_t part : parts) lifted *= size(part);
    sizes_.try_emplace(product, lifted);
  }
}

namespace {

// Dimensions as they lie in memory, the one with the largest steps first.
IntList order_of(const TensorImpl& impl) {
  IntList order;
  for (size_t d = 0; d < impl.sizes.size(); ++d) order.push_back(int64_t(d));
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return impl.strides[size_t(a)] > impl.strides[size_t(b)]; });
  return order;
}

// The strides of a tensor without gaps, such as one with its channels last, as products of sizes, so that axes which lie one in
// the other are walked as one.
std::optional<Layout> dense_layout(const TensorImpl& impl, const Shape& shape) {
  Layout layout;
  layout.strides.resize(shape.size(), Dim(0));
  const IntList order = order_of(impl);
  Dim stride = 1;
  int64_t value = 1;
  for (size_t n = order.size(); n-- > 0;) {
    const size_t d = size_t(order[n]);
    if (impl.sizes[d] == 1) continue;
    if (impl.strides[d] != value) return std::nullopt;
    layout.strides[d] = stride;
    stride = stride * shape[d];
    value *= impl.sizes[d];
  }
  return layout;
}

}  // namespace

Layout layout_of(const TensorImpl* impl, const Shape& shape, int operand, KernelParameters& parameters) {
  if (!impl) return {.scalar = true, .strides = {}};
  if (impl->contiguous) return contiguous_layout(shape);
  if (auto dense = dense_layout(*impl, shape)) return *dense;
  Layout layout;
  for (size_t d = 0; d < impl->strides.size(); ++d) layout.strides.push_back(parameters.stride(operand, d, impl->strides[d]));
  return layout;
}

NamedFused name_sizes(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                      std::span<const TensorImpl* const> outputs, KernelParameters& parameters) {
  parameters.relate_products(*attrs.body);
  NamedFused out{Attrs(attrs).map_dims([&](const Dim& d) { return parameters.size(d); }), {}};
  auto& body = *out.attrs.as<FusedAttrs>().body;
  for (size_t i = 0; i < inputs.size(); ++i)
    out.layouts.push_back(layout_of(inputs[i], body.inputs()[i + size_t(attrs.tiles)].type().shape, int(i), parameters));
  for (size_t j = 0; j < outputs.size(); ++j)
    out.layouts.push_back(layout_of(outputs[j], body.outputs()[j].type().shape, int(inputs.size() + j), parameters));
  return out;
}

IntList memory_order(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                     std::span<const TensorImpl* const> outputs) {
  for (auto* out : outputs)
    if (out->sizes.size() == attrs.domain.size() && !out->contiguous) return order_of(*out);
  if (!attrs.inner) return {};
  const IntList sizes = attrs.domain.numbers();
  for (auto* in : inputs)
    if (in && !in->contiguous && in->sizes == sizes) return order_of(*in);
  return {};
}

int64_t IndexError::cell() {
  if (!device_.is_cpu()) return runtime::runtime_of(device_).error_cell(device_.index(), ops_);
  return int64_t(reinterpret_cast<uintptr_t>(error_));
}

void IndexError::check() const {
  if (error_[0]) throw_error(fault_text(ops_, error_[1], error_[2]));
}

std::string kernel_name(const std::string& name) {
  std::string out = "k_";
  for (char c : name) out += std::isalnum((unsigned char)c) ? c : '_';
  return out;
}

}  // namespace sinter
