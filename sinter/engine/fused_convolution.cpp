#include "sinter/engine/fused_convolution.h"

#include <algorithm>
#include <cstring>

#include "sinter/base/error.h"
#include "sinter/base/thread_pool.h"
#include "sinter/engine/eager/convolution.h"
#include "sinter/engine/eager/gemm_operand.h"
#include "sinter/engine/kernel_parameters.h"

namespace sinter {

namespace {

constexpr int64_t kPieceElements = 16384;  // that an epilogue behind a library works on at a time

// A row-major copy of a strided weight.
std::vector<char> row_major(const FusedConvolution& c, const char* weight) {
  int64_t size = c.weight_type == runtime::GemmType::f64   ? 8
                 : c.weight_type == runtime::GemmType::f32 ? 4
                                                           : 2,
          count = 1;
  for (int64_t n : c.weight_sizes) count *= n;
  std::vector<char> out(size_t(count * size));
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i, from = 0;
    for (size_t d = c.weight_sizes.size(); d-- > 0; left /= c.weight_sizes[d])
      from += left % c.weight_sizes[d] * c.weight_strides[d];
    std::memcpy(out.data() + i * size, weight + from * size, size_t(size));
  }
  return out;
}

}  // namespace

bool is_fusable_convolution(const Node& node) {
  if (node.op != &convolution_op() || !eager::gemm_type(node.types[0].dtype)) return false;
  // No taps: nothing to multiply.
  auto& weight = node.inputs[1].type().shape;
  return std::none_of(weight.begin(), weight.end(), [](const Dim& d) { return d.same_as(0); });
}

FusedConvolution compile_convolution(const FusedAttrs& attrs, const Node& node,
                                     std::span<const TensorImpl* const> inputs,
                                     std::span<const TensorImpl* const> outputs) {
  const Graph& body = *attrs.body;
  auto slot_of = [&](Value v) {
    for (size_t i = 0; i < body.inputs().size(); ++i)
      if (body.inputs()[i] == v) return int(i);
    SINTER_INTERNAL_ASSERT(false, "an operand of a fused convolution is computed inside");
  };
  FusedConvolution out{};
  out.attrs = node.attrs.as<ConvolutionAttrs>();
  out.x_slot = slot_of(node.inputs[0]);
  out.weight_slot = slot_of(node.inputs[1]);
  if (body.outputs().size() == 1 && body.outputs()[0].node == &node) {
    out.name = node.op->name;
    out.out_slot = int(inputs.size());
  } else {
    CompiledEpilogue compiled = compile_epilogue(attrs, inputs, outputs);
    out.name = compiled.name;
    out.indexing = compiled.indexing;
    out.out_slot = compiled.back;
    out.follow = std::move(compiled.epilogue);
    for (size_t i = 0; i < inputs.size() + outputs.size(); ++i) out.follow.operands.push_back(int(i));
  }
  const TensorImpl &x = *inputs[size_t(out.x_slot)], &weight = *inputs[size_t(out.weight_slot)];
  const TensorImpl& result = *outputs[size_t(out.out_slot) - inputs.size()];
  out.shape = eager::conv_shape(out.attrs, x.sizes, weight.sizes, node.types[0].shape.numbers());
  out.x = eager::conv_operand(x);
  out.weight_sizes = weight.sizes;
  if (!weight.contiguous) out.weight_strides = weight.strides;
  out.weight_type = *eager::gemm_type(weight.dtype);
  out.out_type = *eager::gemm_type(result.dtype);
  return out;
}

void launch(const FusedConvolution& c, std::span<const int64_t> slots) {
  struct Context {
    FusedEpilogue::Function function;
    SmallVector<int64_t, 64> args;
  } context{c.follow.function, {}};
  IndexError error(c.indexing);
  for (int slot : c.follow.operands) context.args.push_back(slots[size_t(slot)]);
  context.args.append({c.follow.params.data(), c.follow.params.size()});
  context.args.push_back(error.cell());
  const runtime::Epilogue epilogue{[](void* given, void* tile, int64_t row, int64_t col, int64_t rows, int64_t cols,
                                      int64_t stride) {
                                     auto& at = *static_cast<Context*>(given);
                                     at.function(at.args.data(), &tile, row, col, rows, cols, stride);
                                   },
                                   &context};
  auto address = [&](int slot) { return reinterpret_cast<char*>(uintptr_t(slots[size_t(slot)])); };
  runtime::ConvOperand x = c.x;
  x.data = address(c.x_slot);
  const char* weight = address(c.weight_slot);
  std::vector<char> copy;
  if (!c.weight_strides.empty()) {
    copy = row_major(c, weight);
    weight = copy.data();
  }
  if (c.way) {
    // The library stores whole results; what follows works on them where they lie.
    auto* out = reinterpret_cast<float*>(address(c.out_slot));
    c.way->run(x.data, weight, out);
    if (!c.follow.function) return;
    const int64_t planes = c.shape.images * c.shape.groups * c.shape.filters;
    const int64_t positions = c.shape.out[0] * c.shape.out[1] * c.shape.out[2];
    parallel_for(0, planes, std::max<int64_t>(1, kPieceElements / positions), [&](int64_t begin, int64_t end) {
      epilogue.function(epilogue.context, out + begin * positions, begin, 0, end - begin, positions, positions);
    });
    return error.check();
  }
  eager::run_convolution(c.attrs, c.shape, x, weight, c.weight_type, address(c.out_slot), c.out_type,
                         c.follow.function ? &epilogue : nullptr);
  error.check();
}

}  // namespace sinter
