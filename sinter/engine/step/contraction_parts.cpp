#include "sinter/engine/step/contraction_parts.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/graph/nodes.h"
#include "sinter/ops/dequantize.h"

namespace sinter {

namespace {

class Reader {
 public:
  explicit Reader(const FusedAttrs& attrs) : body_(*attrs.body) {
    out_.body = attrs.body;
    out_.name = fused_name(body_);
  }

  ContractionParts run() {
    for (auto& node : body_.nodes())
      if (is_contraction(node)) add_part(node);
    const Node& first = *out_.parts[0].node;
    add_left(first);
    out_.together = std::all_of(out_.parts.begin(), out_.parts.end(),
                                [&](auto& part) { return part.node->types[0].shape.same_as(first.types[0].shape); });
    out_.epilogues.resize(out_.parts.size());
    for (auto& node : body_.nodes())
      if (is_fused(node, FusedKind::kEpilogue)) out_.epilogues[part_of(node)] = epilogue(node);
    if (out_.together && out_.epilogues[0]) out_.epilogues.resize(1);
    for (auto& part : out_.parts)
      for (size_t j = 0; j < body_.outputs().size(); ++j)
        if (body_.outputs()[j].node == part.node) part.result = int(body_.inputs().size() + j);
    return std::move(out_);
  }

 private:
  int position(Value v) const {
    auto at = std::find(body_.inputs().begin(), body_.inputs().end(), v);
    SINTER_INTERNAL_ASSERT(at != body_.inputs().end(), "an operand of a fused contraction is computed inside");
    return int(at - body_.inputs().begin());
  }

  void add_part(const Node& node) {
    const Node* weight = behind_views(node.inputs[1].node);
    if (weight->op != &dequantize_op()) {
      out_.parts.push_back({&node, position(node.inputs[1])});
      return;
    }
    auto& attrs = weight->attrs.as<DequantizeAttrs>();
    ContractionParts::Part::Encoded encoded{weight, position(weight->inputs[1])};
    if (attrs.has_zero || attrs.has_offset) encoded.zero = position(weight->inputs[2]);
    if (attrs.has_table()) encoded.table = position(weight->inputs.back());
    out_.parts.push_back({&node, position(weight->inputs[0]), encoded});
  }

  void add_left(const Node& first) {
    const Node* from = behind_views(first.inputs[0].node);
    if (from->op == &fused_op()) {
      auto& prologue = out_.prologue.emplace();
      prologue.node = from;
      for (auto& v : from->inputs) prologue.operands.push_back(position(v));
    } else {
      out_.left = position(first.inputs[0]);
    }
    out_.left_dtype = first.inputs[0].type().dtype;
    IntList sizes = first.inputs[0].type().shape.numbers();
    out_.batch = sizes.size() == 3 ? sizes[0] : 1;
    out_.m = sizes[sizes.size() - 2];
    out_.k = sizes[sizes.size() - 1];
  }

  // Whose result is its first tile.
  size_t part_of(const Node& epilogue) const {
    auto reads = [&](auto& part) { return part.node == epilogue.inputs[0].node; };
    return size_t(std::find_if(out_.parts.begin(), out_.parts.end(), reads) - out_.parts.begin());
  }

  ContractionParts::Inner epilogue(const Node& node) const {
    ContractionParts::Inner out{&node, {}};
    for (size_t i = size_t(out.attrs().tiles); i < node.inputs.size(); ++i) out.operands.push_back(position(node.inputs[i]));
    for (size_t r = 0; r < node.types.size(); ++r) {
      auto at = std::find(body_.outputs().begin(), body_.outputs().end(), node.result(int(r)));
      SINTER_INTERNAL_ASSERT(at != body_.outputs().end(), "an epilogue computes what the kernel does not return");
      out.operands.push_back(int(body_.inputs().size()) + int(at - body_.outputs().begin()));
    }
    return out;
  }

  const Graph& body_;
  ContractionParts out_;
};

}  // namespace

ContractionParts read_contraction(const FusedAttrs& attrs) { return Reader(attrs).run(); }

PartGeometries geometries_of(std::span<const int> positions, std::span<const TensorImpl* const> inputs,
                             std::span<const TensorImpl* const> outputs) {
  PartGeometries out;
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
