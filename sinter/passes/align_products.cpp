#include "sinter/passes/align_products.h"

#include <algorithm>

#include "sinter/graph/rewrite.h"
#include "sinter/ops/attributes.h"
#include "sinter/ops/dims.h"
#include "sinter/ops/known_ops.h"

namespace sinter {

namespace {

// Multiply-adds that take as long as moving a byte, with what there is to gain in mind.
constexpr double kWorkOfAByte = 64;

bool is_transpose(const Node& node) {
  auto& ops = known_ops();
  return node.op == &ops.permute && node.types[0].rank() == 2 &&
         wrap_dims(ops.permute.name.data(), node.attrs.as<PermuteAttrs>().dims, 2) == IntList{1, 0};
}

// What is missing of whole vectors along each dimension of a product [m, k] × [k, n].
struct Missing {
  int64_t m = 0, k = 0, n = 0;
  explicit operator bool() const { return m || k || n; }
};

Missing missing_of(const Node& node, const FuseOptions& options) {
  const int64_t alignment = options.target.product_alignment;
  if (node.op != &known_ops().mm || alignment == 0) return {};
  const int64_t item = item_size(node.types[0].dtype);
  if (!is_floating(node.types[0].dtype) || item > 2) return {};
  const Shape &a = node.inputs[0].type().shape, &b = node.inputs[1].type().shape;
  if (!a[0].is_number() || !a[1].is_number() || !b[1].is_number()) return {};
  const int64_t m = a[0].number(), k = a[1].number(), n = b[1].number();
  const int64_t unit = alignment / item;
  auto rest = [&](int64_t size) { return (unit - size % unit) % unit; };
  // A transposed operand lies by its columns. The result lies by rows.
  const bool a_by_columns = is_transpose(*node.inputs[0].node), b_by_columns = is_transpose(*node.inputs[1].node);
  const Missing out{.m = a_by_columns ? rest(m) : 0, .k = a_by_columns && !b_by_columns ? 0 : rest(k), .n = rest(n)};
  double copied = 0;
  if (out.m || out.k) copied += double(m) * double(k);
  if (out.k || out.n) copied += double(k) * double(n);
  const double work = double(m) * double(k) * double(n);
  return work >= options.least_aligned && work >= kWorkOfAByte * 2 * double(item) * copied ? out : Missing{};
}

class Aligner {
 public:
  explicit Aligner(RewriteContext& context) : context_(context) {}

  // The matrix with rows and columns of zeros behind its own. Below a transpose, so that it is done once for both.
  Value padded(const Node& old, Value matrix, int64_t rows, int64_t columns) {
    if (rows == 0 && columns == 0) return matrix;
    auto& ops = known_ops();
    const bool transposed = is_transpose(old);
    Value base = transposed ? context_(old.inputs[0]) : matrix;
    if (transposed) std::swap(rows, columns);
    // The list of pads begins with the last dimension.
    Attrs pads = ops.constant_pad_nd.parse({{"pad", format("[0, {}, 0, {}]", columns, rows)}});
    Value out = context_.add(ops.constant_pad_nd, {base}, pads).result();
    return transposed ? context_.add(ops.permute, {out}, PermuteAttrs{{1, 0}}).result() : out;
  }

  Value cut(Value matrix, const Shape& shape) {
    for (int64_t dim : {0, 1}) {
      if (matrix.type().shape[size_t(dim)].same_as(shape[size_t(dim)])) continue;
      Attrs first = known_ops().slice.parse({{"dim", std::to_string(dim)}, {"end", to_string(shape[size_t(dim)])}});
      matrix = context_.add(known_ops().slice, {matrix}, first).result();
    }
    return matrix;
  }

 private:
  RewriteContext& context_;
};

}  // namespace

bool has_unaligned_products(const Graph& graph, const FuseOptions& options) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](auto& node) { return bool(missing_of(node, options)); });
}

Graph align_products(const Graph& graph, const FuseOptions& options) {
  return rewrite(graph, [&](RewriteContext& context, const Node& node) -> std::optional<std::vector<Value>> {
    const Missing missing = missing_of(node, options);
    if (!missing) return std::nullopt;
    Aligner aligner(context);
    Value left = aligner.padded(*node.inputs[0].node, context(node.inputs[0]), missing.m, missing.k);
    Value right = aligner.padded(*node.inputs[1].node, context(node.inputs[1]), missing.k, missing.n);
    Value product = context.add(*node.op, {left, right}).result();
    return std::vector<Value>{aligner.cut(product, node.types[0].shape)};
  });
}

}  // namespace sinter
