#include "sinter/engine/fused_product.h"

#include <algorithm>
#include <map>
#include <set>

#include "sinter/base/error.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/fused_kernel.h"

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

class ProductCompiler {
 public:
  ProductCompiler(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                  std::span<const TensorImpl* const> outputs)
      : attrs_(attrs), body_(*attrs.body), inputs_(inputs), outputs_(outputs) {}

  FusedProduct run() {
    auto products = contractions_of(body_);
    add_left(*products[0]);
    out_.together = std::all_of(products.begin(), products.end(),
                                [&](auto* p) { return p->types[0].shape.same_as(products[0]->types[0].shape); });
    for (auto* product : products) out_.parts.push_back(part(*product));
    int computed = 0;
    for (auto& node : body_.nodes()) {
      computed += computes(node) && node.op != &fused_op();
      if (computes(node)) out_.name += (out_.name.empty() ? "" : "_") + std::string(node.op->name);
    }
    if (computed == int(products.size())) {
      for (size_t p = 0; p < products.size(); ++p) store_as_it_is(p, *products[p]);
    } else if (out_.together) {
      std::vector<int> everything(inputs_.size() + outputs_.size());
      for (size_t i = 0; i < everything.size(); ++i) everything[i] = int(i);
      int back = follow(attrs_, everything);
      store(0, back);
    } else {
      for (size_t p = 0; p < products.size(); ++p) apart(p, *products[p]);
    }
    return std::move(out_);
  }

 private:
  int slot_of(Value v) const {
    for (size_t i = 0; i < body_.inputs().size(); ++i)
      if (body_.inputs()[i] == v) return int(i);
    SINTER_INTERNAL_ASSERT(false, "an operand of a fused product is computed inside");
  }

  runtime::GemmOperand operand(int slot) const {
    const TensorImpl& t = *inputs_[size_t(slot)];
    size_t rank = t.sizes.size();
    return {nullptr, t.strides[rank - 2], t.strides[rank - 1], *eager::gemm_type(t.dtype), rank == 3 ? t.strides[0] : 0};
  }

  void add_left(const Node& product) {
    const Node* from = product.inputs[0].node;
    while (from->op->kind == OpKind::kView) from = from->inputs[0].node;
    IntList sizes = product.inputs[0].type().shape.numbers();
    if (from->op == &fused_op()) {
      add_prologue(*from);
      out_.a = {nullptr, sizes[1], 1, *eager::gemm_type(from->types[0].dtype)};
    } else {
      out_.a_slot = slot_of(product.inputs[0]);
      out_.a = operand(out_.a_slot);
    }
    out_.batch = sizes.size() == 3 ? sizes[0] : 1;
    out_.m = sizes[sizes.size() - 2];
    out_.k = sizes[sizes.size() - 1];
  }

  void add_prologue(const Node& node) {
    std::vector<const TensorImpl*> inputs;
    for (auto& v : node.inputs) {
      out_.prologue_operands.push_back(slot_of(v));
      inputs.push_back(inputs_[size_t(slot_of(v))]);
    }
    auto result = make_intrusive<TensorImpl>();
    result->dtype = node.types[0].dtype;
    result->sizes = node.types[0].shape.numbers();
    result->strides = contiguous_strides(result->sizes);
    result->numel = node.types[0].shape.numel().number();
    result->contiguous = true;
    const TensorImpl* output = result.get();
    out_.prologue_bytes = result->numel * item_size(result->dtype);
    out_.prologue =
        std::make_shared<const FusedKernel>(compile_fused(node.attrs.as<FusedAttrs>(), inputs, {&output, 1}));
  }

  FusedProduct::Part part(const Node& product) const {
    FusedProduct::Part part{};
    part.b_slot = slot_of(product.inputs[1]);
    part.b = operand(part.b_slot);
    part.n = inputs_[size_t(part.b_slot)]->sizes.back();
    part.c_slot = -1;
    return part;
  }

  // Fresh and row-major, its rows counted through the batch.
  void store(size_t p, int slot) {
    auto& part = out_.parts[p];
    part.c_slot = slot;
    part.c = {nullptr, part.n, 1, *eager::gemm_type(outputs_[size_t(slot) - inputs_.size()]->dtype), out_.m * part.n};
  }

  void store_as_it_is(size_t p, const Node& product) {
    for (size_t j = 0; j < body_.outputs().size(); ++j)
      if (body_.outputs()[j].node == &product) store(p, int(inputs_.size() + j));
    out_.follows.resize(out_.parts.size());
  }

  void apart(size_t p, const Node& product) {
    Piece piece = piece_of(body_, &product);
    if (!piece.has_epilogue) return store_as_it_is(p, product);
    std::vector<int> operands = piece.inputs;
    for (int j : piece.outputs) operands.push_back(int(inputs_.size()) + j);
    out_.follows.resize(p);
    store(p, follow(piece.attrs, operands));
  }

