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

// The shape to look at the operand in, and how many of its last dimensions are reduced first; 0: it stays as it is.
struct Split {
  Shape shape;
  size_t first = 0;
};

// Rows of the first half are at least this long, and there are at least so many of them.
constexpr int64_t kLeastRow = 64, kLeastRows = 64;

Split split_of(const Node& node, const FuseOptions& options) {
  if (node.op->kind != OpKind::kReduce || node.op->payload || is_row_reduction(node, options)) return {};
  size_t tail = reduced_tail(node);
  const Node* from = behind_views(node.inputs[0].node);
  const Shape& shape = node.inputs[0].type().shape;
  if (tail == 0 || from->op->kind != OpKind::kPointwise || from->op->random) return {};
  if (rounds_when_stored(node.types[0].dtype)) return {};  // once, at the end
  auto product = [&](size_t begin, size_t end) {
    int64_t numel = 1;
    for (size_t d = begin; d < end; ++d) numel *= shape[d].number();
    return numel;
  };
  for (auto& d : shape)
    if (!d.is_number()) return {};
  // As few dimensions as make a row of the first half.
  size_t rank = shape.size();
  for (size_t first = 1; first < tail; ++first)
    if (product(rank - first, rank) >= kLeastRow && product(rank - tail, rank - first) >= kLeastRows) return {shape, first};
  // One dimension, or only one of some length: cut where it divides.
  int64_t length = product(rank - tail, rank);
  for (int64_t row : {4096, 2048, 1024, 1000, 768, 512, 500, 384, 256, 250, 192, 128, 125, 100, 96, 80, 64}) {
    if (length % row != 0 || length / row < kLeastRows) continue;
    Shape cut(shape.begin(), shape.end() - int64_t(tail));
    cut.push_back(length / row);
    cut.push_back(row);
    return {cut, 1};
  }
  return {};
}

std::vector<Value> split(RewriteContext& context, const Node& node, const Split& how) {
  auto attrs = node.attrs.as<ReduceAttrs>();
  Value x = context(node.inputs[0]);
  size_t tail = reduced_tail(node), rank = node.inputs[0].type().shape.size(), cut_rank = how.shape.size();
  const size_t cut_tail = tail + cut_rank - rank;
  if (!how.shape.same_as(x.type().shape)) x = context.add(known_ops().view, {x}, ViewAttrs{how.shape}).result();
  auto reduce = [&](Value of, size_t begin, size_t end) {
    ReduceAttrs half = attrs;
    half.keepdim = false;
    half.dims.clear();
    for (size_t d = begin; d < end; ++d) half.dims.push_back(int64_t(d));
    return context.add(*node.op, {of}, half).result();
  };
  x = reduce(x, cut_rank - how.first, cut_rank);
  x = reduce(x, cut_rank - cut_tail, cut_rank - how.first);
  if (attrs.keepdim) x = context.add(known_ops().view, {x}, ViewAttrs{node.types[0].shape}).result();
  return {x};
}

}  // namespace

bool has_long_reductions(const Graph& graph, const FuseOptions& options) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](auto& node) { return split_of(node, options).first > 0; });
}

Graph split_reductions(const Graph& graph, const FuseOptions& options) {
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    Split how = split_of(node, options);
    return how.first ? std::optional(split(context, node, how)) : std::nullopt;
  });
}

}  // namespace sinter
