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
constexpr int64_t kManyParts = 1 << 15, kManyRows = 1 << 13, kLeastPart = 16, kLongColumn = 1024;

IntList dims_between(size_t begin, size_t end) {
  IntList out;
  for (size_t d = begin; d < end; ++d) out.push_back(int64_t(d));
  return out;
}

// A reduction over the last dimensions.
std::optional<Split> split_rows(const Node& node, size_t tail) {
  const Node* from = behind_views(node.inputs[0].node);
  const Shape& shape = node.inputs[0].type().shape;
  if (from->op->kind != OpKind::kPointwise || from->op->random) return {};
  if (rounds_when_stored(node.types[0].dtype)) return {};  // once, at the end
  auto product = [&](size_t begin, size_t end) {
    int64_t numel = 1;
    for (size_t d = begin; d < end; ++d) numel *= shape[d].number();
    return numel;
  };
  // As few dimensions as make a row of the first half.
  size_t rank = shape.size();
  for (size_t first = 1; first < tail; ++first)
    if (product(rank - first, rank) >= kLeastRow && product(rank - tail, rank - first) >= kLeastRows)
      return Split{shape, dims_between(rank - first, rank), dims_between(rank - tail, rank - first)};
  // One dimension, or only one of some length: cut where it divides.
  int64_t length = product(rank - tail, rank);
  for (int64_t row : {4096, 2048, 1024, 1000, 768, 512, 500, 384, 256, 250, 192, 128, 125, 100, 96, 80, 64}) {
    if (length % row != 0 || length / row < kLeastRows) continue;
    Shape cut(shape.begin(), shape.end() - int64_t(tail));
    cut.push_back(length / row);
    cut.push_back(row);
    return Split{cut, {int64_t(cut.size()) - 1}, {int64_t(cut.size()) - 2}};
  }
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
  // What ends in reduced dimensions may be rows, which more threads share.
  const int64_t many = dims.back() + 1 == int64_t(shape.size()) ? kManyRows : kManyParts;
  const int64_t wanted = std::min({(many + kept - 1) / kept, length / kLeastPart, kLongColumn / 2});
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
  if (!options.target.gpu) return {};
  std::vector<Type> types{node.inputs[0].type()};
  return split_columns(node, reduced_dims(OpCall{*node.op, types, node.attrs}, node.attrs.as<ReduceAttrs>().dims));
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
  x = reduce(x, how.first);
  IntList left;  // the second half's dimensions, when those of the first are gone
  for (int64_t d : how.second)
    left.push_back(d - std::count_if(how.first.begin(), how.first.end(), [d](int64_t gone) { return gone < d; }));
  x = reduce(x, left);
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
