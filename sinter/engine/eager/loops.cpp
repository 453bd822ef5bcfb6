// Ops with loops of their own, eagerly: gathers, scatters, scans, pads, pools, small contractions. A kernel serves every
// call whose operands have the same dtypes, ranks, attributes and pattern of equal sizes.
#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/kernel_cache.h"
#include "sinter/engine/eager/last_resort.h"
#include "sinter/engine/step/kernel_parameters.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/known_ops.h"
#include "sinter/tensor/tracer.h"

namespace sinter::eager {

namespace {

// Answers questions about symbolic sizes from the sizes at hand. Shape rules ask only to check operands, and those
// checks run on numbers at every call; a rule that needs a number makes the kernel specific to these sizes.
class SizeHints : public Tracer {
 public:
  struct NeedsNumber {};

  // `values`: of the sizes that `named` numbers.
  SizeHints(const Parameters& named, const IntList& values) : named_(named), values_(values) {}

  std::vector<Tensor> record(const Op& op, std::span<const TensorArg>, const Attrs&) override {
    SINTER_INTERNAL_ASSERT(false, "{} is called by a shape rule", op.name);
  }
  bool decide(DimCompare op, const Dim& a, const Dim& b) override {
    int64_t difference = number(a) - number(b);
    return op == DimCompare::kEqual ? difference == 0 : op == DimCompare::kLess ? difference < 0 : difference <= 0;
  }
  int64_t specialize(const Dim&, const std::source_location*, const void*) override { throw NeedsNumber(); }

 private:
  int64_t number(const Dim& d) const {
    return d.substitute([&](const std::string& name) { return Dim(values_[size_t(named_.named(name).axis)]); })
        .number();
  }

  const Parameters& named_;
  const IntList& values_;
};

class Call {
 public:
  Call(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs)
      : op_(op), inputs_(inputs), attrs_(attrs), types_(operand_types(inputs)), call_{op, types_, attrs} {}

  Tensor run(const Tensor* out) {
    // Loops write row-major results. A place in another order was meant for a kernel that did not take the operands, or that was
    // refused.
    if (out && !out->impl().contiguous) {
      copy(run(nullptr), *out);
      return *out;
    }
    Type type = op_.infer(call_)[0];
    Tensor result = out ? *out : empty(type.shape, TensorOptions(type.dtype).device(type.device));
    look_at(result);
    if (op_.kind == OpKind::kScatter) start_from(inputs_[0], result);
    IntList steps = op_.kind == OpKind::kScatter ? op_.domain(call_).numbers() : type.shape.numbers();
    int64_t reduced = 1;
    if (op_.reduction)
      for (int64_t extent : op_.reduction(call_).numbers()) reduced *= extent;
    for (int64_t size : steps)
      if (size == 0) return result;
    if (reduced == 0) return result.fill_(identity_of(op_.combine, type.dtype)), result;
    collect_sizes();
    start(find_kernel(), result, steps, reduced);
    return result;
  }

 private:
  void look_at(const Tensor& result) {
    device_ = result.device();
    if (!engine_of(device_).target().gpu) return;
    wide_ = is_wide(result.impl());
    for (auto& arg : inputs_) wide_ = wide_ || (!arg.is_scalar() && is_wide(arg.tensor().impl()));
  }

  const CachedKernel& find_kernel() {
    uint64_t by_pattern = key();
    try {
      return kernel_cache().find(op_, by_pattern, [&] { return compile(true); });
    } catch (const SizeHints::NeedsNumber&) {
      uint64_t by_size = by_pattern;
      for (auto& type : types_)
        for (auto& d : type.shape) by_size = hash_mix(by_size, uint64_t(d.number()));
      by_size = hash_mix(by_size, hash_text(attrs_.text()));
      return kernel_cache().find(op_, by_size, [&] { return compile(false); });
    }
  }

  // A scatter changes a copy of its first operand; where the result lies in its memory already, that itself.
  static void start_from(const TensorArg& arg, const Tensor& result) {
    const Op& clone = known_ops().clone;
    const TensorImpl &from = arg.tensor().impl(), &to = result.impl();
    if (from.numel == 0 || (data_of(from) == data_of(to) && from.strides == to.strides)) return;
    run_pointwise(clone, {&arg, 1}, {}, &result);
  }

