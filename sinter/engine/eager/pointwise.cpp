// Pointwise ops, eagerly: broadcast, collapse, one kernel a class of (dtypes, axes, inner strides).
#include <algorithm>
#include <numeric>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/geometry.h"
#include "sinter/engine/eager/kernel_cache.h"
#include "sinter/engine/eager/last_resort.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/known_ops.h"
#include "sinter/tensor/memory_format.h"

namespace sinter::eager {

namespace {

// How an operand reaches the kernel.
enum class Standing : uint8_t { kNumber, kZeroDim, kSized };

struct Operand {
  Standing standing;
  DType dtype;
  const TensorImpl* impl = nullptr;  // null for a number
  Scalar number = 0;
};

Operand classify(const TensorArg& arg) {
  if (arg.is_scalar()) return {Standing::kNumber, arg.dtype(), nullptr, arg.scalar()};
  auto& impl = arg.tensor().impl();
  return {impl.sizes.empty() ? Standing::kZeroDim : Standing::kSized, impl.dtype, &impl};
}

// Strides of a dense tensor whose axes lie in memory in the same order as those of `like`.
IntList strides_like(const IntList& sizes, const IntList& like) {
  IntList order;
  for (size_t d = 0; d < sizes.size(); ++d) order.push_back(int64_t(d));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return like[size_t(a)] > like[size_t(b)]; });
  IntList strides = sizes;
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[size_t(order[i])] = stride;
    stride *= std::max<int64_t>(sizes[size_t(order[i])], 1);
  }
  return strides;
}

// Whether the elements fill their span of memory exactly, in some order of the axes.
bool is_dense(const TensorImpl& t) {
  int64_t span = 1;
  for (size_t d = 0; d < t.sizes.size(); ++d) span += (t.sizes[d] - 1) * t.strides[d];
  if (span != t.numel) return false;
  return strides_like(t.sizes, t.strides) == t.strides;
}

// The result's sizes, by broadcasting in place; false when the shapes do not fit.
bool broadcast_into(IntList& sizes, const IntList& other) {
  while (sizes.size() < other.size()) sizes.insert(sizes.begin(), 1);
  size_t shift = sizes.size() - other.size();
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& size = sizes[d + shift];
    if (size == other[d] || other[d] == 1) continue;
    if (size != 1) return false;
    size = other[d];
  }
  return true;
}