  // Compiles what follows; gives the result that the product itself stores.
  int follow(const FusedAttrs& attrs, const std::vector<int>& operands) {
    size_t count = attrs.body->inputs().size();
    std::vector<const TensorImpl*> inputs, outputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      size_t at = size_t(operands[i]);
      if (i < count)
        inputs.push_back(inputs_[at]);
      else
        outputs.push_back(outputs_[at - inputs_.size()]);
    }
    CompiledEpilogue compiled = compile_epilogue(attrs, inputs, outputs);
    compiled.epilogue.operands = operands;
    if (out_.indexing.empty()) out_.indexing = compiled.indexing;
    out_.follows.push_back(std::move(compiled.epilogue));
    return operands[size_t(compiled.back)];
  }

  const FusedAttrs& attrs_;
  const Graph& body_;
  std::span<const TensorImpl* const> inputs_, outputs_;
  FusedProduct out_;
};

// Few rows: computed by the caller, before the others are woken.
void* run_prologue(const FusedProduct& product, std::span<const int64_t> slots) {
  thread_local std::vector<int64_t> memory;
  memory.resize(size_t(product.prologue_bytes + 63 + 64) / 8);
  int64_t at = (int64_t(uintptr_t(memory.data())) + 63) / 64 * 64;
  SmallVector<int64_t, 16> operands;
  for (int slot : product.prologue_operands) operands.push_back(slots[size_t(slot)]);
  operands.push_back(at);
  launch(*product.prologue, {operands.data(), operands.size()});
  return reinterpret_cast<void*>(uintptr_t(at));
}

}  // namespace

FusedProduct compile_product(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                             std::span<const TensorImpl* const> outputs) {
  return ProductCompiler(attrs, inputs, outputs).run();
}

void launch(const FusedProduct& product, std::span<const int64_t> slots, PackedWeights packed) {
  bool nothing = std::all_of(product.parts.begin(), product.parts.end(), [](auto& p) { return p.n == 0; });
  if (product.m == 0 || product.batch == 0 || nothing) return;
  struct Context {
    const FusedProduct& product;
    SmallVector<size_t, 8> first;  // by part: where its arguments begin
    SmallVector<int64_t, 128> args;
  } context{product, {}, {}};
  IndexError error(product.indexing);
  for (auto& follow : product.follows) {
    context.first.push_back(context.args.size());
    for (int slot : follow.operands) context.args.push_back(slots[size_t(slot)]);
    context.args.append({follow.params.data(), follow.params.size()});
    context.args.push_back(error.cell());
  }
  runtime::JointEpilogue epilogue;
  epilogue.context = &context;
  epilogue.function = [](void* given, void* const* tiles, int64_t part, int64_t row, int64_t col, int64_t rows, int64_t cols,
                         int64_t stride) {
    auto& c = *static_cast<Context*>(given);
    auto function = c.product.follows[size_t(part)].function;
    if (function) function(c.args.data() + c.first[size_t(part)], tiles, row, col, rows, cols, stride);
  };
  auto address = [&](int slot) { return slot < 0 ? nullptr : reinterpret_cast<void*>(uintptr_t(slots[size_t(slot)])); };
  SmallVector<runtime::GemmPart, 4> parts;
  for (auto& p : product.parts) {
    runtime::GemmPart part{p.n, p.b, nullptr, p.c};
    part.b.data = address(p.b_slot);
    part.c.data = address(p.c_slot);
    size_t at = parts.size();
    if (at < packed.size() && packed[at] && packed[at]->is_current()) part.packed = &packed[at]->packed;
    parts.push_back(part);
  }
  runtime::GemmOperand a = product.a;
  a.data = address(product.a_slot);
  if (product.prologue) a.data = run_prologue(product, slots);
  bool any = std::any_of(product.follows.begin(), product.follows.end(), [](auto& f) { return f.function != nullptr; });
  if (product.way) {
    runtime::Epilogue single{[](void* given, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols, int64_t stride) {
                               auto& c = *static_cast<Context*>(given);
                               c.product.follows[0].function(c.args.data(), &tile, row, col, rows, cols, stride);
                             },
                             &context};
    runtime::GemmOptions options;
    options.batch = product.batch;
    if (any) options.epilogue = &single;
    auto& part = parts[0];
    run_product(product.way.get(), product.m, part.n, product.k, a, part.b, part.c, options);
    return error.check();
  }
  runtime::JointOptions options;
  options.batch = product.batch;
  options.together = product.together;
  if (any) options.epilogue = &epilogue;
  runtime::gemm_joint(product.m, product.k, a, {parts.data(), parts.size()}, options);
  error.check();
}

}  // namespace sinter
