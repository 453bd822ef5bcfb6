// Reductions over whole dimensions, eagerly: kept axes and reduced axes collapse apart; few long rows are cut into chunks.
#include <algorithm>
#include <bit>

#include "sinter/base/error.h"
#include "sinter/engine/device/device_engine.h"
#include "sinter/engine/eager/eager.h"
#include "sinter/engine/eager/geometry.h"
#include "sinter/engine/eager/kernel_cache.h"
#include "sinter/engine/eager/last_resort.h"
#include "sinter/loops/lower.h"
#include "sinter/ops/define.h"

namespace sinter::eager {

namespace {

// The problem of one launch: input strides over kept then reduced axes, output strides over the kept ones.
struct Problem {
  Geometry kept;     // operand 0: input, operand 1: output
  Geometry reduced;  // operand 0: input
};

uint64_t stride_class(int64_t stride) { return stride == 1 ? 0 : 1; }

// The collapsed problem as a call of the same op: kept axes first, reduced axes last.
CachedKernel compile(const Op& op, const Problem& p, DType input, DType result, std::optional<DType> dtype_attr,
                     Device device, bool wide) {
  Parameters named;
  Shape shape, out_shape;
  Layout in, out;
  ReduceAttrs attrs;
  attrs.dtype = dtype_attr;
  auto add = [&](const Geometry& g, int first, bool reduced) {
    for (int d = 0; d < g.axes; ++d) {
      int axis = first + d;
      bool last = d + 1 == g.axes;
      auto stride = [&](int operand) {
        bool unit = last && g.strides[size_t(operand)][size_t(d)] == 1;
        return unit ? Dim(1) : named.stride(operand, axis);
      };
      Dim size = named.size(axis);
      shape.push_back(size);
      in.strides.push_back(stride(0));
      if (reduced) {
        attrs.dims.push_back(axis);
      } else {
        out_shape.push_back(size);
        out.strides.push_back(stride(1));
      }
    }
  };
  add(p.kept, 0, false);
  add(p.reduced, p.kept.axes, true);
  Type types[] = {{input, shape, Device(), false}};
  Attrs boxed(attrs);
  OpCall call{op, types, boxed};
  Layout layouts[] = {in, out};
  CachedKernel entry;
  entry.result = result;
  entry.kernel = compile_kernel(lower(call, Type{result, out_shape, Device(), false}, layouts, named), device, {.wide = wide});
  entry.sources = param_sources(*entry.kernel);
  return entry;
}

void start(const Op& op, const Problem& p, DType input, const void* in, DType result, void* out,
           std::optional<DType> dtype_attr, Device device) {
  const bool wide = engine_of(device).target().gpu && p.kept.elements() * p.reduced.elements() >= INT32_MAX / 2;
  uint64_t key = uint64_t(p.kept.axes) << 8 | uint64_t(p.reduced.axes);
  key = key << 12 | uint64_t(input) << 8 | uint64_t(result) << 4 | uint64_t(dtype_attr.has_value());
  size_t kept_last = size_t(p.kept.axes) - 1, reduced_last = size_t(p.reduced.axes) - 1;
  key = key << 3 | stride_class(p.kept.strides[0][kept_last]) << 2 | stride_class(p.kept.strides[1][kept_last]) << 1 |
        stride_class(p.reduced.strides[0][reduced_last]);
  auto& cached = kernel_cache().find(op, on_device(key, device, wide),
                                     [&] { return compile(op, p, input, result, dtype_attr, device, wide); });
  int64_t args[3 + 3 * kMaxAxes];
  size_t slot = 0;
  args[slot++] = int64_t(reinterpret_cast<uintptr_t>(in));
  args[slot++] = int64_t(reinterpret_cast<uintptr_t>(out));
  for (auto& source : cached.sources) {
    bool kept = source.axis < p.kept.axes;
    auto& g = kept ? p.kept : p.reduced;
    size_t axis = size_t(kept ? source.axis : source.axis - p.kept.axes);
    args[slot++] = source.operand < 0 ? g.sizes[axis] : g.strides[size_t(source.operand)][axis];
  }
  args[slot] = 0;
  int64_t inner = cached.kernel->split_last ? p.kept.sizes[kept_last] : 1;
  launch(*cached.kernel, args, p.kept.elements() / inner, inner * p.reduced.elements());
}

const char* at(const void* base, int64_t elements, DType dtype) {
  return static_cast<const char*>(base) + elements * item_size(dtype);
}

// What a partial result is kept in: wide enough to add up without rounding to the result's type in between.
DType partial_dtype(const Op& op, DType result) {
  bool sums = op.combine == Combine::kSum || op.combine == Combine::kProd;
  return sums ? compute_dtype(result) : result;
}

// Strides of the kept axes in a scratch of partial results whose rows are `unit` apart.
void lay_rows(Geometry& kept, int operand, int64_t unit) {
  for (int d = kept.axes; d-- > 0;) {
    kept.strides[size_t(operand)][size_t(d)] = unit;
    unit *= kept.sizes[size_t(d)];
  }
}

// The kept axes and one more, of chunks: in front or behind.
Geometry with_chunks(const Geometry& kept, bool in_front, int64_t chunks, int64_t in_stride, int64_t out_stride) {
  Geometry out;
  out.operands = 2;
  auto add_chunks = [&] {
    out.strides[0][size_t(out.axes)] = in_stride;
    out.strides[1][size_t(out.axes)] = out_stride;
    out.add_axis(chunks);
  };
  if (in_front) add_chunks();
  for (size_t d = 0; d < size_t(kept.axes); ++d) {
    out.strides[0][size_t(out.axes)] = kept.strides[0][d];
    out.strides[1][size_t(out.axes)] = kept.strides[1][d];
    out.add_axis(kept.sizes[d]);
  }
  if (!in_front) add_chunks();
  return out;
}

// Whether neighbours in memory are neighbours along the kept axes: the reduction runs over columns.
bool over_columns(const Problem& p) { return p.kept.strides[0][size_t(p.kept.axes) - 1] == 1 && p.kept.elements() > 1; }

// Long rows are cut into chunks of so many elements that are reduced apart: more work to share, and sums that round less. Where
// the kept axis is the contiguous one, only few columns need it. The limits do not depend on the number of threads, so neither
// does the order of additions. 0: rows stay whole.
int64_t chunk_of(const Problem& p, Device device) {
  if (p.reduced.axes != 1 || p.kept.axes >= kMaxAxes) return 0;
  const int64_t length = p.reduced.sizes[0], kept = p.kept.elements();
  const bool columns = over_columns(p);
  if (!engine_of(device).target().gpu) return length >= 65536 && (!columns || kept < 1024) ? 16384 : 0;
  // A GPU works on a row, or on a few columns, with one block: fewer than it has room for need more pieces.
  constexpr int64_t kManyParts = 1 << 15, kLeastPart = 64;
  if (!columns) return length >= 16384 && kept < 512 ? 4096 : 0;
  const int64_t chunk = std::max(kLeastPart, int64_t(std::bit_floor(uint64_t(length * kept / kManyParts))));
  return kept < kManyParts && 2 * chunk <= length ? chunk : 0;
}

// Rows cut into chunks, each reduced by itself, then the chunks of a row joined in order. Partial results lie so that both
// steps keep the lanes they would have had: chunk after chunk for columns, row after row else.
void start_in_chunks(const Op& op, const Problem& p, int64_t chunk, DType input, const void* in, DType result, void* out,
                     std::optional<DType> dtype_attr, Device device) {
  int64_t length = p.reduced.sizes[0], step = p.reduced.strides[0][0], rows = p.kept.elements();
  int64_t whole = length / chunk, rest = length % chunk, chunks = whole + (rest ? 1 : 0);
  bool columns = over_columns(p);
  int64_t chunk_stride = columns ? rows : 1, row_stride = columns ? 1 : chunks;
  DType partial = partial_dtype(op, result);
  auto scratch = allocate_buffer(size_t(rows * chunks * item_size(partial)), device);
  std::optional<DType> partial_attr = partial == result ? dtype_attr : std::optional(partial);

  Problem part = p;
  lay_rows(part.kept, 1, row_stride);
  if (rest) {
    part.reduced.sizes[0] = rest;
    start(op, part, input, at(in, whole * chunk * step, input), partial,
          const_cast<char*>(at(scratch->data(), whole * chunk_stride, partial)), partial_attr, device);
  }
  part.kept = with_chunks(part.kept, columns, whole, chunk * step, chunk_stride);
  part.reduced.sizes[0] = chunk;
  start(op, part, input, in, partial, scratch->data(), partial_attr, device);

  Problem join = p;
  lay_rows(join.kept, 0, row_stride);
  join.reduced.sizes[0] = chunks;
  join.reduced.strides[0][0] = chunk_stride;
  start(op, join, partial, scratch->data(), result, out, partial == result ? dtype_attr : std::optional(result),
        device);
}

Tensor reduce(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* given) {
  auto types = operand_types(inputs);
  OpCall call{op, types, attrs};
  Type type = op.infer(call)[0];
  auto& a = attrs.as<ReduceAttrs>();
  const TensorImpl& in = inputs[0].tensor().impl();
  Tensor out = given ? *given : empty(type.shape, TensorOptions(type.dtype).device(type.device));
  if (out.impl().numel == 0) return out;
  if (in.numel == 0) return out.fill_(identity_of(op.combine, type.dtype)), out;
  check(in.sizes.size() <= size_t(kMaxAxes), "{}: tensors of more than {} dimensions are not supported", op.name, kMaxAxes);
  auto dims = reduced_dims(call, a.dims);
  Problem p;
  p.kept.operands = 2;
  p.reduced.operands = 1;
  size_t next_dim = 0, next_out = 0;
  for (size_t d = 0; d < in.sizes.size(); ++d) {
    bool reduced = next_dim < dims.size() && dims[next_dim] == int64_t(d);
    auto& g = reduced ? p.reduced : p.kept;
    g.add_axis(in.sizes[d]);
    g.strides[0][size_t(g.axes) - 1] = in.strides[d];
    if (!reduced) g.strides[1][size_t(g.axes) - 1] = out.impl().strides[next_out];
    next_dim += reduced;
    if (!reduced || a.keepdim) ++next_out;
  }
  // The winner's position counts in the program's order of axes; a sum may take any.
  bool ordered = op.payload != nullptr;
  collapse(p.kept, 1, true);
  collapse(p.reduced, 0, !ordered);
  const void* data = data_of(in);
  if (int64_t chunk = ordered ? 0 : chunk_of(p, type.device))
    start_in_chunks(op, p, chunk, in.dtype, data, type.dtype, data_of(out.impl()), a.dtype, type.device);
  else
    start(op, p, in.dtype, data, type.dtype, data_of(out.impl()), a.dtype, type.device);
  return out;
}

}  // namespace

Tensor run_reduce(const Op& op, std::span<const TensorArg> inputs, const Attrs& attrs, const Tensor* out) {
  return or_by_referee(op, inputs, attrs, out, [&] { return reduce(op, inputs, attrs, out); });
}

}  // namespace sinter::eager