// One pointwise call, from operands to launch.
class Call {
 public:
  Call(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs) : op_(op), inputs_(inputs), attrs_(attrs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      operands_[i] = classify(inputs[i]);
      if (operands_[i].impl && !operands_[i].impl->device.is_cpu()) device_ = operands_[i].impl->device;
    }
  }

  Tensor run(const Tensor* out) {
    if (out) device_ = out->impl().device;
    on_gpu_ = engine_of(device_).target().gpu;
    if (out)
      shape_from(out->impl());
    else
      shape_from_operands();
    const CachedKernel& cached = find_kernel(out);
    Tensor result = out ? *out : allocate(cached.result);
    if (result.impl().numel == 0) return result;
    find_addresses(result.impl());
    if (on_gpu_)
      start(cached);
    else if (int other = transposed_axis(); other >= 0)
      start_in_tiles(other, out);
    else if (worth_streaming(result.impl()))
      start(find_kernel(out, true));
    else
      start(cached);
    return result;
  }

  // The dtype that the op gives on these operands; throws where they do not fit together.
  DType infer() {
    auto types = operand_types(inputs_);
    return op_.infer(OpCall{op_, types, attrs_})[0].dtype;
  }

 private:
  // The kernel of this geometry's class: everything its text depends on.
  const CachedKernel& find_kernel(const Tensor* out, bool stream = false) {
    uint64_t key = uint64_t(geometry_.axes);
    for (size_t i = 0; i < inputs_.size(); ++i)
      key = key << 8 | uint64_t(operands_[i].dtype) << 4 | uint64_t(operands_[i].standing) << 2 | stride_class(int(i));
    key = key << 3 | stride_class(int(inputs_.size())) << 1 | uint64_t(out != nullptr);
    if (out) key = hash_mix(key, uint64_t(out->dtype()) + 17);
    if (!attrs_.empty()) key = hash_mix(key, uint64_t(infer()) + 1);
    if (stream) key = hash_mix(key, 41);
    if (on_gpu_) key = hash_mix(on_device(key, device_, is_wide(out)), uint64_t(transposed_along() + 1));
    return kernel_cache().find(op_, key, [&] { return compile(out, stream); });
  }

  // On a GPU: the axis of operands that a kernel reads in squares, so as to write along the last one; -1 for none.
  int transposed_along() const { return on_gpu_ && stride_class(int(inputs_.size())) == 1 ? transposed_axis() : -1; }

  bool is_wide(const Tensor* out) const {
    int64_t last = 0;
    for (size_t o = 0; o <= inputs_.size(); ++o) {
      int64_t reach = 0;
      for (int d = 0; d < geometry_.axes; ++d) reach += (geometry_.sizes[size_t(d)] - 1) * geometry_.strides[o][size_t(d)];
      last = std::max(last, reach);
    }
    return last >= INT32_MAX / 2 || (out && eager::is_wide(out->impl()));
  }

  // A result that no cache keeps until it is read again is better written past them: its lines need not be fetched.
  bool worth_streaming(const TensorImpl& result) const {
    int64_t item = item_size(result.dtype);
    if (result.numel * item < kStreamBytes || slots_[inputs_.size()] % 64 != 0) return false;
    size_t last = size_t(geometry_.axes) - 1;
    auto& strides = geometry_.strides[inputs_.size()];
    for (size_t d = 0; d < last; ++d)
      if (strides[d] * item % 64 != 0) return false;
    return strides[last] == 1 && geometry_.sizes[last] >= 256;
  }

  void shape_from_operands() {
    const TensorImpl* first = nullptr;
    bool plain = true;  // every sized operand is contiguous and of one shape
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto& o = operands_[i];
      if (o.standing != Standing::kSized) continue;
      if (!first) first = o.impl;
      plain = plain && o.impl->contiguous && o.impl->sizes == first->sizes;
    }
    geometry_.operands = int(inputs_.size()) + 1;
    if (plain) {
      if (first) sizes_ = first->sizes;
      strides_ = contiguous_strides(sizes_);
      walk_as_one(first ? first->numel : 1);
      return;
    }
    sizes_ = first->sizes;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (operands_[i].impl && !broadcast_into(sizes_, operands_[i].impl->sizes)) {
        infer();  // reports which shapes do not fit
        SINTER_INTERNAL_ASSERT(false, "{} accepted shapes that do not broadcast", op_.name);
      }
    checked_numel(op_.name.data(), sizes_);
    choose_result_strides();
    walk(strides_);
  }

  void choose_result_strides() {
    const TensorImpl* impls[kMaxOperands];
    for (size_t i = 0; i < inputs_.size(); ++i) impls[i] = operands_[i].impl;
    strides_ = pointwise_strides({impls, inputs_.size()}, sizes_);
  }

  void shape_from(const TensorImpl& out) {
    geometry_.operands = int(inputs_.size()) + 1;
    sizes_ = out.sizes;
    bool plain = out.contiguous;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto& o = operands_[i];
      if (!o.impl || o.impl->sizes == sizes_) {
        plain = plain && (!o.impl || o.impl->contiguous);
        continue;
      }
      plain = plain && o.standing == Standing::kZeroDim;
      IntList broadcast = sizes_;
      bool fits = broadcast_into(broadcast, o.impl->sizes) && broadcast == sizes_;
      check(fits, "{}: a value of shape {} cannot be written into a tensor of shape {}", op_.name, o.impl->sizes, sizes_);
    }
    if (plain)
      walk_as_one(out.numel);
    else
      walk(out.strides);
  }

  // Everything row-major and of one shape, but for single elements: one axis.
  void walk_as_one(int64_t numel) {
    geometry_.add_axis(numel);
    for (size_t i = 0; i <= inputs_.size(); ++i)
      geometry_.strides[i][0] = i == inputs_.size() || operands_[i].standing == Standing::kSized;
  }

  void walk(const IntList& result_strides) {
    size_t rank = sizes_.size();
    check(rank <= size_t(kMaxAxes), "{}: tensors of more than {} dimensions are not supported", op_.name, kMaxAxes);
    geometry_.axes = int(rank);
    for (size_t d = 0; d < rank; ++d) {
      geometry_.sizes[d] = sizes_[d];
      geometry_.strides[inputs_.size()][d] = result_strides[d];
      for (size_t i = 0; i < inputs_.size(); ++i) {
        int64_t stride = 0;
        if (operands_[i].standing == Standing::kSized) {
          auto& impl = *operands_[i].impl;
          size_t shift = rank - impl.sizes.size();
          if (d >= shift && impl.sizes[d - shift] != 1) stride = impl.strides[d - shift];
        }
        geometry_.strides[i][d] = stride;
      }
    }
    collapse(geometry_, int(inputs_.size()), true);
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (operands_[i].standing != Standing::kSized) geometry_.strides[i][size_t(geometry_.axes) - 1] = 0;
  }

  // Of the innermost axis: 0 fixed, 1 unit, 2 strided.
  uint64_t stride_class(int operand) const {
    int64_t stride = geometry_.strides[size_t(operand)][size_t(geometry_.axes) - 1];
    return stride == 0 ? 0 : stride == 1 ? 1 : 2;
  }

  // The layout of an operand in the kernel: known strides on the innermost axis where the class says so.
  Layout layout(int operand, Parameters& named) const {
    Layout layout;
    for (int d = 0; d < geometry_.axes; ++d) {
      uint64_t inner = d + 1 == geometry_.axes ? stride_class(operand) : 2;
      layout.strides.push_back(inner < 2 ? Dim(int64_t(inner)) : named.stride(operand, d));
    }
    return layout;
  }

  CachedKernel compile(const Tensor* out, bool stream) {
    DType dtype = infer();
    Parameters named;
    Shape axes;
    for (int d = 0; d < geometry_.axes; ++d) axes.push_back(named.size(d));
    std::vector<Type> types;
    std::vector<Layout> layouts;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto standing = operands_[i].standing;
      types.push_back({operands_[i].dtype, standing == Standing::kSized ? axes : Shape(), Device(), standing == Standing::kNumber});
      layouts.push_back(standing == Standing::kSized ? layout(int(i), named) : Layout{.scalar = standing == Standing::kNumber, .strides = {}});
    }
    layouts.push_back(layout(int(inputs_.size()), named));
    OpCall call{op_, types, attrs_};
    LoopNest nest = lower(call, Type{dtype, axes, Device(), false}, layouts, named);
    // Written into a tensor of another dtype: the value is converted at the store.
    if (out) nest.operands.back().dtype = out->dtype();
    CachedKernel entry;
    entry.result = dtype;
    const bool wide = on_gpu_ && is_wide(out);
    entry.kernel = compile_kernel(nest, device_, {.stream = stream, .wide = wide, .transposed_along = transposed_along()});
    entry.sources = param_sources(*entry.kernel);
    return entry;
  }

  Tensor allocate(DType dtype) {
    auto impl = make_intrusive<TensorImpl>();
    impl->dtype = dtype;
    impl->device = device_;
    impl->sizes = sizes_;
    impl->strides = strides_;
    impl->numel = geometry_.elements();
    impl->contiguous = strides_ == contiguous_strides(sizes_);
    impl->buffer = allocate_buffer(size_t(impl->numel * item_size(dtype)), device_);
    return Tensor(std::move(impl));
  }

  void find_addresses(const TensorImpl& result) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      auto& o = operands_[i];
      slots_[i] = o.impl ? slot_of(*o.impl) : slot_of(o.number);
      item_bytes_[i] = o.standing == Standing::kSized ? item_size(o.dtype) : 0;
    }
    slots_[inputs_.size()] = slot_of(result);
    item_bytes_[inputs_.size()] = item_size(result.dtype);
  }

  void start(const CachedKernel& cached) {
    int64_t args[kMaxOperands + kMaxAxes * (kMaxOperands + 1) + 1];
    size_t slot = inputs_.size() + 1;
    std::copy_n(slots_.begin(), slot, args);
    for (auto& source : cached.sources)
      args[slot++] = source.operand < 0 ? geometry_.sizes[size_t(source.axis)]
                                        : geometry_.strides[size_t(source.operand)][size_t(source.axis)];
    args[slot] = 0;
    int64_t inner = cached.kernel->split_last ? geometry_.sizes[size_t(geometry_.axes) - 1] : 1;
    launch(*cached.kernel, args, geometry_.elements() / inner, inner);
  }

  // An axis along which some operand is contiguous while it strides along the innermost one; -1 when there is none, or
  // the problem is too small to care.
  int transposed_axis() const {
    if (geometry_.axes < 2 || geometry_.axes + 2 > kMaxAxes || geometry_.elements() < kTile * kTile * 16) return -1;
    size_t last = size_t(geometry_.axes) - 1;
    if (geometry_.sizes[last] < kTile) return -1;
    for (size_t i = 0; i < inputs_.size(); ++i)
      for (size_t d = 0; d < last; ++d)
        if (geometry_.strides[i][d] == 1 && geometry_.strides[i][last] > kTile && geometry_.sizes[d] >= kTile) return int(d);
    return -1;
  }

  // Walks axis `other` and the innermost one in square tiles, so that a cache line fetched along either is used up
  // before it is lost. What the tiles leave over at the edges runs as it is.
  void start_in_tiles(int other, const Tensor* out) {
    const Geometry whole = geometry_;
    const auto slots = slots_;
    size_t last = size_t(whole.axes) - 1, d = size_t(other);
    int64_t rows = whole.sizes[d] / kTile * kTile, columns = whole.sizes[last] / kTile * kTile;
    auto region = [&](int64_t row, int64_t height, int64_t column, int64_t width) {
      geometry_ = whole;
      geometry_.sizes[d] = height;
      geometry_.sizes[last] = width;
      for (size_t i = 0; i <= inputs_.size(); ++i)
        slots_[i] = slots[i] + (row * whole.strides[i][d] + column * whole.strides[i][last]) * item_bytes_[i];
    };
    region(0, rows, 0, columns);
    // Axes become: the others, tiles of `other`, tiles of the last, then inside a tile.
    Geometry tiled;
    tiled.operands = whole.operands;
    auto add = [&](size_t axis, int64_t size, int64_t step) {
      for (size_t i = 0; i <= inputs_.size(); ++i) tiled.strides[i][size_t(tiled.axes)] = whole.strides[i][axis] * step;
      tiled.add_axis(size);
    };
    for (size_t axis = 0; axis < last; ++axis)
      if (axis != d) add(axis, whole.sizes[axis], 1);
    add(d, rows / kTile, kTile);
    add(last, columns / kTile, kTile);
    add(d, kTile, 1);
    add(last, kTile, 1);
    geometry_ = tiled;
    start(find_kernel(out));
    auto edge = [&](int64_t row, int64_t height, int64_t column, int64_t width) {
      if (height == 0 || width == 0) return;
      region(row, height, column, width);
      start(find_kernel(out));
    };
    edge(0, rows, columns, whole.sizes[last] - columns);
    edge(rows, whole.sizes[d] - rows, 0, whole.sizes[last]);
  }

  static constexpr int64_t kStreamBytes = 16 << 20;
  static constexpr int64_t kTile = 32;  // a tile of f32 is 4 KB: both its sides stay in the first cache

  const Op& op_;
  std::span<const TensorArg> inputs_;
  const Attrs& attrs_;
  Device device_;
  bool on_gpu_ = false;
  std::array<Operand, kMaxOperands> operands_;
  IntList sizes_, strides_;
  Geometry geometry_;
  std::array<int64_t, kMaxOperands + 1> slots_, item_bytes_;
};

