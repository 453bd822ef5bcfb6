#include "sinter/engine/fused_kernel.h"

#include <algorithm>
#include <map>

#include "sinter/base/log.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/runtime/cpu/cpu_features.h"
#include "sinter/runtime/cpu/toolchain.h"

namespace sinter {

namespace {

// Numbers by the names that the kernel's text has for them.
class Parameters {
 public:
  // 0 and 1 mean something to the text; other sizes are symbols, equal ones the same.
  Dim size(const Dim& d) {
    if (!d.is_number() || d.number() < 2) return d;
    auto [it, fresh] = sizes_.try_emplace(d.number(), Dim());
    if (fresh) {
      std::string name = "n" + std::to_string(sizes_.size() - 1);
      it->second = Dim::symbol(name);
      values_[name] = d.number();
    }
    return it->second;
  }
  Dim stride(int operand, size_t axis, int64_t value) {
    if (value == 0 || value == 1) return value;
    std::string name = "p" + std::to_string(operand) + "_" + std::to_string(axis);
    values_[name] = value;
    return Dim::symbol(name);
  }
  int64_t value(const std::string& name) const { return values_.at(name); }
  int64_t evaluate(const Dim& d) const {
    return d.substitute([&](const std::string& name) { return Dim(value(name)); }).number();
  }

 private:
  std::map<int64_t, Dim> sizes_;
  std::map<std::string, int64_t> values_;
};

Layout layout_of(const TensorImpl* impl, const Shape& shape, int operand, Parameters& parameters) {
  if (!impl) return {.scalar = true, .strides = {}};
  if (impl->contiguous) return contiguous_layout(shape);
  Layout layout;
  for (size_t d = 0; d < impl->strides.size(); ++d) layout.strides.push_back(parameters.stride(operand, d, impl->strides[d]));
  return layout;
}

// Loops follow the memory of a result of the whole domain: its innermost dimension last.
IntList memory_order(const FusedAttrs& attrs, std::span<const TensorImpl* const> outputs) {
  for (auto* out : outputs) {
    if (out->sizes.size() != attrs.domain.size() || out->contiguous) continue;
    IntList order;
    for (size_t d = 0; d < out->sizes.size(); ++d) order.push_back(int64_t(d));
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return out->strides[size_t(a)] > out->strides[size_t(b)]; });
    return order;
  }
  return {};
}

std::string kernel_name(const FusedNest& nest) {
  std::string name = "k_";
  for (char c : nest.name) name += std::isalnum((unsigned char)c) ? c : '_';
  return name;
}

}  // namespace

FusedKernel compile_fused(const FusedAttrs& concrete, std::span<const TensorImpl* const> inputs,
                          std::span<const TensorImpl* const> outputs) {
  Parameters parameters;
  Attrs lifted = Attrs(concrete).map_dims([&](const Dim& d) { return parameters.size(d); });
  auto& attrs = lifted.as<FusedAttrs>();
  std::vector<Layout> layouts;
  for (size_t i = 0; i < inputs.size(); ++i)
    layouts.push_back(layout_of(inputs[i], attrs.body->inputs()[i].type().shape, int(i), parameters));
  for (size_t j = 0; j < outputs.size(); ++j)
    layouts.push_back(layout_of(outputs[j], attrs.body->outputs()[j].type().shape, int(inputs.size() + j), parameters));
  FusedNest nest = lower_fused(attrs, layouts, memory_order(concrete, outputs));

  FusedKernel out;
  out.name = nest.name;
  for (auto& name : nest.params()) out.params.push_back(parameters.value(name));
  int64_t rows = 1, inner = 1;
  for (auto& axis : nest.rows) rows *= parameters.evaluate(axis.extent);
  for (auto& axis : nest.inner) inner *= parameters.evaluate(axis.extent);
  bool over_inner = nest.rows.empty() && nest.sweeps.size() == 1 && nest.sweeps[0].reductions.empty() &&
                    !nest.sweeps[0].once && nest.inner.size() == 1;
  out.range = over_inner ? inner : rows;
  out.work = over_inner ? 1 : std::max<int64_t>(inner, 1) * int64_t(nest.sweeps.size());
  bool reduces = std::any_of(nest.sweeps.begin(), nest.sweeps.end(), [](auto& s) { return !s.reductions.empty(); });
  if (out.range == 0 || (inner == 0 && !reduces)) return out;

  auto kernel = std::make_shared<Kernel>();
  kernel->name = kernel_name(nest);
  auto emitted = codegen::emit_cpu(nest, kernel->name);
  kernel->params = nest.params();
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", emitted.text);
  int lanes = runtime::host_target().vector_bytes / 4;
  kernel->granule = over_inner ? lanes : 1;
  auto code = runtime::compile_cpu(emitted.text, kernel->name, codegen::cpu_prelude(lanes));
  kernel->function = code->function<Kernel::Function>(kernel->name);
  kernel->code = code;
  out.kernel = std::move(kernel);
  return out;
}

void launch(const FusedKernel& fused, std::span<const int64_t> slots) {
  if (!fused.kernel) return;
  SmallVector<int64_t, 64> args;
  args.append(slots);
  args.append({fused.params.data(), fused.params.size()});
  launch(*fused.kernel, args.data(), fused.range, fused.work);
}

}  // namespace sinter
