// What tells, makes and rearranges sizes: these operators take tensors as well, but keep small ones on the host.
#include "sinter/base/error.h"
#include "sinter/interop/onnx/operands.h"
#include "sinter/ops/creation.h"
#include "sinter/ops/pointwise.h"
#include "sinter/ops/reduce.h"
#include "sinter/ops/view.h"

namespace sinter::interop::onnx {

namespace {

// The sizes of a tensor, or some of them.
Value shape_of(Any x, Int start, MaybeInt end) {
  const Shape sizes = sizes_of(x);
  const int64_t rank = sizes.rank();
  auto bounded = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t from = bounded(start), to = std::max(from, bounded(end.value_or(rank)));
  HostTensor out{.sizes = {to - from}, .whole = {sizes.begin() + from, sizes.begin() + to}};
  out.device = host_of(x) ? host_of(x)->place() : value_to<Tensor>(x).device();
  return host_value(std::move(out));
}

Value size_of(Any x) {
  const Device device = host_of(x) ? host_of(x)->place() : value_to<Tensor>(x).device();
  return host_value({.sizes = {}, .whole = {sizes_of(x).numel()}, .device = device});
}

// The same elements under other sizes, which are numbers.
Value with_sizes(const HostTensor& x, const IntList& sizes) {
  HostTensor out = x;
  out.stored = x.stored.defined() ? x.stored.reshape(Shape(sizes)) : Tensor();
  out.sizes = sizes;
  out.device = x.place();
  return host_value(std::move(out));
}

Value reshaped(Any x, Sizes shape, bool allows_zero) {
  Shape to = shape;
  const Shape from = sizes_of(x);
  int64_t unknown = -1;
  for (int64_t d = 0; d < to.rank(); ++d) {
    Dim& size = to[size_t(d)];
    if (!size.is_number()) continue;
    if (size.number() == 0 && !allows_zero) {
      check(d < from.rank(), "dimension {} shall keep its size, and the operand has the sizes {}", d, from);
      size = from[size_t(d)];
    } else if (size.number() == -1) {
      unknown = d;
    }
  }
  const HostTensor* host = host_of(x);
  if (!host || !to.is_static()) return {reshape(value_to<Tensor>(x), to)};
  IntList sizes = to.numbers();
  if (unknown >= 0) {
    sizes[size_t(unknown)] = 1;
    const int64_t known = checked_numel("Reshape", sizes);
    check(known > 0 && host->count() % known == 0, "Reshape: {} elements as {}", host->count(), shape);
    sizes[size_t(unknown)] = host->count() / known;
  }
  check(checked_numel("Reshape", sizes) == host->count(), "Reshape: {} elements as {}", host->count(), shape);
  return with_sizes(*host, sizes);
}

Value squeezed(Any x, MaybeInts axes) {
  const HostTensor* host = host_of(x);
  if (!host) return {axes ? squeeze(value_to<Tensor>(x), *axes) : squeeze(value_to<Tensor>(x))};
  const IntList dims = axes ? wrapped("Squeeze", *axes, int64_t(host->sizes.size())) : IntList();
  IntList sizes;
  for (size_t d = 0; d < host->sizes.size(); ++d) {
    const bool is_named = !axes || std::find(dims.begin(), dims.end(), int64_t(d)) != dims.end();
    if (!is_named || host->sizes[d] != 1) sizes.push_back(host->sizes[d]);
  }
  return with_sizes(*host, sizes);
}

Value unsqueezed(Any x, Ints axes) {
  const Shape from = sizes_of(x);
  const int64_t rank = from.rank() + int64_t(axes.size());
  IntList dims = wrapped("Unsqueeze", axes, rank);
  std::sort(dims.begin(), dims.end());
  const HostTensor* host = host_of(x);
  if (host) {
    std::vector<int64_t> sizes = host->sizes.vec();
    for (int64_t dim : dims) sizes.insert(sizes.begin() + dim, 1);
    return with_sizes(*host, IntList(sizes));
  }
  Tensor out = value_to<Tensor>(x);
  for (int64_t dim : dims) out = unsqueeze(out, dim);
  return {out};
}

Value flattened(Any x, Int axis) {
  const Tensor tensor = value_to<Tensor>(x);
  const Shape sizes = tensor.sizes();
  const int64_t split = axis < 0 ? axis + sizes.rank() : axis;
  check(split >= 0 && split <= sizes.rank(), "Flatten: axis {} of {} dimensions", axis, sizes.rank());
  return {reshape(tensor, {sizes.slice(0, size_t(split)).numel(), sizes.slice(size_t(split)).numel()})};
}

// --- parts

// Walks a host tensor along one dimension: coordinate i of the result reads coordinate from[i].
Value along(const HostTensor& x, int64_t dim, const std::vector<int64_t>& from) {
  IntList sizes = x.sizes;
  sizes[size_t(dim)] = int64_t(from.size());
  std::vector<int64_t> places;
  for_coordinates(sizes, [&](const IntList& at) {
    IntList source = at;
    source[size_t(dim)] = from[size_t(at[size_t(dim)])];
    places.push_back(place_of(source, x.sizes));
  });
  return pick(x, sizes, places);
}

Value gathered(Any x, Any indices, Int axis) {
  const HostTensor *host = host_of(x), *index = host_of(indices);
  if (host && index && index->is_constant()) {
    const int64_t dim = wrap_dim("Gather", axis, int64_t(host->sizes.size()));
    std::vector<int64_t> from;
    for (auto& each : index->whole) {
      const int64_t size = host->sizes[size_t(dim)], at = each.number() < 0 ? each.number() + size : each.number();
      check(at >= 0 && at < size, "Gather: index {} of a dimension of size {}", each.number(), size);
      from.push_back(at);
    }
    std::vector<int64_t> sizes = host->sizes.vec();
    sizes.erase(sizes.begin() + dim);
    sizes.insert(sizes.begin() + dim, index->sizes.begin(), index->sizes.end());
    const Value picked = along(*host, dim, from);
    return with_sizes(*host_of(picked), IntList(sizes));
  }
  const Tensor tensor = value_to<Tensor>(x);
  const int64_t dim = wrap_dim("Gather", axis, tensor.dim());
  // One known place is a view.
  if (index && index->count() == 1 && index->sizes.empty()) return {select(tensor, dim, index->whole[0])};
  const Tensor places = value_to<Tensor>(indices);
  if (dim == 0 && tensor.dim() == 2 && is_floating(tensor.dtype())) {
    const Tensor wrapped_places = places.dtype() == kInt32 ? places.to(kInt64) : places;
    return {embedding(tensor, where(lt(wrapped_places, 0), add(wrapped_places, tensor.size(0)), wrapped_places))};
  }
  Shape sizes = tensor.sizes().slice(0, size_t(dim));
  sizes.append(places.sizes());
  sizes.append(tensor.sizes().slice(size_t(dim) + 1));
  return {index_select(tensor, dim, places.flatten()).reshape(sizes)};
}

// Bounds that stand for "to the end" are none, so that symbolic sizes need no comparison with them.
std::optional<Dim> bound_of(const Dim& bound) {
  constexpr int64_t kFar = int64_t(1) << 30;
  if (bound.is_number() && (bound.number() >= kFar || bound.number() <= -kFar)) return std::nullopt;
  return bound;
}

Value sliced(Any x, Sizes starts, Sizes ends, MaybeInts axes, MaybeInts steps) {
  const int64_t rank = sizes_of(x).rank();
  check(starts.rank() == ends.rank(), "Slice: {} starts and {} ends", starts.rank(), ends.rank());
  auto axis_of = [&](size_t i) { return wrap_dim("Slice", axes ? (*axes)[i] : int64_t(i), rank); };
  check(!axes || axes->size() == starts.size(), "Slice: {} axes for {} starts", axes ? axes->size() : 0, starts.size());
  check(!steps || steps->size() == starts.size(), "Slice: {} steps for {} starts", steps ? steps->size() : 0, starts.size());
  const HostTensor* host = host_of(x);
  const bool is_host = host && starts.is_static() && ends.is_static();
  Value out = is_host ? x : Value{value_to<Tensor>(x)};
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t dim = axis_of(i), step = steps ? (*steps)[i] : 1;
    check(step != 0, "Slice: a step is 0");
    if (!is_host) {
      const bool skips = step < 0 && starts[i].is_number() && starts[i].number() < -(int64_t(1) << 30);
      check(!skips, "Slice: a walk backwards begins before the first element");
      out = {slice(out.as<Tensor>(), dim, bound_of(starts[i]), bound_of(ends[i]), step)};
      continue;
    }
    const int64_t size = host_of(out)->sizes[size_t(dim)], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    auto bounded = [&](int64_t at) { return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high); };
    std::vector<int64_t> from;
    const int64_t begin = bounded(starts[i].number()), end = bounded(ends[i].number());
    for (int64_t at = begin; step > 0 ? at < end : at > end; at += step) from.push_back(at);
    out = along(*host_of(out), dim, from);
  }
  return out;
}