  // The distinct sizes above 1, of operands and attributes, in order of appearance: equal sizes share a symbol, so that
  // shape rules see them equal.
  void collect_sizes() {
    for (auto& type : types_)
      for (auto& d : type.shape) symbol_of(d);
    symbolic_attrs_ = attrs_.map_dims([&](const Dim& d) { return symbol_of(d); });
  }

  Dim symbol_of(const Dim& size) {
    if (size.number() <= 1) return size;
    auto it = std::find(sizes_.begin(), sizes_.end(), size.number());
    if (it == sizes_.end()) {
      sizes_.push_back(size.number());
      it = sizes_.end() - 1;
    }
    return size_symbol(it - sizes_.begin());
  }

  uint64_t key() {
    uint64_t h = hash_text(symbolic_attrs_.text(), 5);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto& type = types_[i];
      h = hash_mix(h, uint64_t(type.dtype) << 16 | uint64_t(type.weak) << 8 | uint64_t(type.rank()));
      if (inputs_[i].is_scalar()) continue;
      auto& impl = inputs_[i].tensor().impl();
      h = hash_mix(h, impl.contiguous);
      for (size_t d = 0; d < impl.sizes.size(); ++d) {
        h = hash_mix(h, symbol_of(impl.sizes[d]).hash());
        if (!impl.contiguous) h = hash_mix(h, impl.strides[d] == 1 ? 1 : impl.strides[d] == 0 ? 0 : 2);
      }
    }
    return on_device(h, device_, wide_);
  }

  Layout layout_of(size_t i, const Shape& shape, Parameters& named) const {
    if (inputs_[i].is_scalar()) return {.scalar = true, .strides = {}};
    auto& impl = inputs_[i].tensor().impl();
    if (impl.contiguous) return contiguous_layout(shape);
    Layout layout;
    for (size_t d = 0; d < impl.strides.size(); ++d) {
      bool known = impl.strides[d] == 0 || impl.strides[d] == 1;
      layout.strides.push_back(known ? Dim(impl.strides[d]) : named.stride(int64_t(i), int64_t(d)));
    }
    return layout;
  }

  CachedKernel compile(bool symbolic_sizes) {
    Parameters named;
    for (size_t n = 0; n < sizes_.size(); ++n) named.size(int64_t(n));
    SizeHints hints(named, sizes_);
    TracerScope scope(&hints);
    std::vector<Type> types = types_;
    for (auto& type : types)
      for (auto& d : type.shape)
        if (symbolic_sizes) d = symbol_of(d);
    const Attrs& attrs = symbolic_sizes ? symbolic_attrs_ : attrs_;
    OpCall symbolic{op_, types, attrs};
    Type type = op_.infer(symbolic)[0];
    std::vector<Layout> layouts;
    for (size_t i = 0; i < inputs_.size(); ++i) layouts.push_back(layout_of(i, types[i].shape, named));
    layouts.push_back(contiguous_layout(type.shape));
    CachedKernel entry;
    entry.result = type.dtype;
    entry.kernel = compile_kernel(lower(symbolic, type, layouts, named), device_, {.wide = wide_});
    entry.sources = param_sources(*entry.kernel);
    return entry;
  }

  void start(const CachedKernel& cached, const Tensor& result, const IntList& steps, int64_t reduced) {
    std::vector<int64_t> args;
    for (auto& arg : inputs_) args.push_back(arg.is_scalar() ? slot_of(arg.scalar()) : slot_of(arg.tensor().impl()));
    args.push_back(slot_of(result.impl()));
    for (auto& source : cached.sources)
      args.push_back(source.operand < 0 ? sizes_[size_t(source.axis)]
                                        : inputs_[size_t(source.operand)].tensor().impl().strides[size_t(source.axis)]);
    const std::string name(op_.name);
    IndexError error(name, device_);
    args.push_back(error.cell());

    int64_t range = 1, all = reduced;
    for (int64_t size : steps) all *= size;
    for (int d : cached.kernel->range_dims) range *= steps[size_t(d)];
    launch(*cached.kernel, args.data(), range, all / range);
    error.check();
  }

  const Op& op_;
  std::span<const TensorArg> inputs_;
  const Attrs& attrs_;
  std::vector<Type> types_;
  OpCall call_;
  Device device_;
  bool wide_ = false;
  IntList sizes_;
  Attrs symbolic_attrs_;
};

}  // namespace

Tensor run_loops(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out) {
  return or_by_referee(op, inputs, attrs, out, [&] { return Call(op, inputs, attrs).run(out); });
}

}  // namespace sinter::eager
