#include "sinter/engine/fused_kernel.h"

#include <algorithm>
#include <map>

#include "sinter/base/log.h"
#include "sinter/base/error.h"
#include "sinter/codegen/cpu/emit.h"
#include "sinter/engine/eager/gemm_operand.h"
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

// The product that the body begins with.
FusedKernel::Product product_of(const FusedAttrs& attrs, int back, std::span<const TensorImpl* const> inputs,
                                std::span<const TensorImpl* const> outputs) {
  const Graph& body = *attrs.body;
  const Node* contraction = nullptr;
  for (auto& node : body.nodes())
    if (takes_epilogue(node)) contraction = &node;
  auto slot_of = [&](Value v) {
    for (size_t i = 0; i < body.inputs().size(); ++i)
      if (body.inputs()[i] == v) return int(i);
    SINTER_INTERNAL_ASSERT(false, "an operand of a fused product is computed inside");
  };
  FusedKernel::Product p{};
  p.a_slot = slot_of(contraction->inputs[0]);
  p.b_slot = slot_of(contraction->inputs[1]);
  p.c_slot = back;
  const TensorImpl &a = *inputs[size_t(p.a_slot)], &b = *inputs[size_t(p.b_slot)];
  const TensorImpl& c = *outputs[size_t(back) - inputs.size()];
  size_t rank = a.sizes.size();
  p.batch = rank == 3 ? a.sizes[0] : 1;
  p.m = a.sizes[rank - 2];
  p.k = a.sizes[rank - 1];
  p.n = b.sizes[rank - 1];
  auto operand = [&](const TensorImpl& t) {
    return runtime::GemmOperand{nullptr, t.strides[rank - 2], t.strides[rank - 1], *eager::gemm_type(t.dtype),
                                rank == 3 ? t.strides[0] : 0};
  };
  p.a = operand(a);
  p.b = operand(b);
  // Fresh and row-major, its rows counted through the batch.
  p.c = {nullptr, p.n, 1, *eager::gemm_type(c.dtype), p.m * p.n};
  return p;
}

void multiply(const FusedKernel::Product& product, std::span<const int64_t> slots, const int64_t* args) {
  struct Context {
    FusedKernel::Epilogue function;
    const int64_t* args;
  } context{product.epilogue, args};
  runtime::Epilogue epilogue;
  epilogue.context = &context;
  epilogue.function = [](void* given, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
    auto* c = static_cast<Context*>(given);
    c->function(c->args, tile, row, col, rows, cols, stride);
  };
  auto address = [&](int slot) { return reinterpret_cast<void*>(uintptr_t(slots[size_t(slot)])); };
  runtime::GemmOperand a = product.a, b = product.b;
  runtime::GemmOutput c = product.c;
  a.data = address(product.a_slot);
  b.data = address(product.b_slot);
  c.data = address(product.c_slot);
  runtime::GemmOptions options;
  options.batch = product.batch;
  options.epilogue = &epilogue;
  if (product.m && product.n && product.batch) runtime::gemm(product.m, product.n, product.k, a, b, c, options);
}

std::string kernel_name(const FusedNest& nest) {
  std::string name = "k_";
  for (char c : nest.name) name += std::isalnum((unsigned char)c) ? c : '_';
  return name;
}

}  // namespace

bool takes_epilogue(const Node& node) {
  static const Op *mm = find_op("mm"), *bmm = find_op("bmm");
  return (node.op == mm || node.op == bmm) && eager::gemm_type(node.types[0].dtype).has_value();
}

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
  if (nest.epilogue) out.range = 1;
  bool reduces = std::any_of(nest.sweeps.begin(), nest.sweeps.end(), [](auto& s) { return !s.reductions.empty(); });
  if (out.range == 0 || rows == 0 || (inner == 0 && !reduces)) return out;

  auto kernel = std::make_shared<Kernel>();
  kernel->name = kernel_name(nest);
  auto emitted = codegen::emit_cpu(nest, kernel->name);
  kernel->params = nest.params();
  if (log_enabled(LogTopic::kFusion)) log(LogTopic::kFusion, "{}", nest.text());
  if (log_enabled(LogTopic::kCode)) log(LogTopic::kCode, "{}", emitted.text);
  int lanes = runtime::host_target().vector_bytes / 4;
  if (nest.epilogue) {
    auto code = runtime::compile_cpu(emitted.text, kernel->name, codegen::cpu_prelude(lanes));
    kernel->code = code;
    out.product = product_of(concrete, nest.back, inputs, outputs);
    out.product->epilogue = code->function<FusedKernel::Epilogue>(kernel->name);
    out.kernel = std::move(kernel);
    return out;
  }
  kernel->granule = over_inner || emitted.rows_in_lanes ? lanes : 1;
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
  if (fused.product) return multiply(*fused.product, slots, args.data());
  launch(*fused.kernel, args.data(), fused.range, fused.work);
}

}  // namespace sinter
