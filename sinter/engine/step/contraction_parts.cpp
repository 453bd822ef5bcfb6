#include "sinter/engine/step/product_pieces.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/loops/fused.h"

namespace sinter {

namespace {

bool computes(const Node& node) {
  auto kind = node.op->kind;
  return kind != OpKind::kInput && kind != OpKind::kScalar && kind != OpKind::kView;
}

// A part of a body as a body of its own: operands and results by their positions in the whole.
struct Piece {
  FusedAttrs attrs;
  std::vector<int> inputs, outputs;
  bool has_epilogue = false;
};

// What a product and the results that follow from it need.
Piece piece_of(const Graph& whole, const Node* product) {
  auto follows = [&](const Node* node) {
    std::vector<const Node*> left{node};
    std::set<const Node*> seen;
    while (!left.empty()) {
      const Node* n = left.back();
      left.pop_back();
      if (n == product) return true;
      if (!seen.insert(n).second) continue;
      for (auto& v : n->inputs) left.push_back(v.node);
    }
    return false;
  };
  Piece piece;
  std::vector<Value> results;
  std::set<const Node*> needed{product};
  for (size_t j = 0; j < whole.outputs().size(); ++j)
    if (follows(whole.outputs()[j].node)) {
      piece.outputs.push_back(int(j));
      needed.insert(whole.outputs()[j].node);
    }
  for (auto it = whole.nodes().rbegin(); it != whole.nodes().rend(); ++it)
    if (needed.contains(&*it))
      for (auto& v : it->inputs) needed.insert(v.node);

  Graph body;
  std::map<const Node*, Value> inside;
  for (size_t i = 0; i < whole.inputs().size(); ++i)
    if (const Node* node = whole.inputs()[i].node; needed.contains(node)) {
      inside[node] = body.add_input(node->types[0], node->name);
      piece.inputs.push_back(int(i));
    }
  piece.attrs.domain = product->types[0].shape;
  for (auto& node : whole.nodes()) {
    if (!needed.contains(&node) || node.op->kind == OpKind::kInput) continue;
    std::vector<Value> inputs;
    for (auto& v : node.inputs) inputs.push_back(inside.at(v.node));
    inside[&node] = node.op->kind == OpKind::kScalar
                        ? body.add_scalar(node.attrs.as<ScalarAttrs>().value)
                        : body.add_typed(*node.op, std::move(inputs), node.attrs, node.types, node.where).result();
    if (&node != product && computes(node) && node.op != &fused_op()) {
      piece.has_epilogue = true;
      piece.attrs.domain = node.types[0].shape;
    }
  }
  for (int j : piece.outputs) results.push_back(inside.at(whole.outputs()[size_t(j)].node));
  body.set_outputs(std::move(results));
  piece.attrs.body = SubGraph(std::move(body));
  return piece;
}

class Analysis {
 public:
  explicit Analysis(const FusedAttrs& attrs) : attrs_(attrs), body_(*attrs.body) {}

  ProductPieces run() {
    auto products = contractions_of(body_);
    add_left(*products[0]);
    out_.together = std::all_of(products.begin(), products.end(),
                                [&](auto* p) { return p->types[0].shape.same_as(products[0]->types[0].shape); });
    for (auto* product : products)
      out_.parts.push_back({product->inputs[1].type().shape.numbers().back(), position(product->inputs[1]), -1});
    int computed = 0;
    for (auto& node : body_.nodes()) {
      computed += computes(node) && node.op != &fused_op();
      if (computes(node)) out_.name += (out_.name.empty() ? "" : "_") + std::string(node.op->name);
    }
    bool alone = computed == int(products.size());
    if (!alone && out_.together) {
      std::vector<int> everything(body_.inputs().size() + body_.outputs().size());
      for (size_t i = 0; i < everything.size(); ++i) everything[i] = int(i);
      out_.follows.push_back(ProductPieces::Follow{attrs_, std::move(everything)});
      return std::move(out_);
    }
    for (size_t p = 0; p < products.size(); ++p) {
      Piece piece = piece_of(body_, products[p]);
      if (alone || !piece.has_epilogue) {
        out_.follows.emplace_back();
        for (size_t j = 0; j < body_.outputs().size(); ++j)
          if (body_.outputs()[j].node == products[p]) out_.parts[p].result = int(body_.inputs().size() + j);
        continue;
      }
      std::vector<int> operands = piece.inputs;
      for (int j : piece.outputs) operands.push_back(int(body_.inputs().size()) + j);
      out_.follows.push_back(ProductPieces::Follow{std::move(piece.attrs), std::move(operands)});
    }
    return std::move(out_);
  }

 private:
  int position(Value v) const {
    for (size_t i = 0; i < body_.inputs().size(); ++i)
      if (body_.inputs()[i] == v) return int(i);
    SINTER_INTERNAL_ASSERT(false, "an operand of a fused product is computed inside");
  }

  void add_left(const Node& product) {
    const Node* from = product.inputs[0].node;
    while (from->op->kind == OpKind::kView) from = from->inputs[0].node;
    IntList sizes = product.inputs[0].type().shape.numbers();
    if (from->op == &fused_op()) {
      out_.prologue.emplace();
      out_.prologue->node = from;
      for (auto& v : from->inputs) out_.prologue->operands.push_back(position(v));
      out_.left_dtype = from->types[0].dtype;
    } else {
      out_.left = position(product.inputs[0]);
      out_.left_dtype = product.inputs[0].type().dtype;
    }
    out_.batch = sizes.size() == 3 ? sizes[0] : 1;
    out_.m = sizes[sizes.size() - 2];
    out_.k = sizes[sizes.size() - 1];
  }

  const FusedAttrs& attrs_;
  const Graph& body_;
  ProductPieces out_;
};

}  // namespace

ProductPieces take_apart(const FusedAttrs& attrs) { return Analysis(attrs).run(); }

PieceGeometries geometries_of(std::span<const int> positions, std::span<const TensorImpl* const> inputs,
                              std::span<const TensorImpl* const> outputs) {
  PieceGeometries out;
  for (int at : positions) {
    if (size_t(at) < inputs.size())
      out.inputs.push_back(inputs[size_t(at)]);
    else
      out.outputs.push_back(outputs[size_t(at) - inputs.size()]);
  }
  return out;
}

IntrusivePtr<TensorImpl> row_major_of(const Type& type) {
  auto impl = make_intrusive<TensorImpl>();
  impl->dtype = type.dtype;
  impl->device = type.device;
  impl->sizes = type.shape.numbers();
  impl->strides = contiguous_strides(impl->sizes);
  impl->numel = type.shape.numel().number();
  impl->contiguous = true;
  return impl;
}

}  // namespace sinter