// The bytes from the first to one past the last element that a view reaches.
std::pair<const char*, const char*> reach(const TensorImpl& t) {
  int64_t low = 0, high = 1, item = item_size(t.dtype);
  for (size_t d = 0; d < t.sizes.size(); ++d) (t.strides[d] < 0 ? low : high) += (t.sizes[d] - 1) * t.strides[d];
  const char* start = data_of(t);
  return {start + low * item, start + high * item};
}

// Whether both may touch the same bytes without being the same view: writing one would change what is read of the other.
bool overlaps(const TensorImpl& a, const TensorImpl& out) {
  if (a.buffer.get() != out.buffer.get() || !share_memory(a, out)) return false;
  return a.offset != out.offset || a.sizes != out.sizes || a.strides != out.strides || a.dtype != out.dtype;
}

// Apart from the fresh results of most calls, whose road stays short.
[[gnu::noinline]] Tensor run_into(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor& out) {
  check_apart(op.name, out.impl());  // programs come here with tensors that nobody has looked at
  auto in_the_way = [&](const TensorArg& arg) { return !arg.is_scalar() && overlaps(arg.tensor().impl(), out.impl()); };
  if (std::none_of(inputs.begin(), inputs.end(), in_the_way)) [[likely]]
    return Call(op, inputs, attrs).run(&out);
  std::vector<TensorArg> separate(inputs.begin(), inputs.end());
  for (auto& arg : separate)
    if (in_the_way(arg)) {
      const Op& copy = known_ops().clone;
      TensorArg source[] = {arg};
      arg = TensorArg(run_pointwise(copy, source, {}, nullptr), arg.where());
    }
  return Call(op, separate, attrs).run(&out);
}

}  // namespace