ValueList split_up(Any x, const std::optional<Shape>& given, Int axis, MaybeInt count, Int output_count) {
  const Shape sizes = sizes_of(x);
  const int64_t dim = wrap_dim("Split", axis, sizes.rank());
  Shape parts;
  if (given) {
    parts = *given;
  } else {
    const int64_t wanted = count.value_or(output_count), size = sizes[size_t(dim)];
    check(wanted > 0, "Split: into {} parts", wanted);
    const int64_t each = (size + wanted - 1) / wanted;
    for (int64_t i = 0; i < wanted; ++i) parts.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  }
  ValueList out;
  const HostTensor* host = host_of(x);
  if (host && parts.is_static()) {
    int64_t at = 0;
    for (int64_t size : parts.numbers()) {
      check(size >= 0 && at + size <= host->sizes[size_t(dim)], "Split: {} of a dimension of size {}", parts, host->sizes[size_t(dim)]);
      std::vector<int64_t> from;
      for (int64_t i = 0; i < size; ++i) from.push_back(at + i);
      out.push_back(along(*host, dim, from));
      at += size;
    }
    return out;
  }
  for (auto& part : split_with_sizes(value_to<Tensor>(x), parts, dim)) out.push_back({part});
  return out;
}

// --- together

Value joined(Any list, Int axis) {
  const ValueList& each = list.as<ValueList>();
  bool are_whole = !each.empty();
  int64_t count = 0;
  for (auto& value : each) {
    const HostTensor* host = host_of(value);
    are_whole = are_whole && host && host->sizes.size() == 1;
    count += host ? host->count() : 0;
  }
  if (are_whole && count <= HostTensor::kMostElements) {
    wrap_dim("Concat", axis, 1);
    HostTensor out{.dtype = host_of(each[0])->dtype, .sizes = {count}, .device = host_of(each[0])->place()};
    for (auto& value : each) {
      out.whole.insert(out.whole.end(), host_of(value)->whole.begin(), host_of(value)->whole.end());
      out.real.insert(out.real.end(), host_of(value)->real.begin(), host_of(value)->real.end());
    }
    return host_value(std::move(out));
  }
  return {cat(value_to<TensorList>(list), axis)};
}

