#include "sinter/engine/cpu/engine.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sinter/engine/cpu/attention_step.h"
#include "sinter/engine/cpu/convolution.h"
#include "sinter/engine/cpu/convolution_step.h"
#include "sinter/engine/cpu/nest_step.h"
#include "sinter/engine/cpu/op_kernels.h"
#include "sinter/engine/cpu/product_step.h"

namespace sinter {

namespace {

constexpr DTypeSet kFloats = {kFloat32, kFloat64, kBFloat16, kFloat16};
constexpr Target kCpuTarget = {.products = kFloats,
                               .encoded_products = {kFloat32, kBFloat16, kFloat16},
                               .convolutions = {.dtypes = kFloats, .transposed = true, .grouped = true},
                               .attention = {.dtypes = {kFloat32, kBFloat16, kFloat16},
                                             .masks = {kBool, kFloat32, kBFloat16, kFloat16},
                                             .most_dimensions = 4,
                                             .paged = true}};

class CpuEngine final : public DeviceEngine {
 public:
  const Target& target() const override { return kCpuTarget; }
  std::string kind(const Graph&) const override { return "cpu"; }
  int64_t cache_bytes() const override {
    static const int64_t bytes = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t(32) << 20);
    return bytes;
  }

  std::vector<OpKernel> op_kernels() const override {
    return joined({eager::product_kernels_of_cpu(), eager::attention_kernels_of_cpu(), eager::paged_attention_kernels_of_cpu(),
                   eager::convolution_kernels_of_cpu(), eager::fourier_kernels_of_cpu(), eager::grouped_kernels_of_cpu()});
  }

  std::unique_ptr<CompiledStep> make_step(const FusedAttrs& attrs, std::span<const TensorImpl* const> inputs,
                                          std::span<const TensorImpl* const> outputs) const override {
    switch (attrs.kind) {
      case FusedKind::kProduct: return make_cpu_product(attrs, inputs, outputs);
      case FusedKind::kConvolution: return make_cpu_convolution(attrs, inputs, outputs);
      case FusedKind::kAttention: return make_cpu_attention(attrs, inputs, outputs);
      case FusedKind::kSiblings: return make_cpu_siblings(attrs, inputs, outputs);
      default: return std::make_unique<CpuNestStep>(attrs, inputs, outputs);
    }
  }

  IntList result_strides(const Node& node, const IntList& sizes, const TensorImpl*,
                         FunctionRef<const TensorImpl*()> beside) const override {
    // The gradient of a convolution's weight lies as the weight, or what else of its kind it is read with.
    const TensorImpl* other = node.op == &convolution_weight_grad_op() ? beside() : nullptr;
    return other && eager::is_taps_first(sizes, other->strides) ? other->strides : contiguous_strides(sizes);
  }
  void fill(void* memory, unsigned char value, size_t bytes) const override { std::memset(memory, value, bytes); }
};

}  // namespace

const DeviceEngine& cpu_engine() {
  static const CpuEngine engine;
  return engine;
}

}  // namespace sinter
