#include "sinter/engine/fused_product.h"

#include <algorithm>

#include "sinter/base/error.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/fused_kernel.h"
#include "sinter/engine/product_pieces.h"

namespace sinter {

namespace {

class ProductCompiler {
 public:
  ProductCompiler(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                  std::span<const TensorImpl* const> outputs)
      : pieces_(take_apart(attrs)), inputs_(inputs), outputs_(outputs) {}

  FusedProduct run() {
    out_.name = pieces_.name;
    out_.batch = pieces_.batch;
    out_.m = pieces_.m;
    out_.k = pieces_.k;
    out_.together = pieces_.together;
    add_left();
    for (auto& part : pieces_.parts) out_.parts.push_back({part.n, operand(part.right), {}, part.right, -1});
    for (size_t p = 0; p < pieces_.parts.size(); ++p)
      if (pieces_.parts[p].result >= 0) store(p, pieces_.parts[p].result);
    for (size_t f = 0; f < pieces_.follows.size(); ++f) {
      auto& follow = pieces_.follows[f];
      out_.follows.emplace_back();
      if (follow) store(f, compile(*follow, out_.follows.back()));
    }
    return std::move(out_);
  }

 private:
  runtime::GemmOperand operand(int slot) const {
    const TensorImpl& t = *inputs_[size_t(slot)];
    size_t rank = t.sizes.size();
    return {nullptr, t.strides[rank - 2], t.strides[rank - 1], *eager::gemm_type(t.dtype), rank == 3 ? t.strides[0] : 0};
  }

  void add_left() {
    if (!pieces_.prologue) {
      out_.a_slot = pieces_.left;
      out_.a = operand(out_.a_slot);
      return;
    }
    auto& prologue = *pieces_.prologue;
    std::vector<const TensorImpl*> inputs;
    for (int at : prologue.operands) inputs.push_back(inputs_[size_t(at)]);
    auto result = row_major_of(prologue.node->types[0]);
    const TensorImpl* output = result.get();
    out_.a = {nullptr, out_.k, 1, *eager::gemm_type(result->dtype)};
    out_.prologue_operands = prologue.operands;
    out_.prologue_bytes = result->numel * item_size(result->dtype);
    out_.prologue = std::make_shared<const FusedKernel>(
        compile_fused(prologue.node->attrs.as<FusedAttrs>(), inputs, {&output, 1}));
  }

  // Fresh and row-major, its rows counted through the batch.
  void store(size_t p, int slot) {
    auto& part = out_.parts[p];
    part.c_slot = slot;
    part.c = {nullptr, part.n, 1, *eager::gemm_type(outputs_[size_t(slot) - inputs_.size()]->dtype), out_.m * part.n};
  }

  // Gives the result that the product itself stores.
  int compile(const ProductPieces::Follow& follow, FusedEpilogue& to) {
    auto [inputs, outputs] = geometries_of(follow.operands, inputs_, outputs_);
    CompiledEpilogue compiled = compile_epilogue(follow.attrs, inputs, outputs);
    compiled.epilogue.operands = follow.operands;
    if (out_.indexing.empty()) out_.indexing = compiled.indexing;
    to = std::move(compiled.epilogue);
    return follow.operands[size_t(compiled.back)];
  }

  const ProductPieces pieces_;
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