Value expanded(Any x, Sizes shape) {
  const HostTensor* host = host_of(x);
  if (host && shape.is_static()) {
    const IntList sizes(broadcast_shapes("Expand", Shape(host->sizes), shape));
    if (checked_numel("Expand", sizes) <= HostTensor::kMostElements && host->count() == 1)
      return pick(*host, sizes, std::vector<int64_t>(size_t(checked_numel("Expand", sizes)), 0));
  }
  const Tensor tensor = value_to<Tensor>(x);
  return {expand(tensor, broadcast_shapes("Expand", tensor.sizes(), shape))};
}

Value filled(Sizes shape, Any value) {
  const HostTensor* host = is_given(value) ? host_of(value) : nullptr;
  check(!is_given(value) || host, "ConstantOfShape: its value is not one element");
  const DType dtype = host ? host->dtype : kFloat32;
  const bool is_small = shape.rank() <= 1 && shape.is_static() && checked_numel("ConstantOfShape", shape.numbers()) <= HostTensor::kMostElements;
  const Device device = host ? host->place() : Device();
  if (host && is_small && !host->is_real())
    return pick(*host, shape.numbers(), std::vector<int64_t>(size_t(checked_numel("ConstantOfShape", shape.numbers())), 0));
  return {full(shape, host ? value_to<Scalar>(value) : Scalar(0.0), TensorOptions(dtype).device(device))};
}

