#include "sinter/passes/split_reductions.h"

#include <algorithm>

#include "sinter/graph/nodes.h"
#include "sinter/graph/rewrite.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/define.h"
#include "sinter/ops/fused.h"
#include "sinter/ops/known_ops.h"
#include "sinter/passes/fuse_views.h"

namespace sinter {

namespace {

// How a reduction becomes two: what its operand is looked at as, which of those dimensions go first, and which of what is left
// then. None: it stays as it is.
struct Split {
  Shape shape;
  IntList first, second;
};

// Rows of the first half are at least this long, and there are at least so many of them.
constexpr int64_t kLeastRow = 64, kLeastRows = 64;
// On a GPU: results of the first half that keep it busy, how many elements each should have, and the column that is worth it.
constexpr int64_t kManyParts = 1 << 15, kLeastPart = 16, kLongColumn = 1024;

// Where the last dimensions and others are reduced, rows are many. On a GPU they may be shorter: its threads take columns of
// such rows where these lie side by side in memory (the channels of an image).
constexpr int64_t kLeastShortRow = 24;

IntList dims_of(const Node& node) {
  std::vector<Type> types{node.inputs[0].type()};
  return reduced_dims(OpCall{*node.op, types, node.attrs}, node.attrs.as<ReduceAttrs>().dims);
}

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t numel = 1;
  for (size_t d = begin; d < end; ++d) numel *= shape[d].number();
  return numel;
}

bool is_computed(const Node& node) {
  const Node* from = behind_views(node.inputs[0].node);
  return from->op->kind == OpKind::kPointwise && !from->op->random;
}

IntList dims_between(size_t begin, size_t end) {
  IntList out;
  for (size_t d = begin; d < end; ++d) out.push_back(int64_t(d));
  return out;
}

// A reduction over the last dimensions.
std::optional<Split> split_rows(const Node& node, size_t tail) {
  const Shape& shape = node.inputs[0].type().shape;
  if (!is_computed(node) || rounds_when_stored(node.types[0].dtype)) return {};  // once, at the end
  // As few dimensions as make a row of the first half.
  size_t rank = shape.size();
  for (size_t first = 1; first < tail; ++first)
    if (product(shape, rank - first, rank) >= kLeastRow && product(shape, rank - tail, rank - first) >= kLeastRows)
      return Split{shape, dims_between(rank - first, rank), dims_between(rank - tail, rank - first)};
  // One dimension, or only one of some length: cut where it divides.
  int64_t length = product(shape, rank - tail, rank);
  for (int64_t row : {4096, 2048, 1024, 1000, 768, 512, 500, 384, 256, 250, 192, 128, 125, 100, 96, 80, 64}) {
    if (length % row != 0 || length / row < kLeastRows) continue;
    Shape cut(shape.begin(), shape.end() - int64_t(tail));
    cut.push_back(length / row);
    cut.push_back(row);
    return Split{cut, {int64_t(cut.size()) - 1}, {int64_t(cut.size()) - 2}};
  }
  return {};
}

// A reduction over the last dimensions and others, a channel's over the images of a batch: as many of the last ones first as leave
// a GPU parts enough, or else as few as make a row; on a CPU all.
std::optional<Split> split_channels(const Node& node, const IntList& dims, bool gpu) {
  const Shape& shape = node.inputs[0].type().shape;
  if (!is_computed(node) || rounds_when_stored(node.types[0].dtype)) return {};
  const size_t rank = shape.size();
  size_t last = 0;  // how many
  while (last < dims.size() && dims[dims.size() - 1 - last] == int64_t(rank - 1 - last)) ++last;
  size_t first = gpu ? 1 : last;
  while (gpu && first < last && product(shape, 0, rank - first - 1) >= kManyParts) ++first;
  for (; first <= last; ++first)
    if (product(shape, rank - first, rank) >= (gpu ? kLeastShortRow : kLeastRow))
      return Split{shape, dims_between(rank - first, rank), IntList(dims.begin(), dims.end() - int64_t(first))};
  return {};
}

// A reduction over others than the last ones. The dimensions that are reduced stay for the second half one after the other,
// until there are parts enough; the one at which that is so is cut where it divides. To cut one is to look at what lies there,
// whatever its strides.
std::optional<Split> split_columns(const Node& node, const IntList& dims) {
  const Shape& shape = node.inputs[0].type().shape;
  const bool rounds = rounds_when_stored(node.types[0].dtype);
  if (rounds && !rounds_when_stored(node.inputs[0].type().dtype)) return {};
  int64_t kept = 1, length = 1, parts = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    (std::find(dims.begin(), dims.end(), int64_t(d)) == dims.end() ? kept : length) *= shape[d].number();
  if (kept == 0 || length < kLongColumn || kept >= kManyParts) return {};
  const int64_t wanted = std::min({(kManyParts + kept - 1) / kept, length / kLeastPart, kLongColumn / 2});
  if (wanted < 2) return {};
  size_t at = 0;
  for (; parts * shape[size_t(dims[at])].number() < wanted; ++at) parts *= shape[size_t(dims[at])].number();
  const int64_t size = shape[size_t(dims[at])].number();
  int64_t cut = 0;
  for (int64_t divisor = 1; divisor <= size && parts * cut < wanted; ++divisor)
    if (size % divisor == 0 && parts * divisor < kLongColumn && length / (parts * divisor) >= kLeastPart) cut = divisor;
  if (parts * cut < 2 || parts * cut < wanted / 8) return {};
  Split out;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool here = int64_t(d) == dims[at] && cut > 1 && cut < size;
    if (here) out.shape.push_back(cut);
    out.shape.push_back(here ? Dim(size / cut) : shape[d]);
  }
  // Dimensions from the cut one on are one further.
  const int64_t moved = out.shape.size() > shape.size();
  for (size_t n = 0; n < dims.size(); ++n) {
    const bool later = n > at || (n == at && cut == 1);
    if (n == at && moved) {
      out.second.push_back(dims[n]);
      out.first.push_back(dims[n] + 1);
    } else {
      (later ? out.first : out.second).push_back(dims[n] + (n > at ? moved : 0));
    }
  }
  return out;
}