Tensor run_pointwise(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out) {
  return or_by_referee(op, inputs, attrs, out,
                       [&] { return out ? run_into(op, inputs, attrs, *out) : Call(op, inputs, attrs).run(nullptr); });
}

bool share_memory(const TensorImpl& a, const TensorImpl& b) {
  if (!a.numel || !b.numel) return false;
  auto [a_low, a_high] = reach(a);
  auto [b_low, b_high] = reach(b);
  return a_low < b_high && b_low < a_high;
}

// The first operand of full shape with a dense layout gives the result its memory format, as in PyTorch.
IntList pointwise_strides(std::span<const TensorImpl* const> operands, const IntList& sizes) {
  for (auto* impl : operands) {
    if (!impl || impl->sizes.empty() || impl->sizes != sizes) continue;
    if (!impl->contiguous && is_dense(*impl)) return impl->strides;
    break;
  }
  return contiguous_strides(sizes);
}

std::vector<Type> operand_types(std::span<const TensorArg> inputs) {
  std::vector<Type> types;
  for (auto& arg : inputs) {
    if (arg.is_scalar())
      types.push_back({arg.dtype(), Shape(), Device(), true});
    else
      types.push_back({arg.dtype(), arg.tensor().sizes(), arg.tensor().device(), false});
  }
  return types;
}

}  // namespace sinter::eager