// start, start + delta, … before limit. Of sizes the count stays a size.
Tensor ranged(Any start, Any limit, Any delta) {
  const DType dtype = dtype_of(start);
  const TensorOptions options = TensorOptions(dtype).device(host_of(start) ? host_of(start)->place() : value_to<Tensor>(start).device());
  if (is_floating(dtype)) {
    const double from = value_to<double>(start), to = value_to<double>(limit), step = value_to<double>(delta);
    return arange(Scalar(from), Scalar(to), Scalar(step), options);
  }
  const Dim from = value_to<Dim>(start), to = value_to<Dim>(limit);
  const int64_t step = value_to<int64_t>(delta);
  if (step == 1 && from.is_number() && from.number() == 0) return arange_of_size(to, options);
  if (step == 1) return add(arange_of_size(to - from, options), TensorArg(from));
  return arange(Scalar(from.to_int()), Scalar(to.to_int()), Scalar(step), options);
}

// --- reductions of sizes

Value product_of(Any x, MaybeInts axes, bool keepdims, bool keeps_without_axes) {
  const HostTensor* host = host_of(x);
  if (host && !host->is_real() && (!axes || axes->empty()) && !keeps_without_axes) {
    Dim out = 1;
    for (auto& each : host->whole) out *= each;
    return host_value({.dtype = host->dtype,
                       .sizes = keepdims ? IntList(std::vector<int64_t>(host->sizes.size(), 1)) : IntList(),
                       .whole = {out},
                       .device = host->place()});
  }
  const Tensor tensor = value_to<Tensor>(x);
  if (keeps_without_axes && (!axes || axes->empty())) return {tensor};
  IntList dims = axes && !axes->empty() ? wrapped("ReduceProd", *axes, tensor.dim()) : IntList();
  if (dims.empty())
    for (int64_t d = 0; d < tensor.dim(); ++d) dims.push_back(d);
  std::sort(dims.begin(), dims.end());
  Tensor out = tensor;
  for (size_t i = dims.size(); i-- > 0;) out = prod(out, dims[i], keepdims, tensor.dtype());
  return {out};
}

}  // namespace

std::span<const Function> size_operators() {
  static const Function kList[] = {
      {"onnx::Shape.1(Tensor data, *, int start=0, int? end=None) -> Tensor", shape_of},
      {"onnx::Size.1(Tensor data) -> Tensor", size_of},
      {"onnx::Reshape.5(Tensor data, int[] shape, *, int allowzero=0) -> Tensor", reshaped},
      {"onnx::Squeeze.1(Tensor data, int[]? axes=None) -> Tensor", squeezed},
      {"onnx::Unsqueeze.1(Tensor data, int[] axes) -> Tensor", unsqueezed},
      {"onnx::Flatten.1(Tensor input, *, int axis=1) -> Tensor", flattened},
      {"onnx::Gather.1(Tensor data, Tensor indices, *, int axis=0) -> Tensor", gathered},
      {"onnx::Slice.1(Tensor data, int[] starts, int[] ends, int[]? axes=None, int[]? steps=None) -> Tensor", sliced},
      {"onnx::Split.2(Tensor input, int[]? split=None, *, int axis=0, int? num_outputs=None, int output_count=1) -> Tensor[]",
       split_up},
      {"onnx::Concat.4(Tensor[] inputs, *, int axis) -> Tensor", joined},
      {"onnx::Expand.8(Tensor input, int[] shape) -> Tensor", expanded},
      {"onnx::ConstantOfShape.9(int[] input, *, Tensor? value=None) -> Tensor",
       [](Sizes shape, Any value) {
         // The value has one dimension.
         if (const HostTensor* host = host_of(value); !host && is_given(value))
           return filled(shape, host_value(read_elements(value_to<Tensor>(value))));
         return filled(shape, value);
       }},
      {"onnx::Range.11(Tensor start, Tensor limit, Tensor delta) -> Tensor", ranged},
      {"onnx::ReduceProd.1(Tensor data, int[]? axes=None, *, int keepdims=1, int noop_with_empty_axes=0) -> Tensor",
       product_of},
  };
  return kList;
}

}  // namespace sinter::interop::onnx