std::optional<Split> split_of(const Node& node, const FuseOptions& options) {
  if (node.op->kind != OpKind::kReduce || node.op->payload || is_row_reduction(node, options)) return {};
  for (auto& d : node.inputs[0].type().shape)
    if (!d.is_number()) return {};
  if (size_t tail = reduced_tail(node)) return split_rows(node, tail);
  const IntList dims = dims_of(node);
  if (dims.empty()) return {};
  if (dims.back() + 1 == node.inputs[0].type().rank()) return split_channels(node, dims, options.target.gpu);
  return options.target.gpu ? split_columns(node, dims) : std::nullopt;
}

std::vector<Value> split(RewriteContext& context, const Node& node, const Split& how) {
  auto attrs = node.attrs.as<ReduceAttrs>();
  Value x = context(node.inputs[0]);
  const DType result = node.types[0].dtype;
  // What is rounded is the sum of all, not that of a part.
  const bool wide = rounds_when_stored(result);
  const Op& cast = known_ops().cast;
  auto as = [&](Value of, DType dtype) {
    return context.add(cast, {of}, cast.parse({{"dtype", to_string(dtype)}})).result();
  };
  if (wide) x = as(x, kFloat32);
  if (!how.shape.same_as(x.type().shape)) x = context.add(known_ops().view, {x}, ViewAttrs{how.shape}).result();
  auto reduce = [&](Value of, const IntList& dims) {
    ReduceAttrs half = attrs;
    half.keepdim = false;
    half.dims = dims;
    if (wide && half.dtype) half.dtype = kFloat32;
    return context.add(*node.op, {of}, half).result();
  };
  // What is left to reduce comes last, so that the second half has rows, too.
  IntList kept, left;
  int64_t at = 0;
  for (int64_t d = 0; d < int64_t(how.shape.size()); ++d) {
    if (std::find(how.first.begin(), how.first.end(), d) != how.first.end()) continue;
    const bool is_left = std::find(how.second.begin(), how.second.end(), d) != how.second.end();
    (is_left ? left : kept).push_back(at++);
  }
  const int64_t rows = int64_t(kept.size());
  for (int64_t d : left) kept.push_back(d);
  x = reduce(x, how.first);
  if (!std::is_sorted(kept.begin(), kept.end())) x = context.add(known_ops().permute, {x}, PermuteAttrs{kept}).result();
  x = reduce(x, dims_between(size_t(rows), kept.size()));
  if (wide) x = as(x, result);
  if (attrs.keepdim) x = context.add(known_ops().view, {x}, ViewAttrs{node.types[0].shape}).result();
  return {x};
}

}  // namespace

bool has_long_reductions(const Graph& graph, const FuseOptions& options) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](auto& node) { return split_of(node, options).has_value(); });
}

Graph split_reductions(const Graph& graph, const FuseOptions& options) {
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    auto how = split_of(node, options);
    return how ? std::optional(split(context, node, *how)) : std::nullopt;
  });
}

}  // namespace sinter
